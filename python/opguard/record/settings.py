"""What can change a run's bits besides its source. It is written into each log's header, so that logs made under
unlike settings can be told apart (docs/guide/determinism.md).

    "torch": "2.13.0+cpu", "num_threads": "2", "env.OMP_NUM_THREADS": "2", "control.seed": "3"

Values are texts; one that cannot be read is left out. Nothing is imported for it, and no device is started.
Counterexample: variables such as NCCL_DEBUG_FILE say where something is kept, and change no bit."""

import gc
import os
import platform
import sys
import zlib

# What determinism control has set in this process: name -> value.
CONTROL = {}

_VARIABLES = (
    "PYTHONHASHSEED", "CUBLAS_WORKSPACE_CONFIG", "NVIDIA_TF32_OVERRIDE", "OMP_NUM_THREADS", "MKL_NUM_THREADS",
    "MKL_CBWR", "TORCHDYNAMO_DISABLE", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_LAUNCH_BLOCKING",
    "ATEN_CPU_CAPABILITY", "DNNL_MAX_CPU_ISA", "ONEDNN_MAX_CPU_ISA", "FLASH_ATTENTION_DETERMINISTIC", "TRITON_CACHE_AUTOTUNING",
)  # fmt: skip
_PREFIXES = ("NCCL_", "GLOO_", "TORCH_NCCL_", "TORCHINDUCTOR_", "PYTORCH_CUDA_ALLOC_CONF", "NVTE_")
# Where things are kept and what is said about them changes no bit.
_HARMLESS = ("_DIR", "_FILE", "_DEBUG", "_DEBUG_SUBSYS")

# Files that say which rings and trees NCCL makes: what is in them counts, not where they lie.
_READ = ("NCCL_TOPO_FILE", "NCCL_GRAPH_FILE")


def control():
    return dict(CONTROL)


def collect():
    """Observed now; call it again for what the program has set since. Never raises, imports nothing."""
    found = {"control." + name: value for name, value in CONTROL.items()}
    found.update(
        python=platform.python_version(),
        hostname=platform.node(),
        platform=sys.platform + "-" + platform.machine(),
        optimize=str(sys.flags.optimize),
    )
    for name, value in os.environ.items():
        if name in _READ:
            found["env." + name] = _contents(value)
        elif name in _VARIABLES or (name.startswith(_PREFIXES) and not name.endswith(_HARMLESS)):
            found["env." + name] = value
    numpy = sys.modules.get("numpy")
    if hasattr(numpy, "__version__"):
        found["numpy"] = str(numpy.__version__)
    torch = sys.modules.get("torch")
    if hasattr(torch, "__version__"):
        for name, read in READERS:
            try:
                value = read(torch)
            except Exception:
                continue  # not in this torch, or set in two ways at once
            if value is not None:
                found[name] = str(value)
    found.update(_compiled())
    return found


def _contents(path):
    """crc32 of a file that a variable names: two machines may have the same topology at two paths."""
    try:
        with open(path, "rb") as file:
            return "crc32 %08x" % zlib.crc32(file.read())
    except OSError:
        return "cannot be read"


def _compiled():
    """What torch.compile made so far; the same with probes as without, but for `opguard_compiled_unprobed`."""
    found = {}
    for module, readers in _COMPILER.items():
        loaded = sys.modules.get(module)
        if loaded is None:
            continue
        for name, read in readers.items():
            try:
                value = str(read(loaded))
            except Exception:
                continue  # not in this torch
            if value:
                found[name] = value
    return found


def _world(torch):
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_world_size()
    return os.environ.get("WORLD_SIZE", "1")


def _device(torch):
    # Asking for the name would make a context in a process that has none.
    if torch.cuda.is_initialized():
        return torch.cuda.get_device_name()
    return "cpu" if not torch.backends.cuda.is_built() else None


def _config_text(config):
    """A triton.Config: its own constants, and what it says of launching."""
    held = dict(getattr(config, "kwargs", {}), num_warps=getattr(config, "num_warps", None), num_stages=getattr(config, "num_stages", None))
    return ",".join("%s:%s" % (name, value) for name, value in sorted(held.items()) if value is not None)


