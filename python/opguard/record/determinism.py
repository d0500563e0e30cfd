"""Determinism control of `opguard run --deterministic`, the part that must be done inside the program
(docs/guide/determinism.md). The rest is environment, set before the interpreter starts.

    install(3, {"PYTHONHASHSEED": "3"})      random.seed(3) at once; numpy and torch as they are imported
    the log's settings                       control.seed 3, control.torch.manual_seed 3, control.cudnn.benchmark False

It sets what the program begins with. What the program then sets itself stands: its own seeds are part of it.
Counterexample: a switch that this torch does not have is left out, and the log does not claim it."""

import random

from opguard.load import importing
from opguard.record.settings import CONTROL


def install(seed, variables):
    """variables: name -> value of what the tool has put into the environment."""
    CONTROL["seed"] = str(seed)
    random.seed(seed)
    CONTROL.update(("env." + name, value) for name, value in variables.items())
    importing.when_imported("numpy", lambda numpy: _seed_numpy(numpy, seed))
    importing.when_imported("torch", lambda torch: _steady_torch(torch, seed))
    importing.when_imported("torch._inductor.config", _steady_inductor)


def _set(name, step, value):
    """An old torch may lack a switch: the log then does not claim it."""
    try:
        step(value)
        CONTROL[name] = str(value)
    except Exception:
        pass


def _seed_numpy(numpy, seed):
    _set("numpy.random.seed", numpy.random.seed, seed % 2**32)


def _attribute(owner, name):
    getattr(owner, name)  # a switch that is not there must not be made up

    def step(value):
        setattr(owner, name, value)

    return step


def _steady_torch(torch, seed):
    # All devices; the CUDA generators at their initialisation. DataLoader's order and its workers' seeds
    # are drawn from the CPU generator.
    _set("torch.manual_seed", torch.manual_seed, seed)
    # An operator without a deterministic kernel warns and runs: its nondeterminism is what is looked for.
    _set(
        "deterministic_algorithms",
        lambda value: torch.use_deterministic_algorithms(value, warn_only=True),
        True,
    )
    for name, path, value in _SWITCHES:
        try:
            owner = torch
            for part in path.split("."):
                owner = getattr(owner, part)
            step = _attribute(owner, name.rpartition(".")[2])
        except AttributeError:
            continue
        _set(name, step, value)
    _set("float32_matmul_precision", torch.set_float32_matmul_precision, "highest")


# (name in the log, its last part the attribute; owner below torch; value). TF32 by the older switches: a program may
# still read those, and torch refuses to read them once the newer ones differ.
_SWITCHES = (
    ("cudnn.deterministic", "backends.cudnn", True),
    ("cudnn.benchmark", "backends.cudnn", False),
    ("cudnn.allow_tf32", "backends.cudnn", False),
    ("matmul.allow_tf32", "backends.cuda.matmul", False),
    ("fill_uninitialized_memory", "utils.deterministic", True),
)


# For versions that read no environment. What is tuned by time is another kernel in another run.
_INDUCTOR = (
    ("emulate_precision_casts", True),
    ("deterministic", True),
    ("max_autotune", False),
    ("max_autotune_gemm", False),
    ("coordinate_descent_tuning", False),
)


def _steady_inductor(config):
    # Fusion skips the rounding of intermediates in low precision; a probe in between would bring it back.
    for name, value in _INDUCTOR:
        try:
            _set("inductor." + name, _attribute(config, name), value)
        except AttributeError:
            continue
    # On the processor a loop takes vectors or one number after the other, and their exp are not the same. Which it is
    # depends on what is fused with it, so on where a probe reads: docs/design/compile.md, "Kernels".
    try:
        _set("inductor.cpp.simdlen", _attribute(config.cpp, "simdlen"), 1)
    except AttributeError:
        pass
