"""Kernels outside the dispatcher: Triton launches and functions of native extensions; and which of their tensor
arguments they write, for no version counter says so.

    kernel[grid](x, out)      before: x and out are digested; after: again. out differs, so the plan has
                              "writes": ["arg1"], and the probe is og.writes

Counterexample: an operator of aten declares in its schema what it writes, and torch counts it (_SAID).
To read all arguments twice is slow, so each expression is watched for its first calls only."""

import functools
import mmap
import os
import struct
import sys
import threading
import types

from opguard.load import importing

try:
    from opguard import _rt
except ImportError:  # only the Python files are there
    _rt = None

_MAX_TENSORS = 256  # of one call

# -- what a call writes

# Operators of these namespaces say what they write, or are followed by other means (collectives).
_SAID = ("aten", "prim", "prims", "profiler", "c10d", "_c10d_functional", "higher_order", "quantized", "mkldnn", "mkl", "inductor")
_may_write = {}


def may_write_unsaid(name, func):
    """An operator of someone's own whose schema declares no argument written. Kept by name: the answer never changes.

        mylib::fused_norm(Tensor x, Tensor out) -> ()          True: `out` may be written, and no schema says so
        mylib::fused_norm(Tensor x, Tensor(a!) out) -> ()      False: said"""
    known = _may_write.get(name)
    if known is None:
        known = name.partition("::")[0] not in _SAID
        schema = getattr(func, "_schema", None)
        if known and schema is not None:
            known = not any(a.alias_info is not None and a.alias_info.is_write for a in schema.arguments)
        _may_write[name] = known
    return known


class Writes:
    """Tensor arguments before and after a call, by value.

    Of each it keeps a fingerprint where the memory can be read from here. Else it keeps a copy of its bytes, and the
    comparison is torch's own."""

    def __init__(self, torch):
        self.torch = torch

    def before(self, args, kwargs):
        """[(name, tensor, version, value)]; names as in a log: "arg0", "arg1[2]", "out"."""
        found = []
        for at, value in enumerate(args):
            self.collect("arg%d" % at, value, found)
        for name, value in kwargs.items():
            self.collect(name, value, found)
        return found

    def collect(self, name, value, found):
        if isinstance(value, self.torch.Tensor):
            if len(found) < _MAX_TENSORS:
                try:
                    found.append((name, value, value._version, self.value(value)))
                except Exception:
                    pass  # no storage, an inference tensor, a subclass: nothing can be said
        elif isinstance(value, (list, tuple)):
            for at, item in enumerate(value):
                self.collect("%s[%d]" % (name, at), item, found)

    def value(self, tensor):
        digest = _rt.fingerprint(tensor) if _rt is not None else None
        # What cannot be read from here is kept: bytes, so that a NaN equals itself.
        return digest if digest is not None else self.bytes_of(tensor)

    def bytes_of(self, tensor):
        """A copy: the call may write the tensor. As uint8, so that a NaN equals itself and -0.0 is not 0.0."""
        with self.torch.no_grad():
            return tensor.detach().contiguous().clone().reshape(-1).view(self.torch.uint8)

    def after(self, before):
        """Names of the tensors that hold other values while their version is the same.

        Where the version moved, torch has counted the write, and the runtime sees it without help."""
        changed = set()
        for name, tensor, version, value in before:
            if tensor._version != version:
                continue
            if isinstance(value, tuple):
                same = self.value(tensor) == value
            else:
                same = self.torch.equal(self.bytes_of(tensor), value)
            if not same:
                changed.add(name)
        return changed


# -- launches


class _Calls:
    """Wraps a call that runs kernels: an activity of the user's expression, with what it writes."""

    def __init__(self, tracer):
        self.tracer, self.inside = tracer, threading.local()

    def run(self, name, frame, args, kwargs, call):
        """call(), counted under `name` for the expression of `frame`. What it dispatches or launches inside belongs to
        the same call, on this thread."""
        tracer = self.tracer
        # An autotuner launches the kernel it tries: one launch to the user.
        if not tracer.active or getattr(self.inside, "depth", 0):
            return call()
        use, _, launches = tracer.mark(name, frame, args, kwargs, compute=True)
        self.inside.depth = 1
        try:
            result = tracer.watch_writes(use, args, kwargs, lambda: tracer.below(launches, call))
        finally:
            self.inside.depth = 0
        if launches and use is not None and name.startswith("native::"):
            self.follow_backward(result, use)
        return result

    def follow_backward(self, result, use):
        """An autograd node of an extension's own may launch kernels without any operator. While the engine runs it,
        what is launched belongs to the expression that made it."""
        tracer = self.tracer
        try:
            number = tracer.launches(use, "backward")
            nodes = set()
            for value in result if isinstance(result, (list, tuple)) else (result,):
                node = getattr(value, "grad_fn", None)
                if node is not None and node not in nodes:
                    nodes.add(node)
                    node.register_prehook(lambda grads: tracer.devices.push(number))
                    node.register_hook(lambda inputs, outputs: tracer.devices.pop())
        except Exception:
            tracer.errors += 1


def _kernel_name(function):
    """Triton's Autotuner and Heuristics hold what they decorate as `fn`; the kernel's own `fn` is the Python
    function."""
    for _ in range(8):  # an autotuner of heuristics of a kernel
        inner = getattr(function, "fn", None)
        if inner is None:
            break
        function = inner
    return getattr(function, "__name__", "kernel")