def _tuned_by_inductor(codecache):
    """{"triton_poi_fused_add_0=XBLOCK:128,num_warps:4"}: kernels that have chosen among configurations."""
    found = set()
    for module in codecache.PyCodeCache.modules:
        for name, value in list(vars(module).items()):
            launchers = getattr(value, "launchers", None)
            if type(value).__name__.endswith("Autotuner") and isinstance(launchers, list) and len(launchers) == 1:
                found.add("%s=%s" % (name, _config_text(launchers[0].config)))
    return found


def _tuned_by_program(autotuner):
    """The same of the program's own @triton.autotune; all that it has chosen, for whatever key."""
    found = set()
    for value in gc.get_objects():
        if type(value) is autotuner.Autotuner:
            name = getattr(getattr(value, "base_fn", None), "__name__", "kernel")
            found.update("%s=%s" % (name, _config_text(config)) for config in list(value.cache.values()))
    return found


# Loaded module -> {setting: how it is read}; a module that is not loaded has nothing to say.
_COMPILER = {
    "torch._inductor.codecache": {
        "inductor_tuned": lambda codecache: "; ".join(sorted(_tuned_by_inductor(codecache))),
    },
    "triton.runtime.autotuner": {
        "triton_tuned": lambda autotuner: "; ".join(sorted(_tuned_by_program(autotuner))),
    },
    "torch._dynamo.utils": {
        "dynamo_graphs": lambda utils: utils.counters.get("stats", {}).get("unique_graphs", 0),
        "dynamo_graph_breaks": lambda utils: sum(utils.counters.get("graph_break", {}).values()),
        "dynamo_frames": lambda utils: utils.counters.get("frames", {}).get("ok", 0),
    },
    "torch._dynamo.convert_frame": {
        "dynamo_recompiles": lambda frames: sum(n - 1 for n in frames.FRAME_COMPILE_COUNTER.values() if n > 1),
    },
    "opguard.compiled.unprobed": {
        "opguard_compiled_unprobed": lambda unprobed: ", ".join(
            f"{reason}: {count}" for reason, count in sorted(unprobed.counts().items())
        ) or "0",
    },
}

READERS = (
    ("torch", lambda torch: torch.__version__),
    ("cuda", lambda torch: torch.version.cuda),
    ("cudnn", lambda torch: torch.backends.cudnn.version() if torch.cuda.is_initialized() else None),
    ("device", _device),
    ("world", _world),
    ("seed", lambda torch: torch.initial_seed()),
    ("deterministic_algorithms", lambda torch: torch.are_deterministic_algorithms_enabled()),
    ("deterministic_warn_only", lambda torch: torch.is_deterministic_algorithms_warn_only_enabled()),
    ("fill_uninitialized_memory", lambda torch: torch.utils.deterministic.fill_uninitialized_memory),
    ("cudnn.deterministic", lambda torch: torch.backends.cudnn.deterministic),
    ("cudnn.benchmark", lambda torch: torch.backends.cudnn.benchmark),
    ("cudnn.allow_tf32", lambda torch: torch.backends.cudnn.allow_tf32),
    ("matmul.allow_tf32", lambda torch: torch.backends.cuda.matmul.allow_tf32),
    (
        "matmul.allow_bf16_reduced_precision_reduction",
        lambda torch: torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction,
    ),
    (
        "matmul.allow_fp16_reduced_precision_reduction",
        lambda torch: torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction,
    ),
    ("float32_matmul_precision", lambda torch: torch.get_float32_matmul_precision()),
    ("num_threads", lambda torch: torch.get_num_threads()),
    ("default_dtype", lambda torch: str(torch.get_default_dtype()).rpartition(".")[2]),
    ("cpu_capability", lambda torch: torch.backends.cpu.get_cpu_capability()),
    ("flush_denormal", lambda torch: torch.get_flush_denormal() if hasattr(torch, "get_flush_denormal") else None),
)
