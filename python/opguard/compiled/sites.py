"""A site in the graph that dynamo makes. It is the call before its operator that tells its inputs, and the one behind
it that tells its outputs. All of this works on dynamo's variables, while it traces.

    og("m.mul:77ab", x) * 2      opguard.enter(ring, [x], [], "1;7;m.mul:77ab;...")
                                 y = x * 2
                                 opguard.leave(ring, ring_backward, [y], [x], "self", [], "1;7;...")

The two have one token, which no other site of the process has. Counterexample: a site whose inputs cannot be told has
no token, so no calls, and is counted as unprobed; the operator is there as ever."""

import contextlib
import itertools
from types import SimpleNamespace

import torch
from torch._dynamo.exc import ObservedException, TorchDynamoException
from torch._subclasses.fake_tensor import unset_fake_temporarily

from opguard.compiled import ops, stand_ins, unprobed
from opguard.compiled import variables as dv
from opguard.compiled.values import Values, call_inputs, quoted

_tokens = itertools.count(1)


def _open_sites(tx):
    """Sites of this graph that have begun: token -> (boundary, flags, inputs, device). They lie with the graph, which
    dynamo may start anew."""
    return tx.output.__dict__.setdefault("_opguard_open", {})


def _device(tx, tensors):
    """Name of the device on whose ring an operator of these tensors writes, and that ring is there. Without a tensor it
    is what the graph works on."""
    devices = [d for d in map(dv.device, tensors) if d is not None]
    if not devices:
        devices = [v.device for v in map(dv.example, tx.output.placeholders) if isinstance(v, torch.Tensor)]
        devices = [d for d in devices if d.type != "cpu"]
    found = str(devices[0]) if devices and devices[0].type not in ("meta", "fake") else "cpu"
    with unset_fake_temporarily():
        ops.prepare(found)
    return found


def enter(tx, boundary, callee, names, values, flags=""):
    """-> token of the site, None where its inputs cannot be told"""
    inputs = Values(tx, ops.IN)
    with _counted_if_failed() as told:
        if callee is not None:
            flags += call_inputs(tx, inputs, callee, values[0], values[1])
        else:
            for name, value in zip(names, values):
                if name == "base" and dv.constant(dv.real(value)) == (True, None):
                    continue
                inputs.add(name, value)
    if told.failed:
        return None
    token = next(_tokens)
    site = ops.site(token, quoted(boundary), flags, inputs.names, inputs.texts)
    device = _device(tx, inputs.tensors)
    _open_sites(tx)[token] = boundary, flags, inputs, device
    dv.inline(
        tx,
        stand_ins.emit_enter,
        [dv.make_text(device), dv.make_list(inputs.tensors), dv.make_list(inputs.numbers), dv.make_text(site)],
    )
    return token


def leave(tx, token, result, flags=""):
    """result: None where success is the only answer."""
    if token is None:
        return
    boundary, entered_flags, inputs, device = _open_sites(tx).pop(token)
    flags += entered_flags
    outputs = Values(tx, ops.OUT)
    with _counted_if_failed() as told:
        if result is not None:
            result = dv.real(result)
            listed = dv.sequence(result)
            for i, item in enumerate(listed[0] if listed is not None else [result]):
                outputs.add(f"out{i}", item)
    if told.failed:
        outputs = Values(tx, ops.OUT)  # the event must end, and ends without outputs
    site = ops.site(token, quoted(boundary), flags, outputs.names, outputs.texts)
    names = ",".join(name[1:] for name in inputs.names)
    dv.inline(
        tx,
        stand_ins.emit_leave,
        [
            dv.make_text(device),
            dv.make_list(outputs.tensors),
            dv.make_list(inputs.tensors),
            dv.make_text(names),
            dv.make_list(outputs.numbers),
            dv.make_text(site),
        ],
    )


@contextlib.contextmanager
def _counted_if_failed():
    """Dynamo's variables are met by what torch 2.13 has; one that answers otherwise costs a record, never the program.

    What dynamo raises to break or restart a graph is its own business and goes on."""
    told = SimpleNamespace(failed=False)
    try:
        yield told
    except TorchDynamoException:
        raise
    except Exception as error:
        told.failed = True
        unprobed.count(f"a value that cannot be told: {type(error).__name__}")


@contextlib.contextmanager
def told_if_raised(tx):
    """The program's own error, which it may handle inside the graph."""
    before = list(_open_sites(tx))
    try:
        yield
    except ObservedException:
        for token in reversed([token for token in _open_sites(tx) if token not in before]):
            leave(tx, token, None, ops.RAISED)
        raise
