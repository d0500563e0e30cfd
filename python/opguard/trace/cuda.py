"""CUDA's activities: the library opguard_inject.so in the package's folder, the libcupti of the program's own CUDA, and
torch's profiler, which wants CUPTI too.

    --activities     auto                                cupti         launches         operators
    what is asked    CUPTI, else intercepted launches    CUPTI only    launches only    nothing, this is not called

CUPTI serves one tool at a time. So a program that starts torch.profiler with CUDA activities gets it. Counterexample:
libcupti is not begun at once. A process in which CUPTI has initialised the driver cannot fork and use it. So the
library waits for the driver's own initialisation."""

import ctypes
import glob
import os
import sys

from opguard.load import importing
from opguard.trace.activity_plugin import Plugin

INJECT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "opguard_inject.so")


def cupti_files(torch, options):
    """Where a libcupti may lie, the program's own CUDA first: paths that exist, then bare names for the loader's own
    search.

    Folders are those of torch/lib, nvidia/*/lib of each entry of sys.path, $CUDA_HOME and /usr/local/cuda, the
    environment's lib. In each folder the own major version comes first: libcupti.so.12 for torch built with CUDA 12."""
    major = (getattr(torch.version, "cuda", None) or "").partition(".")[0]
    names = ["libcupti.so." + major] if major else []
    names += [name for name in ("libcupti.so.13", "libcupti.so.12", "libcupti.so") if name not in names]
    folders = [os.path.join(os.path.dirname(torch.__file__), "lib")]
    for entry in sys.path:  # NVIDIA's wheels: nvidia/cuda_cupti/lib, nvidia/cu13/lib
        folders += sorted(glob.glob(os.path.join(glob.escape(entry or "."), "nvidia", "*", "lib")))
    for home in [options.cuda_home, "/usr/local/cuda"]:
        if home:
            folders += [os.path.join(home, "extras", "CUPTI", "lib64"), os.path.join(home, "lib64")]
    folders.append(os.path.join(sys.prefix, "lib"))
    found = [os.path.join(folder, name) for folder in folders for name in names]
    return [path for path in found if os.path.exists(path)] + names


def plugin(torch, options):
    """The plugin of CUDA, None where torch has none or the user wants operators only."""
    asked = options.activities in ("cupti", "launches")
    if not asked and not getattr(torch.version, "cuda", None):
        return None
    if not os.path.exists(INJECT):
        return None
    made = Plugin(INJECT)
    configure = made.library.opguard_inject_configure
    configure.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_char_p]
    files = [] if options.activities == "launches" else cupti_files(torch, options)
    configure(options.activities != "launches", options.activities != "cupti", "\n".join(files).encode())
    # The driver tells the library when it is initialised; where it tells another tool's, we do.
    if os.path.realpath(options.injection or ".") != os.path.realpath(INJECT):
        # torch's own queue: what it holds runs once CUDA is initialised, so asking here initialises nothing.
        lazy = getattr(getattr(torch, "cuda", None), "_lazy_call", None)
        if lazy is not None:
            lazy(lambda: made.library.opguard_inject_begin())
    return made


def follow_profiler(devices):
    """When torch.autograd.profiler is imported, which torch does at its own time. `devices` then gives CUPTI up as it
    is asked for."""
    importing.when_imported("torch.autograd.profiler", lambda module: _leave_cupti_to_profiler(devices, module))


def _leave_cupti_to_profiler(devices, module):
    """torch.profiler takes CUPTI without asking; it gets it in order, and the trace says so."""
    for name in ("_prepare_profiler", "_enable_profiler"):
        original = getattr(module, name, None)
        if original is None:
            continue

        def before(*args, _original=original, **kwargs):
            try:
                activities = args[1] if len(args) > 1 else ()
                if any("CUDA" in str(activity) for activity in activities):
                    devices.leave_to("torch.profiler")
            except Exception:
                devices.report()
            return _original(*args, **kwargs)

        setattr(module, name, before)
