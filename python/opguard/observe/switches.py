"""Switches of the library's arithmetic and variables of the environment: values, who set them, whether they stay.

    torch.backends.cudnn.benchmark = True     set to True in train.py:12, in step 0
    a library that sets it back in step 2     another value at the end of step 2, found by reading

Setters are wrapped to know their place. Values are read (record/settings.py) at the beginning and at each step's end,
so that a change by whatever way shows. The cost: some twenty reads a step."""

import functools
import os
import sys

from opguard.observe import facts, places
from opguard.record import settings

NAMES = (
    "deterministic_algorithms", "deterministic_warn_only", "fill_uninitialized_memory", "cudnn.deterministic",
    "cudnn.benchmark",
    "cudnn.allow_tf32", "matmul.allow_tf32", "matmul.allow_bf16_reduced_precision_reduction",
    "matmul.allow_fp16_reduced_precision_reduction", "float32_matmul_precision", "num_threads", "default_dtype",
    "flush_denormal",
)  # fmt: skip
_VARIABLES = (
    "PYTHONHASHSEED", "CUBLAS_WORKSPACE_CONFIG", "NVIDIA_TF32_OVERRIDE", "OMP_NUM_THREADS", "MKL_NUM_THREADS",
    "MKL_CBWR",
    "CUDA_DEVICE_MAX_CONNECTIONS", "FLASH_ATTENTION_DETERMINISTIC",
)  # fmt: skip
_PREFIXES = ("NCCL_", "TORCHINDUCTOR_", "TRITON_CACHE", "NVTE_ALLOW", "TORCH_NCCL_")
# function of torch -> the switch it sets
_SETTERS = (
    ("use_deterministic_algorithms", "deterministic_algorithms"),
    ("set_deterministic_debug_mode", "deterministic_algorithms"),
    ("set_float32_matmul_precision", "float32_matmul_precision"), ("set_num_threads", "num_threads"),
    ("set_default_dtype", "default_dtype"), ("set_flush_denormal", "flush_denormal"),
)  # fmt: skip

_last = {}  # switch -> value as it was last read
_first = {}


def is_ours(name):
    """Variables that change numbers or their order. Others are left out of the facts."""
    return name in _VARIABLES or name.startswith(_PREFIXES)


def environment():
    """Variables at the start, and where the program sets them. sys.flags tells what Python began with.

    os.environ's class is wrapped, so os.environ.update() and setdefault() are seen. Counterexample: os.putenv()."""
    facts.put("environment", {n: v for n, v in os.environ.items() if is_ours(n)})
    facts.put("hash_random", bool(sys.flags.hash_randomization))
    kind = type(os.environ)
    original = kind.__setitem__

    @functools.wraps(original)
    def __setitem__(self, key, value):
        original(self, key, value)
        if self is os.environ and isinstance(key, str) and is_ours(key):
            place = places.caller()
            if place is not None:
                facts.add("variables", {"name": key, "value": str(value), "place": place, "late": _late(key)})

    kind.__setitem__ = __setitem__


def _late(name):
    """Is what reads the variable there already? A variable that is set after its reader looked has no effect.

    PYTHONHASHSEED always is: Python reads it before the first line. CUBLAS_WORKSPACE_CONFIG is, once CUDA is
    initialised."""
    torch = sys.modules.get("torch")
    if name == "PYTHONHASHSEED":
        return True
    if torch is None:
        return False
    if name.startswith(("CUBLAS", "CUDA", "NVIDIA")):
        return bool(torch.cuda.is_initialized())
    if name.startswith(("OMP", "MKL")):
        return True
    if name.startswith(("NCCL", "TORCH_NCCL")):
        return bool(torch.distributed.is_available() and torch.distributed.is_initialized())
    return name.startswith("TORCHINDUCTOR") and "torch._inductor.config" in sys.modules


def _read(torch):
    """{switch: text} of those that this torch has; one that cannot be read is left out."""
    found = {}
    for name, read in settings.READERS:
        if name in NAMES:
            try:
                value = read(torch)
            except Exception:
                continue
            if value is not None:
                found[name] = str(value)
    return found


