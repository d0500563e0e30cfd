"""The process group: which rank this is, and each collective's number in its group (ranks/flights.py counts them)."""

import os
import sys

from opguard.ranks import flights
from opguard.training import sink, where

_state = {"pid": None}


def meet():
    """The rank is told once a process, as soon as its group is there. Called as our own work."""
    if _state["pid"] == os.getpid():
        return
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return
    _state["pid"] = os.getpid()
    sink.see("group", (distributed.get_rank(), distributed.get_world_size(), str(distributed.get_backend())))


def install():
    flights.on_launch.append(launched)


@sink.guarded
def launched(boundary, group, number, inputs, outputs, scalars):
    meet()
    if not number or ">" in group:  # a message has a number of its two ranks
        return
    tensor = _first(inputs)
    if tensor is None:
        tensor = _first(outputs)
    reduction = scalars.partition("op=")[2].partition(",")[0] if isinstance(scalars, str) else ""
    function = boundary.partition("dist.")[2].rstrip(">") or boundary.strip("<>")
    sink.see(
        "collective",
        (function, group, number, reduction or None, str(tensor.dtype)[6:] if tensor is not None else None,
         tuple(tensor.shape) if tensor is not None else (), None, None, False, where.place(3)),
    )  # fmt: skip


def _first(slots):
    torch = sys.modules["torch"]
    for _, value, _ in slots:
        while isinstance(value, (list, tuple)) and value:
            value = value[0]
        if isinstance(value, torch.Tensor):
            return value
    return None
