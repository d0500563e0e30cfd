"""Collectives and messages, as ranks/flights.py announces them: what was given, and what is there afterwards.

    dist.all_reduce(g)      collective "all_reduce" 7 of group "0-3", SUM, float32 [8]; digests before and after
    dist.recv(x, src=0)     p2p "recv", peer 0, the first with that tag, and what has arrived
    dist.send(x, dst=1)     p2p "send", said at once: what was sent is known

A row is said once the program has waited, or where it never does as the call returns. Digests are of at most 1 MiB.
The outputs of one that is still under way are not read. Counterexample: a digest on a device would wait for it, so
there is none, and the row has its form alone."""

import sys

from opguard.ranks import flights
from opguard.training import hooks, kinds, tensors, where

_MOST_BYTES = 1 << 20
_MASK = (1 << 64) - 1
_MESSAGES = ("send", "recv", "isend", "irecv")


def _flat(named):
    """The tensors of an announcement's operands, in order: of (name, value) pairs, shards for DTensors."""
    found = []
    for operand in named or ():
        tensors.collect(operand[1], "", found)
    return [tensors.local(t) for _, t in found]


def _digest(held):
    """One of several tensors; None where one cannot be read, or they are large."""
    if not held or sum(t.numel() * t.element_size() for t in held) > _MOST_BYTES:
        return None
    values = tensors.hashes(held)
    if None in values:
        return None
    total = values[0]
    for value in values[1:]:
        total = (total * 0x9E3779B97F4A7C15 + value) & _MASK
    return total


def _is_asynchronous():
    """Was it called with async_op=True? The frame of torch's own function says so; it is looked for among 24."""
    frame = sys._getframe(1)
    for _ in range(24):
        if frame is None:
            return False
        if frame.f_globals.get("__name__") == "torch.distributed.distributed_c10d" and "async_op" in frame.f_code.co_varnames:
            return bool(frame.f_locals.get("async_op"))
        frame = frame.f_back
    return False


class Flight:
    """The recording's flight, or None, and a row of ours. It stands for it: what is told to one is told to both.

    row: (kind, fields before the digest of what is left, fields after it). It is said once; then row is None."""

    def __init__(self, inner, row, outputs):
        self.inner, self.row, self.outputs = inner, row, outputs

    def give(self, outputs):
        if self.inner is not None:
            self.inner.give(outputs)
        self.outputs = tuple(self.outputs or ()) + tuple(outputs)

    def number(self, number):
        if self.inner is not None:
            self.inner.number(number)

    def land(self, late):
        if self.inner is not None:
            self.inner.land(late)
        self._say(True)

    def cancel(self):
        if self.inner is not None:
            self.inner.cancel()
        self._say(False)

    def _say(self, landed):
        row, self.row = self.row, None
        if row is not None and kinds.watching():
            hooks.unwatched(_say, row, self.outputs if landed else None)
        self.outputs = None


@hooks.guarded
def _say(row, outputs):
    kind, before, after = row
    kinds.say(kind, (*before, None if outputs is None else _digest(_flat(outputs)), *after))


@hooks.guarded
def _launched(boundary, group, number, inputs, outputs, scalars, structure):
    """A collective's row without what it leaves. None for messages, which message() has, and without a number in its
    group.

        boundary "<ddp.bucket>"      the name ddp.all_reduce"""
    name = boundary.partition(".")[2] or boundary.strip("<>")
    if boundary.startswith("<ddp.") and name.strip("<>") == "bucket":
        name = "ddp.all_reduce"
    elif boundary.startswith("<ddp."):
        name = "ddp." + name
    name = name.strip("<>")
    if name in _MESSAGES or "send" in name or "recv" in name or not number:
        return None
    given = _flat(inputs) or _flat(outputs)
    reduction = next((part[3:] for part in scalars.split(", ") if part.startswith("op=")), None)
    first = given[0] if given else None
    before = (
        name, group, number, reduction, None if first is None else tensors.dtype_text(first.dtype), () if first is None else tuple(first.shape),
        _digest(_flat(inputs)),
    )  # fmt: skip
    return "collective", before, (_is_asynchronous(), where.here())


def launched(inner, *call):
    """-> what stands for the flight."""
    if not kinds.watching():
        return inner
    row = hooks.unwatched(_launched, *call)
    return inner if row is None else Flight(inner, row, call[4])


@hooks.guarded
def _message(api, group, sending, peer, tag, operand, number):
    """A message's row. What is sent is there now, and is said; of what is received the digest follows as it lands.

    A batch of isend and irecv is announced as one call: then the direction says which of the two."""
    c10d = sys.modules["torch.distributed.distributed_c10d"]
    held = _flat(operand)
    direction = "send" if sending else "recv"
    name = api if direction in api and not ("send" in api and "recv" in api) else "i" + direction
    before = (name, c10d.get_global_rank(group, peer), tag, number, tensors.dtype_text(held[0].dtype), tuple(held[0].shape))
    if sending:
        kinds.say("p2p", (*before, _digest(held), where.here()))
        return None
    return "p2p", before, (where.here(),)


def message(inner, *call):
    """A message between two ranks is launched."""
    if not kinds.watching():
        return inner
    row = hooks.unwatched(_message, *call)
    return inner if row is None else Flight(inner, row, call[5])


def install(torch):
    flights.observers.update(launched=launched, message=message)
