"""Pseudo activities: calls that matter to a training run whatever operators they dispatch, so that where the user
makes them is a boundary. To add one is to add a line to the table.

    train.py:88   scaler.step(optimizer)      opguard::scaler_step, one a call
    train.py:20   torch.manual_seed(3)        opguard::seed: it dispatches nothing, and has a boundary all the same

A mark inside of another is part of it. torch.manual_seed seeds each device by a function of the table, and the user has
written one call. Counterexample: `from random import seed` above `import torch` takes the function as it is, and is not
seen. The cost: a frame for each marked call."""

import functools
import sys
import threading

from opguard import operators
from opguard.load import importing

_COLLECTIVES = " ".join(operators.with_value("communicates", "c10d"))
_FUNCTIONAL_COLLECTIVES = " ".join(operators.with_value("communicates", "functional"))
_CLIPS = " ".join(operators.with_value("parameters", "clips"))
_SEEDS = {library: " ".join(operators.with_value("seeds", library)) for library in ("torch", "numpy", "python")}
_SCHEDULERS = (
    "LRScheduler _LRScheduler SequentialLR ChainedScheduler ReduceLROnPlateau CyclicLR CosineAnnealingWarmRestarts "
    "OneCycleLR"
)

# (activity, module, names): names in the module, or in a class of it; what this torch does not have is skipped.
# The first module of an alias is the one where the function is made.
_TABLE = (
    ("checkpoint_load", "torch.serialization", "load"),
    ("checkpoint_load", "torch", "load"),
    ("checkpoint_save", "torch.serialization", "save"),
    ("checkpoint_save", "torch", "save"),
    ("checkpoint_load", "torch.distributed.checkpoint", "load load_state_dict"),
    ("checkpoint_save", "torch.distributed.checkpoint", "save async_save save_state_dict"),
    ("checkpoint_load", "safetensors.torch", "load load_file load_model"),
    ("checkpoint_save", "safetensors.torch", "save save_file save_model"),
    ("load_state_dict", "torch.nn.modules.module", "Module.load_state_dict"),
    ("load_state_dict", "torch.optim.optimizer", "Optimizer.load_state_dict"),
    ("load_state_dict", "torch.optim.lr_scheduler", "LRScheduler.load_state_dict _LRScheduler.load_state_dict"),
    ("scheduler_step", "torch.optim.lr_scheduler", " ".join(name + ".step" for name in _SCHEDULERS.split())),
    ("clip_gradients", "torch.nn.utils.clip_grad", _CLIPS),
    ("clip_gradients", "torch.nn.utils", _CLIPS),
    ("clip_gradients", "torch.distributed.fsdp", "FullyShardedDataParallel.clip_grad_norm_"),
    ("average_update", "torch.optim.swa_utils", "AveragedModel.update_parameters update_bn"),
    ("scaler_step", "torch.amp.grad_scaler", "GradScaler.step"),
    ("scaler_update", "torch.amp.grad_scaler", "GradScaler.update"),
    ("scaler_unscale", "torch.amp.grad_scaler", "GradScaler.unscale_"),
    ("scaler_step", "torch.cuda.amp.grad_scaler", "GradScaler.step"),
    ("scaler_update", "torch.cuda.amp.grad_scaler", "GradScaler.update"),
    ("scaler_unscale", "torch.cuda.amp.grad_scaler", "GradScaler.unscale_"),
    ("collective", "torch.distributed.distributed_c10d", _COLLECTIVES),
    ("collective", "torch.distributed", _COLLECTIVES),
    ("collective", "torch.distributed._functional_collectives", _FUNCTIONAL_COLLECTIVES),
    ("wait", "torch.distributed.distributed_c10d", "Work.wait"),
    ("wait", "torch.distributed._functional_collectives", "wait_tensor AsyncCollectiveTensor.wait"),
    ("graph_replay", "torch.cuda.graphs", "CUDAGraph.replay"),
    ("seed", "torch.random", _SEEDS["torch"]),
    ("seed", "torch", _SEEDS["torch"]),
    ("seed", "torch.cuda.random", _SEEDS["torch"]),
    ("seed", "torch.cuda", _SEEDS["torch"]),
    ("seed", "random", _SEEDS["python"]),
    ("seed", "numpy.random", _SEEDS["numpy"]),
)


def replace(owner, name, original, by):
    """`by` in place of `original`, where torch.jit knows the function by its identity too.

    A script that calls torch.autograd.grad is compiled by looking up the function's id. Without an entry of its own the
    wrapper would be an unknown function there."""
    setattr(owner, name, by)
    builtins = sys.modules.get("torch.jit._builtins")
    table = getattr(builtins, "_builtin_table", None)
    if isinstance(table, dict):
        if id(original) in table:
            table[id(by)] = table[id(original)]
        return
    # The table is made from this list when a script is first compiled.
    for function, operator in list(getattr(builtins, "_builtin_ops", ())):
        if function is original:
            builtins._builtin_ops.append((by, operator))


_inside = threading.local()  # such a call within another is part of it


def _marked(tracer, function, activity):
    """The function, which counts its outermost calls. `_inside` is one for all marks: any mark within any other is part
    of it."""

    @functools.wraps(function)
    def marked(*args, **kwargs):
        if not tracer.active or getattr(_inside, "depth", 0):
            return function(*args, **kwargs)
        _, _, launches = tracer.mark(activity, sys._getframe(1), args, kwargs)
        _inside.depth = 1
        try:
            if launches:
                return tracer.devices.below(launches, lambda: function(*args, **kwargs))
            return function(*args, **kwargs)
        finally:
            _inside.depth = 0

    return marked


def install(tracer):
    """The table's functions and methods that are imported now, and those that will be. They stay wrapped."""
    wrapped = {}  # id(function) -> (function, its wrapper): an alias gets the same

    def wrap(module, activity, names):
        for name in names:
            owner_name, _, last = name.rpartition(".")
            owner = getattr(module, owner_name, None) if owner_name else module
            if owner is None:
                continue
            # A method that a class only inherits is wrapped where it is defined.
            function = vars(owner).get(last)
            if function is None or not callable(function):
                continue
            known = wrapped.get(id(function))
            if known is None:
                if getattr(function, "__code__", None) is _wrapper_code:
                    continue  # through an alias of the class
                known = wrapped[id(function)] = (function, _marked(tracer, function, activity))
            replace(owner, last, function, known[1])

    for activity, module, names in _TABLE:
        now = functools.partial(wrap, activity="opguard::" + activity, names=names.split())
        if module == "torch":
            now(tracer.torch)  # whole, but its import is only about to end
        else:
            importing.when_imported(module, now)


# All wrappers have one code object: by it one is told from a function of torch's.
_wrapper_code = _marked(None, len, "").__code__
