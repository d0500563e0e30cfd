"""The kinds of observations and their fields, as docs/formats/observations.md has them; and how one is said.

    say("told", ("steps", True, [], "train.py:9:main"))     a row of kind `told`, where this step is recorded

A digest's field is named "value:bits" here and "value" in the log. Nothing is said in a process that reads data for
another one, nor while torch.compile traces. The cost: 0.5 us beside _rt.observe."""

import multiprocessing
import sys

from opguard import _rt

FIELDS = {
    "group": "rank world backend",
    "module": "number name type library root parameters batch_first repeated momentum",
    "form": "number training grad autocast inputs outputs parameter_dtype parameter_wants uniform",
    "call": "module form caller drew place",
    "api": "name object type number flag result place",
    "parameter": "number root name module kind attr dtype shape requires_grad leaf storage names constant attributes optimizer group weight_decay placement",
    "update": "parameter optimizer value:bits before:bits gradient:bits gradient_dtype gradient_norm norm changed training as_loaded",
    "optimizer": "number type lr held strangers changed trainable_left gradient_norm skipped place decays noise_fresh noise:bits aliased",
    "loader": "number type batch_size drop_last workers sampler shuffled distributed length batches place",
    "batch": "loader pass index rows:bits shapes place ends_are_targets",
    "pass": "loader pass taken ended place",
    "random": "function p asked module grad place module_training state:bits again",
    "save": "path tensors live same missing unlike place trained_missing",
    "load": "type given missing unexpected unlike place own of object",
    "criterion": "function inputs given fits autocast grad place",
    "collective": "function group sequence reduction dtype shape given:bits left:bits asynchronous place",
    "p2p": "function peer tag number dtype shape value:bits place",
    "told": "name holds values place",
}  # fmt: skip

_numbers = {}
_process = {"on": False, "reads_data": None, "group": None, "rank": None}
_resets = []  # called where a log begins: nothing has been said in it


def begin():
    """A log begins here: a recording's, or a forked child's. Numbers of objects begin at 0 again, and all is said anew:
    a child's log is read without its parent's."""
    if not _numbers:
        _numbers.update((kind, _rt.observation(kind, tuple(fields.split()))) for kind, fields in FIELDS.items())
    _process.update(on=True, reads_data=None, group=None)
    for reset in _resets:
        reset()


def is_on():
    return _process["on"]


def end():
    _process["on"] = False


def at_begin(reset):
    _resets.append(reset)


def watching():
    """Is this step's training observed, in this process? Asked at each wrapped call, so the answer to "is it a worker"
    is kept."""
    return _rt.observing() and _process["on"] and not (_reads_data() if _process["reads_data"] is None else _process["reads_data"])


def _reads_data():
    """A loader's worker: what it does is the loader's business."""
    target = getattr(multiprocessing.current_process(), "_target", None)
    worker = sys.modules.get("torch.utils.data._utils.worker")
    found = getattr(target, "__name__", "") == "_worker_loop" or getattr(worker, "_worker_info", None) is not None
    _process["reads_data"] = found
    return found


def say(kind, values):
    """A row. The process group is said before the first row that comes after it was made: there is no call to hear it
    by."""
    c10d = sys.modules.get("torch.distributed.distributed_c10d")
    if c10d is not None:
        group = c10d.GroupMember.WORLD
        if group is not None and group is not _process["group"]:
            _process["group"] = group
            _say_group(c10d)
    _rt.observe(_numbers[kind], values)


def _say_group(c10d):
    try:
        _rt.observe(_numbers["group"], (c10d.get_rank(), c10d.get_world_size(), str(c10d.get_backend())))
    except Exception:
        _process["group"] = None  # half made
