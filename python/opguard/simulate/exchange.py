"""What simulated ranks tell one another: the sum of their gradients, and the weights that rank 0 has drawn.

    mean([g0, g1], 2)        (g0 + g1) / 2, in the order of ranks, on each rank the same bits

Nothing of it is recorded: the methods that the recording has replaced keep the original, which is called here.

Counterexample: a ring or a tree adds in another order from three ranks on, and a bucket in another order again.
The cost: a gradient is gathered whole from every rank.
"""

import contextlib
import sys
import threading

_running = threading.local()


def is_running():
    """Is the collective that begins now one of ours?"""
    return getattr(_running, "depth", 0) > 0


@contextlib.contextmanager
def _ours():
    _running.depth = getattr(_running, "depth", 0) + 1
    try:
        yield
    finally:
        _running.depth -= 1


def _quiet(group, name):
    """The group's method as it was before the recording and by_hand.py wrapped it: what is exchanged here is no
    event."""
    method = getattr(type(group), name)
    return getattr(method, "_opguard", method)


def gather(tensor, group):
    """The tensors of all ranks of the group, by rank."""
    torch = sys.modules["torch"]
    with torch.no_grad(), _ours():
        tensor = tensor.detach().contiguous()
        parts = [torch.empty_like(tensor) for _ in range(group.size())]
        _quiet(group, "allgather")(group, [parts], [tensor]).wait()
    return parts


def broadcast(tensor, group):
    """The tensor takes the value of the group's rank 0."""
    torch = sys.modules["torch"]
    with torch.no_grad(), _ours():
        options = torch.distributed.BroadcastOptions()
        options.rootRank, options.rootTensor = 0, 0
        whole = tensor.detach().contiguous()
        _quiet(group, "broadcast")(group, [whole], options).wait()
        if whole.data_ptr() != tensor.data_ptr():
            tensor.detach().copy_(whole)


def mean(parts, divisor):
    """Added one after the other, then divided: what DistributedDataParallel's two ranks give, to the bit."""
    total = parts[0].clone()
    for part in parts[1:]:
        total.add_(part)
    return total.div_(divisor)


class Reduction:
    """The gradients of some parameters, as data parallel ranks average them at the end of each backward pass.

    group: the ranks; their gradients are whole. representatives: the numbers in the group of ranks whose data are not
    another's already, so context parallel ranks count once. divisor: what the sum is divided by."""

    def __init__(self, parameters, group, representatives, divisor):
        self.parameters, self.group = parameters, group
        self.representatives, self.divisor = representatives, divisor
        self.synchronises = True
        self.before, self.new = {}, {}  # position -> gradient when the sum began, and what came since
        self.queued = False
        for position, parameter in enumerate(parameters):
            if parameter.requires_grad:
                parameter.register_hook(lambda gradient, at=position: self._came(at, gradient))

    def _came(self, position, gradient):
        """A gradient of this backward pass. `before` is what stood in .grad when the first came; `new` adds up what
        came since. The sum is queued once, for the end of the pass."""
        torch = sys.modules["torch"]
        held = self.parameters[position].grad
        if position not in self.new:
            self.before[position] = None if held is None else held.detach().clone()
            self.new[position] = gradient.detach().clone()
        else:
            self.new[position] = self.new[position] + gradient.detach()
        if self.synchronises and not self.queued:
            self.queued = True
            torch.autograd.Variable._execution_engine.queue_callback(self._reduce)

    def _reduce(self):
        """At the end of a backward pass. Ranks agree on which parameters have gradients, so that all gather the
        same."""
        torch = sys.modules["torch"]
        self.queued = False
        with torch.no_grad():
            here = torch.zeros(len(self.parameters), dtype=torch.uint8)
            here[list(self.new)] = 1
            here = here.to(self.parameters[0].device)
            # A rank may not have used a parameter that another has.
            anywhere = torch.stack(gather(here, self.group)).amax(0).tolist()
            for position, parameter in enumerate(self.parameters):
                if anywhere[position]:
                    self._reduce_one(position, parameter)
        self.before, self.new = {}, {}

    def _reduce_one(self, position, parameter):
        """.grad is what was there before and the ranks' mean; a rank without a new gradient gives zeros."""
        torch = sys.modules["torch"]
        new = self.new.get(position)
        before = self.before.get(position) if new is not None else parameter.grad
        parts = gather(torch.zeros_like(parameter) if new is None else new, self.group)
        total = mean([parts[i] for i in self.representatives], self.divisor)
        if before is not None:
            total = before + total
        if parameter.grad is None:
            parameter.grad = total
        else:
            parameter.grad.copy_(total)
