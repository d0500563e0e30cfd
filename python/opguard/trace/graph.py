"""Which forward site an autograd node belongs to.

    z = x * y      the thread's next number goes from 41 to 42; MulBackward0 has 41, its site is this expression
    z.sum()        from 42 to 43; SumBackward0 has 42
    backward       the engine runs a node that says 41: what it dispatches belongs to `x * y`

Each thread numbers the nodes it makes. An operator's node is made before the operator is dispatched, so at that
time the newest number is its own. The node says its number again when the backward pass runs it. Torch without
these two questions links nothing.

Counterexample: no node is held or hooked, so that none lives longer than without us. What is kept are numbers.
The cost: a table entry for each node, for the last _YOUNG to 2 * _YOUNG of a thread."""

import threading

# AccumulateGrad: made when a parameter is first used, not by an operator.
ACCUMULATE = 2**64 - 1
_YOUNG = 1 << 19  # sites kept for that many nodes at least; a graph is rarely a tenth of it


class _Sites:
    """Of one thread: number -> site, for the last _YOUNG to 2 * _YOUNG nodes."""

    def __init__(self, seen):
        self.seen = seen  # numbers below have been given a site
        self.last = None  # site of the last operator
        self.young, self.old = {}, {}

    def put(self, number, site):
        """Two generations: a full one becomes the old one, and the one before that is dropped whole. No entry is ever
        removed alone."""
        if len(self.young) >= _YOUNG:
            self.old, self.young = self.young, {}
        self.young[number] = site

    def get(self, number):
        return self.young.get(number) or self.old.get(number)


class Graph:
    def __init__(self, torch):
        self.tensor = torch.Tensor
        self.next_number = getattr(torch._C._autograd, "_get_sequence_nr", None)
        self.current_node = getattr(torch._C, "_current_autograd_node", None)
        self.links = self.next_number is not None and self.current_node is not None
        self.local = threading.local()
        self.threads = []

    def here(self):
        """The sites of this thread."""
        sites = getattr(self.local, "sites", None)
        if sites is None:
            # Seen first at an operator: the newest number may be its own.
            sites = self.local.sites = _Sites(max(0, self.next_number() - 1))
            self.threads.append(sites)
        return sites

    def dispatched(self, site, grad, args, outer):
        """An operator of `site` is about to run. grad: nodes are being made. outer(): the site that entered a
        custom autograd.Function, for its node is made before its forward's first operator."""
        sites, number = self.here(), self.next_number()
        if number != sites.seen:
            # In-place operators on views make further nodes after they have run: those are the last operator's.
            # At most 64 of them are given a site.
            for late in range(max(sites.seen, number - 64), number - 1):
                if sites.last is not None:
                    sites.put(late, sites.last)
            if grad:
                own = site if self.differentiable(args) else sites.last
            else:
                own = outer() or sites.last
            if own is not None:
                sites.put(number - 1, own)
            sites.seen = number
        sites.last = site

    def differentiable(self, args):
        """Whether an argument wants a gradient; lists are looked into one deep, as operators like cat take them."""
        for value in args:
            for item in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(item, self.tensor) and item.requires_grad:
                    return True
        return False

    def running(self):
        """The number of the node that the engine runs in this thread, None if there is none."""
        node = self.current_node() if self.links else None
        return None if node is None else node._sequence_nr()

    def site_of(self, number, caller):
        """The site whose execution made node `number`, None if no thread has it.

        Numbers are per thread, so two threads may have the same one. The thread that started the pass has most likely
        made the graph and is asked first. caller: its sites, None if it is not known."""
        here = getattr(self.local, "sites", None)
        order = [here, caller] if caller is here else [caller, here]
        for sites in order + self.threads:
            site = sites.get(number) if sites is not None else None
            if site is not None:
                return site
        return None