def install(torch):
    by = {n: "control" for n in NAMES if n in settings.CONTROL}
    _last.update(_read(torch))
    _first.update(_last)
    facts.put("switches", {name: {"first": value, "by": by.get(name, "")} for name, value in _last.items()})
    for function, switch in _SETTERS:
        _wrap(torch, function, switch)
    _wrap_flags(torch)
    _wrap_attributes(type(torch.backends.cuda.matmul), "matmul.")
    deterministic = getattr(torch.utils, "deterministic", None)
    if deterministic is not None:
        _wrap_attributes(type(deterministic), "")
    _wrap_compile(torch)


def _wrap(owner, function, switch):
    original = getattr(owner, function, None)
    if original is None:
        return

    @functools.wraps(original)
    def setter(*args, **kwargs):
        result = original(*args, **kwargs)
        _told(switch)
        return result

    setattr(owner, function, setter)


def _wrap_flags(torch):
    """torch.backends.cudnn and its like: one descriptor class."""
    flag = getattr(torch.backends, "ContextProp", None)
    if flag is None:
        return
    original = flag.__set__

    @functools.wraps(original)
    def __set__(self, obj, value):
        original(self, obj, value)
        for name, held in vars(type(obj)).items():
            if held is self:
                _told(type(obj).__module__.rpartition(".")[2] + "." + name)

    flag.__set__ = __set__


def _wrap_attributes(kind, start):
    """Switches that are plain attributes: `torch.backends.cuda.matmul.allow_tf32 = True` calls its class's
    __setattr__."""
    original = kind.__setattr__

    def __setattr__(self, name, value):
        original(self, name, value)
        _told(start + name)

    kind.__setattr__ = __setattr__


def _told(switch):
    """A setter has returned: the value is read back, since a setter may do something else with what it was given."""
    if switch not in _last:
        return
    try:
        value = _read(sys.modules["torch"]).get(switch)
        place = places.caller()
    except Exception:
        return
    if place is not None:  # torch's own contexts, which put it back, are torch's
        facts.add("sets", {"name": switch, "value": str(value), "place": place, "at_step": facts.step})
        _last[switch] = str(value)


def poll():
    """At a step's end. A switch that has another value, and that no setter told of, was changed some other way: it has
    a step and no place."""
    torch = sys.modules.get("torch")
    if torch is None or not _last:
        return
    now = _read(torch)
    for name, value in now.items():
        if value != _last.get(name):
            facts.add("changes", {"name": name, "value": value, "before": _last.get(name), "at_step": facts.step})
            _last[name] = value
    facts.put("switches_at_end", now)


def _wrap_compile(torch):
    """Where torch.compile is called, and whether kernels are picked by measuring time: then two runs may pick
    others."""
    original = getattr(torch, "compile", None)
    if original is None:
        return

    @functools.wraps(original)
    def compile(model=None, *args, **kwargs):
        place = places.caller()
        if place is not None:
            options = kwargs.get("options") or {}
            tuned = "max-autotune" in str(kwargs.get("mode")) or any(
                options.get(o) for o in ("max_autotune", "coordinate_descent_tuning")
            )
            facts.add("compiled", {"place": place, "mode": str(kwargs.get("mode") or ""), "tuned": bool(tuned)})
        return original(model, *args, **kwargs)

    torch.compile = compile


def gather():
    """Values at the end. Modules that the program has not imported are not imported for it."""
    poll()
    torch = sys.modules.get("torch")
    facts.put("environment_at_end", {n: v for n, v in os.environ.items() if is_ours(n)})
    if torch is not None:
        facts.put("torch", str(torch.__version__))
        facts.put("cuda", bool(torch.cuda.is_initialized()))
    config = sys.modules.get("torch._inductor.config")
    utils = sys.modules.get("torch._dynamo.utils")
    if config is not None:
        facts.put(
            "inductor",
            {
                name: str(getattr(config, name))
                for name in ("max_autotune", "max_autotune_gemm", "coordinate_descent_tuning", "deterministic")
                if hasattr(config, name)
            },
        )
    if utils is not None:
        facts.put("compiled_frames", int(utils.counters.get("frames", {}).get("ok", 0)))
    facts.put("triton_autotuners", _autotuners())


def _autotuners():
    """Kernels under @triton.autotune that picked a configuration by time."""
    module = sys.modules.get("triton.runtime.autotuner")
    if module is None:
        return 0
    import gc

    return sum(
        1 for held in gc.get_objects() if type(held) is module.Autotuner and len(getattr(held, "configs", ())) > 1
    )
