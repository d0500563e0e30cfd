"""`opguard run --simulate`: every rank computes the whole model; what it is told of its place stays what it was.

    torchrun --nproc-per-node 2 train.py --tp 2     rank 1 of 2, as in the parallel run: its data, its seeds
    parallelize_module(model, mesh, plan)           leaves the parameters whole, and adds no collective

A seam is a function of a library at which it learns that it is sharded. One file a library replaces its own:
dtensor.py, fsdp.py, megatron.py. This one knows which versions were looked at, who calls, and how to refuse.

Counterexample: a program that sends its own partial sums has no seam. It ends with one line that names the call.
The cost: each rank needs the memory and the time of the one process.
"""

import os
import sys
import weakref

from opguard.load import exits, importing

# Versions whose seams were read and tried; any other is refused.
KNOWN = {"torch": ("2.13.0",), "megatron-core": ("0.16.1",)}

_LIBRARIES = ("torch", "megatron.core", "opguard")
_used = {}  # seam -> how often it stood in
_replicas = []  # tuples of global ranks that compute the same on the same data
_refused = []


class ByIdentity:
    """Notes on objects that are compared elementwise, as tensors are: by identity, and not kept alive."""

    def __init__(self):
        self._found = {}

    def put(self, key, value):
        self._found[id(key)] = (weakref.ref(key), value)

    def get(self, key):
        reference, value = self._found.get(id(key), (None, None))
        return value if reference is not None and reference() is key else None


class Refused(SystemExit):
    """Not an Exception: a program that goes on after errors must not go on sharded."""


def refuse(why):
    """Ends the process: half of a simulation would be compared as if it were one."""
    if not _refused:
        _refused.append(why)
        sys.stderr.write("opguard: --simulate: %s\n" % why)
        sys.stderr.flush()
    raise Refused(2)


def check_version(library, version):
    plain = str(version).partition("+")[0]
    if plain not in KNOWN[library]:
        refuse("the seams of %s %s are not known; known are: %s" % (library, version, ", ".join(KNOWN[library])))


def on_import(name, callback):
    """callback(module) as it has been imported. A seam that is not as it was known is refused, never left out."""

    def call(module):
        try:
            callback(module)
        except Exception as error:
            refuse("the seam in %s is not as it was known: %s: %s" % (name, type(error).__name__, error))

    importing.when_imported(name, call)


def used(seam):
    """A seam stood in for something. The log's header counts them: simulate.seams."""
    _used[seam] = _used.get(seam, 0) + 1


def is_used():
    return bool(_used)


def replicate(ranks):
    """These global ranks are one rank of the reference: they have the same data, and now the same model."""
    ranks = tuple(sorted(set(int(r) for r in ranks)))
    if len(ranks) > 1 and ranks not in _replicas:
        _replicas.append(ranks)


def replicas():
    return list(_replicas)


def settings():
    """For the log's header. C++ reads the first (session/simulate.cc)."""
    found = {"simulate": ";".join(",".join(map(str, ranks)) for ranks in _replicas) or "none"}
    if _used:
        found["simulate.seams"] = ", ".join("%s: %d" % (name, count) for name, count in sorted(_used.items()))
    return found


def module_of(frame):
    """The name of the module whose code a frame runs, "" for none."""
    return frame.f_globals.get("__name__") or ""


def is_library(name, libraries=_LIBRARIES):
    """"torch.nn" is of "torch"; "torchvision" is not."""
    return any(name == library or name.startswith(library + ".") for library in libraries)


def calling_frame(depth=1):
    """The innermost frame that is the program's, from `depth` callers up; None: only libraries are on the stack."""
    frame = sys._getframe(depth + 1)
    while frame is not None and is_library(module_of(frame)):
        frame = frame.f_back
    return frame


def place(frame):
    return "?" if frame is None else "%s:%d" % (os.path.relpath(frame.f_code.co_filename), frame.f_lineno)


def refuse_call(what, why):
    refuse("%s, called at %s, %s" % (what, place(calling_frame()), why))


def refusing(what, why):
    """In place of a function that no simulation stands for."""

    def call(*args, **kwargs):
        refuse_call(what, why)

    call.__name__ = what.rpartition(".")[2]
    return call


def world():
    """(rank, size) of the process group of all, (0, 1) without one."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return 0, 1
    return distributed.get_rank(), distributed.get_world_size()


def _check_seams(*unused):
    """A parallel program that has met no seam is parallel by itself."""
    if not _used and not _refused and world()[1] > 1:
        refuse(
            "this program parallelises by hand: no seam of a known library (DTensor, FSDP2, megatron-core) was met "
            "before its first step, so nothing stands in for what its %d ranks share (docs/design/simulate.md)"
            % world()[1]
        )


def _on_torch(torch):
    check_version("torch", torch.__version__)
    sys.modules["torch.optim.optimizer"].register_optimizer_step_pre_hook(_check_seams)


def _at_exit():
    if not _used and not _refused and world()[1] > 1:
        sys.stderr.write("opguard: --simulate: this program has met no seam of a known library\n")


def install():
    from opguard.simulate import by_hand, dtensor, fsdp, megatron

    on_import("torch", _on_torch)
    for part in (by_hand, dtensor, fsdp, megatron):
        part.install()
    exits.at_exit(_at_exit)
