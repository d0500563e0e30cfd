"""The states of torch's default generators: whether an evaluation draws, whether a step begins where an earlier one
did.

    a call in evaluation   its generators' states before and after
    a step                 is its generators' state that of an earlier step again?

Example: a loop that seeds in every step begins each with the same state, so each has the same dropout masks.
Counterexample: steps without any draw in between have one state too, and nothing is wrong. That is told as None.
Nothing is drawn, no device waited for."""

import sys

from opguard.training import kinds, tensors

_MOST_STATES = 1 << 17  # of one optimizer; of steps beyond it states are not remembered
_state = {"seeds": 0, "seeded": None}


def state(torch):
    """What tells whether anything is drawn from here on: the processor's state as a tensor, of each device an offset.

    A device's offset grows with what is drawn, and lies on the host: to read it waits for nothing."""
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
    """before: what state() gave."""
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


def install(torch):
    kinds.at_begin(reset)
