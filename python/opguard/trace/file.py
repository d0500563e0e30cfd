"""The trace on disk: docs/formats/plan-format.md, section "Trace".

    trace-4711-0.json    {"opguard_trace": 2, "steps": 3, "complete": true, "uses": [{"path": ".../rope.py", "line": 15,
                         "opcode": "BINARY_OP", "callee": "aten::mul", "activities": {"aten::mul.Tensor": 24}, ...}]}

It is written at a step's end, at most every 2 s, and whole each time. A program that is killed leaves its last one,
with "complete": false. Counterexample: appending. A use's counts change as long as the program runs, so a line would be
old at once. The cost: one pass over all uses at each write; nothing is written between."""

import contextlib
import json
import os
import platform
import sys


class TraceFile:
    """trace-<pid>-<n>.json, replaced whole at each write. Its name is taken at the first."""

    def __init__(self, folder):
        self.folder, self.path = folder, ""

    def write(self, document):
        """The whole document, in place of the one before. O_EXCL takes the name, so that two processes of one pid, one
        after the other, have two files. A reader finds the old file or the new one, never a part."""
        if not self.path:
            n = 0
            while True:  # a pid may have been used before in this folder
                path = os.path.join(self.folder, "trace-%d-%d.json" % (os.getpid(), n))
                try:
                    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
                    break
                except FileExistsError:
                    n += 1
            self.path = path
        part = self.path + ".part"
        try:
            with open(part, "w", encoding="utf-8") as out:
                json.dump(document, out)
                out.write("\n")
            os.replace(part, self.path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(part)
            raise


def document(tracer, complete):
    """What the tracer knows, as plan-format.md has it. The caller holds the tracer's lock: another thread may count."""
    roots, missing = tracer.roots.describe()
    files = tracer.roots.loaded_files()
    files.update(use.path for use in tracer.uses.values())
    rank, world = _rank(tracer)
    on_devices = _devices(tracer)
    return {
        "opguard_trace": 2,
        "python": platform.python_version(),
        "torch": str(tracer.torch.__version__),
        "argv": [str(a) for a in getattr(sys, "argv", [])],
        "rank": rank,
        "world": world,
        "steps": tracer.steps,
        "complete": complete,
        "newest": tracer.newest,
        "ended": tracer.ended,
        "activities": tracer.activities,
        "foreign": tracer.foreign,
        "foreign_compute": tracer.foreign_compute,
        "accumulated": tracer.accumulated,
        "micro_batches": {str(count): steps for count, steps in tracer.micro_batches.items()},
        "errors": tracer.errors,
        **on_devices,
        "missing_packages": missing,
        "roots": roots,
        "files": sorted(files),
        "uses": [_use(use) for use in tracer.uses.values()],
        "calls": tracer.calls.describe(),
    }


def _rank(tracer):
    """(rank, world) of the process group, else what the launcher's variables said. A group that fails when it is asked
    is none: the trace is written all the same."""
    try:
        distributed = tracer.torch.distributed
        if distributed.is_available() and distributed.is_initialized():
            return distributed.get_rank(), distributed.get_world_size()
    except Exception:
        pass
    return tracer.options.rank, tracer.options.world


def _devices(tracer):
    """Nothing where no device was used, so that a trace of a machine without one has no such fields."""
    found = tracer.devices.describe() if tracer.devices is not None else []
    if not found:
        return {}
    return {
        "devices": found,
        "foreign_kernels": tracer.devices.foreign,
        "accumulated_kernels": tracer.devices.accumulated,
    }


def _use(use):
    place = use.place
    on_device = {}
    if use.kernels or use.transfers:
        on_device = {
            "kernels": use.kernels,
            "kernel_phases": use.kernel_phases,
            "transfers": use.transfers,
            "streams": sorted(use.streams),
            "device_ns": use.device_ns,
        }
    return {
        "path": use.path,
        **place.describe(),
        "callee": use.callee,
        "order": use.order,
        # The operator that came first comes once an execution.
        "calls": next(iter(use.activities.values()), 0),
        "activities": use.activities,
        "backward": use.backward,
        "phases": use.phases,
        "compute": use.compute,
        "writes": sorted(use.writes),
        **({"draws": True} if use.draws else {}),
        **on_device,
        "dtypes": use.dtypes,
    }
