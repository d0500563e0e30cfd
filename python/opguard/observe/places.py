"""Where the program did something: the innermost frame of its own source, and the library it went through.

    rng.shuffle(x) in data.py:12                      data.py:12
    a transform of torchvision called by data.py:30   data.py:30, through torchvision.transforms.v2
    tempfile making a name                            None: plumbing, whose numbers reach no value

The program's source: docs/design/architecture.md, with the folder of its main script. The cost: a walk up the frames,
which is made only where something is noted. Counterexample: a thread of a library's has no frame of the program's, and
no place."""

import linecache
import os
import sys

from opguard.load import roots

# Whoever draws below these names files, ports and processes.
_PLUMBING = (
    "tempfile", "multiprocessing", "asyncio", "uuid", "socket", "ssl", "http", "urllib", "urllib3", "requests",
    "email", "filelock",
    "huggingface_hub", "fsspec", "concurrent", "subprocess", "wandb", "tensorboard", "logging", "importlib", "hashlib",
    "torch.distributed", "torch._inductor", "torch._dynamo", "torch.multiprocessing", "torch.fx", "torch._functorch",
    "triton", "torchelastic",
)  # fmt: skip
# Part of drawing itself.
_THROUGH = ("random", "secrets", "numpy", "torch", "functools", "contextlib")

# Since 3.10; before that the library is named too.
_STANDARD = getattr(sys, "stdlib_module_names", frozenset())

# Frames that stand around calls of torch's own: torch._dynamo puts them around torch.manual_seed.
_TRANSPARENT = ("torch._dynamo.eval_frame", "torch._compile")

_roots = None
_main = ""
_own = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def begin(tree, packages):
    """tree and packages: what the user counts as the program (roots.Roots), as for the tracer."""
    global _roots
    _roots = roots.Roots(tree, packages)


def is_users(frame):
    """Also what python -c or a pipe gave, as long as it is the main module: exec() in a library is none of the
    program's."""
    path = frame.f_code.co_filename
    if path in ("<string>", "<stdin>"):
        return frame.f_globals.get("__name__") == "__main__"
    return bool(_roots.path_of(path)) or _is_beside_main(path)


def _is_beside_main(path):
    """A script that is started from elsewhere; a launcher's script lies in the interpreter's folder."""
    global _main
    if path.startswith("<"):
        return False
    if not _main:
        main = getattr(sys.modules.get("__main__"), "__file__", None)
        if not main:
            return False
        folder = os.path.dirname(os.path.abspath(main))
        _main = "-" if folder.startswith((sys.prefix, sys.base_prefix)) or "-packages" in folder else folder + os.sep
    return _main != "-" and os.path.abspath(path).startswith(_main) and "-packages" + os.sep not in path


def _module(frame):
    name = frame.f_globals.get("__name__")
    return name if isinstance(name, str) else ""


def _below(name, names):
    """"torch.distributed.rpc" is below "torch.distributed", and "torch.distributed_x" is not."""
    return any(name == n or name.startswith(n + ".") for n in names)


def caller(most=0):
    """{"file", "line", "function", "text", "through"} or None. most: frames looked at, 0 for all."""
    frame = sys._getframe(1)
    through, seen = "", 0
    while frame is not None and (not most or seen < most):
        seen += 1
        path = frame.f_code.co_filename
        if not path.startswith(_own):
            if is_users(frame):
                return describe(frame.f_code, frame.f_lineno, through)
            name = _module(frame)
            if name in _TRANSPARENT:
                frame = frame.f_back
                continue
            if _below(name, _PLUMBING) and not through:
                return None
            if name and not through and not _below(name, _THROUGH) and name.partition(".")[0] not in _STANDARD:
                through = name
        frame = frame.f_back
    return None


def is_direct():
    """Did the program's own source call, with nothing but drawing functions between?"""
    frame = sys._getframe(1)
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_own):
            if is_users(frame):
                return True
            if not _below(_module(frame), _THROUGH):
                return False
        frame = frame.f_back
    return False


def describe(code, line, through=""):
    """A place as it is written down: `line` from 1, `text` the stripped source line, at most 200 characters."""
    path = code.co_filename
    if not path.startswith("<"):
        path = os.path.abspath(path)
    return {
        "file": path, "line": line or 0, "function": getattr(code, "co_qualname", code.co_name),
        "text": linecache.getline(path, line or 0).strip()[:200], "through": through,
    }  # fmt: skip


def is_users_file(path):
    return bool(_roots.path_of(path)) or _is_beside_main(path)
