"""Randomness: who asks for dropout, and whether an evaluation draws.

    F.dropout(x, 0.1)      random "dropout", p 0.1, asked, in the module that runs
    a call in evaluation   its generators' states before and after
    a step                 is its generators' state that of an earlier step again?

Counterexample: an operator that draws in training is nobody's business here. Nothing is drawn, no device waited for.

Where something was compiled before we came, no function is wrapped: its graphs would be compiled again."""

import sys

from opguard.training import hooks, kinds, modules, tensors, where

# name -> (position of p, its default, position of training, its default)
_MOST_STATES = 1 << 17
_state = {"seeds": 0, "seeded": None}
_FUNCTIONS = {
    "dropout": (1, 0.5, 2, True), "dropout1d": (1, 0.5, 2, True), "dropout2d": (1, 0.5, 2, True), "dropout3d": (1, 0.5, 2, True),
    "alpha_dropout": (1, 0.5, 2, False), "feature_alpha_dropout": (1, 0.5, 2, False), "scaled_dot_product_attention": (4, 0.0, None, True),
}  # fmt: skip


def state(torch):
    """What tells whether anything is drawn from here on."""
    found = [torch.default_generator.get_state()]
    cuda = torch.cuda
    if cuda.is_initialized():
        found += [_offset(g) for g in cuda.default_generators]
    return found


def _offset(generator):
    try:
        read = getattr(generator, "get_offset", None)
        return read() if read is not None else bytes(generator.get_state().tolist())
    except Exception:
        return None  # a graph is being captured


def has_drawn(torch, before):
    with tensors.quietly():
        now = state(torch)
        return not torch.equal(before[0], now[0]) or before[1:] != now[1:]


def digest(torch):
    """Of the default generators' states, without waiting for a device."""
    found = state(torch)
    (value,) = tensors.hashes(found[:1])
    return value if len(found) == 1 else hash((value, *found[1:])) & (1 << 64) - 1


class Noise:
    """The generators' states with which the steps of one optimizer began."""

    def __init__(self):
        self.seen, self.last, self.seeds = set(), None, 0

    def begins(self):
        """(is the state a new one, its digest): None for the first where nothing was drawn since the last step."""
        now, seeds = digest(sys.modules["torch"]), _state["seeds"]
        untouched = now == _state["seeded"] or (now == self.last and seeds == self.seeds)
        fresh = None if now is None or untouched else now not in self.seen
        if len(self.seen) < _MOST_STATES:
            self.seen.add(now)
        self.last, self.seeds = now, seeds
        return fresh, now


def seeded():
    """A seed was set: what is drawn from here on is another state than this one."""
    _state["seeds"] += 1
    _state["seeded"] = digest(sys.modules["torch"])


def reset():
    _state.update(seeds=0, seeded=None)


def _is_again(torch):
    """Does a backward pass compute it anew, as activation checkpointing does?"""
    current = getattr(torch._C, "_current_graph_task_id", None)
    return None if current is None else current() != -1


def _tell(name, args, kwargs):
    position, default, mode, trains = _FUNCTIONS[name]
    p = args[position] if len(args) > position else kwargs.get("dropout_p" if mode is None else "p", default)
    training = trains if mode is None else args[mode] if len(args) > mode else kwargs.get("training", trains)
    first = args[0] if args else kwargs.get("input", kwargs.get("query"))
    if first is not None and tensors.is_traced(first):
        return
    entry, module = modules.innermost()
    p = float(p) if isinstance(p, (int, float)) else None
    torch = sys.modules["torch"]
    grad, asked = torch.is_grad_enabled(), bool(p) and bool(training)
    kinds.say("random", (
        name, 0.0 if p is None else p, asked, entry.number if entry else None, grad, where.here(3),
        None if module is None else bool(module.training), digest(torch) if asked else None, _is_again(torch),
    ))  # fmt: skip


def install(torch):
    kinds.at_begin(reset)
    if not hooks.has_compiled():
        for name in _FUNCTIONS:
            hooks.around_function(torch, name, _tell, "dropout")