def _wrap_launches(calls, module, names):
    for name in names:
        owner = getattr(module, name, None)
        original = vars(owner).get("run") if owner is not None else None
        if original is not None:
            owner.run = _launching(calls, original)


def _launching(calls, original):
    """warmup=True compiles a kernel and launches nothing, so it is no activity."""

    @functools.wraps(original)
    def run(self, *args, **kwargs):
        if kwargs.get("warmup"):
            return original(self, *args, **kwargs)
        name = "triton::" + _kernel_name(self)
        return calls.run(name, sys._getframe(1), args, kwargs, lambda: original(self, *args, **kwargs))

    return run


# -- native extensions

# Their operators come through the dispatcher, or are no operators.
_LIBRARIES = ("torch", "torchvision", "torchaudio", "torchtext", "functorch", "triton", "numpy", "caffe2", "opguard")


class Native:
    """A function of an extension module, `native::<module>.<function>` in a trace.

    Like a builtin it does not bind when it is a class attribute. It answers for the function where it is asked for its
    name, its pickle or its attributes. Counterexample: `type(f)` and `inspect.isbuiltin(f)` tell the two apart."""

    def __init__(self, calls, function, name):
        self.__wrapped__, self._calls, self._activity = function, calls, name
        for attribute in ("__name__", "__qualname__", "__module__", "__doc__", "__text_signature__"):
            if hasattr(function, attribute):
                setattr(self, attribute, getattr(function, attribute))

    def __call__(self, *args, **kwargs):
        function = self.__wrapped__
        return self._calls.run(self._activity, sys._getframe(1), args, kwargs, lambda: function(*args, **kwargs))

    def __getattr__(self, name):
        return getattr(self.__dict__["__wrapped__"], name)

    def __reduce__(self):
        return self.__wrapped__.__reduce__()

    def __repr__(self):
        return repr(self.__wrapped__)


def uses_torch(path):
    """Whether a shared library needs torch's libraries, or leaves names of theirs to be resolved.

    The file is read, not loaded. The words are names of needed files, or the mangled beginnings of symbols in at:: and
    c10::."""
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            strings = _dynamic_strings(data)
    except (OSError, ValueError, struct.error):
        return False
    return any(word in strings for word in (b"libc10.so", b"libtorch", b"_ZN2at", b"_ZN3c106"))


def _dynamic_strings(data):
    """The dynamic string table of an ELF file of 64 bits: needed libraries and names of symbols."""
    if data[:5] != b"\x7fELF\x02":
        return b""
    # e_phoff; then e_phentsize and e_phnum.
    (headers,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    segments, dynamic = [], None
    for at in range(headers, headers + size * count, size):
        kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", data, at)
        if kind == 1:  # PT_LOAD
            segments.append((address, offset, length))
        elif kind == 2:  # PT_DYNAMIC
            dynamic = (offset, length)
    if dynamic is None:
        return b""
    # {tag: value}. Of a tag that comes more than once (DT_NEEDED) the last stays; those read here come once.
    entries = dict(struct.iter_unpack("<QQ", data[dynamic[0] : dynamic[0] + dynamic[1] // 16 * 16]))
    table, length = entries.get(5, 0), entries.get(10, 0)  # DT_STRTAB, DT_STRSZ
    for address, offset, size in segments:
        if address <= table < address + size:
            start = table - address + offset
            return data[start : start + length]
    return b""


def _follow_extensions(calls):
    """Each extension module, right after it was executed: who takes a function by name later takes ours."""
    import importlib.machinery

    loader = importlib.machinery.ExtensionFileLoader
    execute = loader.exec_module

    @functools.wraps(execute)
    def exec_module(self, module):
        execute(self, module)
        try:
            _wrap_functions(calls, module, getattr(self, "path", ""))
        except Exception:
            calls.tracer.errors += 1

    loader.exec_module = exec_module


def _wrap_functions(calls, module, path):
    """The module's functions, if it is an extension that uses torch and is no library whose operators are
    dispatched."""
    name = module.__name__
    if name.partition(".")[0] in _LIBRARIES or not os.path.isfile(path) or not uses_torch(path):
        return
    _wrap_namespace(calls, module, name)


def _wrap_namespace(calls, module, name):
    for attribute, value in list(vars(module).items()):
        if isinstance(value, types.BuiltinFunctionType) or type(value).__name__ == "nb_func":
            if not attribute.startswith("__"):
                setattr(module, attribute, Native(calls, value, "native::%s.%s" % (name, attribute)))
        elif isinstance(value, types.ModuleType) and value.__name__ == "%s.%s" % (name, attribute):
            _wrap_namespace(calls, value, value.__name__)  # pybind11's submodules


def install(tracer):
    calls = _Calls(tracer)
    for module, names in (
        ("triton.runtime.jit", ("JITFunction",)),
        ("triton.runtime.interpreter", ("InterpretedFunction",)),
        ("triton.runtime.autotuner", ("Autotuner", "Heuristics")),
    ):
        importing.when_imported(module, functools.partial(_wrap_launches, calls, names=names))
    _follow_extensions(calls)
