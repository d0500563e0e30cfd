"""Hands observations to the log. The only place that knows the kinds' fields: docs/formats/observations.md.

    sink.see("told", ("loss is positive", True, [], "train.py:12:main"))

Nothing of ours may fail the program: `guarded` swallows our own errors and counts them. A loader's worker observes
nothing, since what it does belongs to its parent's batches."""

import functools
import sys
import threading

from opguard import _rt

KINDS = {
    "group": "rank world backend",
    "module": "number name type library root parameters",
    "form": "number training grad autocast inputs outputs parameter_dtype parameter_wants uniform",
    "call": "module form caller drew place",
    "api": "name object type number flag result place",
    "parameter": "number root name module kind attr dtype shape requires_grad leaf storage names constant attributes"
    " optimizer group weight_decay placement",
    "update": "parameter optimizer value:bits before:bits gradient:bits gradient_dtype gradient_norm norm changed training",
    "optimizer": "number type lr held strangers changed trainable_left gradient_norm skipped place",
    "loader": "number type batch_size drop_last workers sampler shuffled distributed length batches place",
    "batch": "loader pass index rows:bits shapes place",
    "pass": "loader pass taken ended place",
    "random": "function p asked module grad place module_training",
    "save": "path tensors live same missing unlike place",
    "load": "type given missing unexpected unlike place",
    "collective": "function group sequence reduction dtype shape given:bits left:bits asynchronous place",
    "p2p": "function peer tag number dtype shape value:bits place",
    "told": "name holds values place",
}

_schemas = {}
_own = threading.local()  # our own work: what it calls is not observed
faults = 0


def see(kind, values):
    schema = _schemas.get(kind)
    if schema is None:
        schema = _schemas[kind] = _rt.observation(kind, tuple(KINDS[kind].split()))
    _rt.observe(schema, values)


def is_off():
    """Is this thread at our own work, or the process a loader's worker?"""
    if getattr(_own, "busy", False) or not _rt.recording():
        return True
    workers = sys.modules.get("torch.utils.data._utils.worker")
    return workers is not None and getattr(workers, "_worker_info", None) is not None


def guarded(function):
    """Runs as our own work; an error of ours is counted and goes no further."""

    @functools.wraps(function)
    def safe(*args, **kwargs):
        global faults
        if is_off():
            return None
        _own.busy = True
        try:
            return function(*args, **kwargs)
        except Exception:
            faults += 1
            return None
        finally:
            _own.busy = False

    return safe
