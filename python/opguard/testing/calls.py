"""Records one call of a function into a log, without any change to its source.

    y = torch.softmax(x, -1)      an event `softmax`; sites has its line under ("softmax", "forward", 0)
    y = x.softmax(-1)             in b: the same boundary, so the two can be paired

A TorchFunctionMode sees every function of torch that the call makes, wherever it stands. Each goes through the same
probe as an instrumented source's: opguard._rt reads its arguments, results and autograd nodes. The boundary is the
function's name, so that two functions that share no line still have `softmax` and `matmul` in common. Which line it was
is kept here, call by call.

Counterexample: what a C++ extension computes behind one call of its own is seen as nothing, or as its torch.ops call.
The cost: some microseconds a call, and a pass over each tensor."""

import collections
import contextlib
import functools
import linecache
import os
import sys

import torch
from torch.overrides import TorchFunctionMode

import opguard
from opguard import _rt
from opguard.record import generators, recording
from opguard.trace import positions

_PACKAGES = tuple(os.path.dirname(os.path.abspath(module.__file__)) + os.sep for module in (torch, opguard))
_HELPERS = ("contextlib.py", "functools.py", "typing_extensions.py", "_jit_internal.py")
_PHASES = ("forward", "recompute", "backward", "optimizer")
_PASSES = (torch.Tensor.backward, torch.autograd.backward, torch.autograd.grad)  # each comes to the engine below
_BEGIN = "record_call"  # the function below which the user's frames are

# They answer what a tensor is, and compute nothing.
_QUIET = frozenset(
    "size dim ndim shape dtype device layout requires_grad is_leaf grad_fn numel nelement element_size stride storage_offset data_ptr "
    "is_contiguous is_floating_point is_complex is_signed is_sparse is_quantized is_cuda is_nested is_meta is_conj is_neg is_mps is_cpu "
    "untyped_storage get_device _version names itemsize nbytes is_inference len hash repr format retain_grad register_hook "
    "register_post_accumulate_grad_hook _is_view _base output_nr is_shared has_names name type is_same_size result_type "
    "is_pinned volatile retains_grad requires_grad_ ndimension is_xpu is_mtia is_mkldnn is_vulkan is_ipu is_maia is_xla".split()
)


class Site:
    """The innermost line that is neither torch's nor ours; `caller` is the innermost outside installed packages, if another one."""

    __slots__ = ("path", "function", "line", "column", "end_line", "end_column", "caller")

    def __init__(self, frame, place):
        self.path, self.function = frame.f_code.co_filename, place.scope
        self.line, self.end_line = place.line, place.end_line
        text = linecache.getline(self.path, self.line)
        self.column = _characters(text, place.column)
        self.end_column = _characters(text if place.end_line == place.line else "", place.end_column)
        self.caller = None

    def key(self):
        return (self.path, self.line, self.column, self.end_line, self.end_column)


def _characters(text, offset):
    """Columns of code count bytes."""
    return offset if offset < 0 or text.isascii() else len(text.encode()[:offset].decode(errors="replace"))


class Calls(TorchFunctionMode):
    """sites: (name, phase, occurrence) as in the log -> Site."""

    def __init__(self):
        super().__init__()
        self.sites, self.ended = {}, collections.Counter()
        self.positions, self.known = positions.Positions(), {}

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = operator_name(func)
        if name in _QUIET or not _rt.recording():
            return func(*args, **kwargs)
        if func in _PASSES:
            return func(*args, **kwargs)
        frame = sys._getframe(1)
        if name in _COMMUTE and len(args) == 2 and not kwargs and _size(args[0]) < _size(args[1]):
            func, args = _flipped(func), args[::-1]
        return self.record(name, frame, func, args, kwargs)

    def record(self, name, frame, func, args, kwargs):
        """The call, through a probe of its name. Also where it raises it has ended, and an occurrence is counted."""
        site, phase = self.site(frame), _PHASES[_rt.phase()]
        try:
            return _rt.probe(name, func)(*args, **kwargs)
        finally:  # occurrences are counted as they end
            self.sites[name, phase, self.ended[name, phase]] = site
            self.ended[name, phase] += 1

    def site(self, frame):
        """The innermost frame outside of torch and us and, if that is in an installed package, the first one outside of
        those."""
        innermost = None
        while frame is not None:
            path = frame.f_code.co_filename
            if path == __file__ and frame.f_code.co_name == _BEGIN:
                break
            if not (path.startswith(_PACKAGES) or path.startswith("<frozen") or os.path.basename(path) in _HELPERS):
                if innermost is None:
                    innermost = self.at(frame)
                    if not _installed(path):
                        return innermost
                elif not _installed(path):
                    innermost.caller = self.at(frame)
                    return innermost
            frame = frame.f_back
        return innermost

    def at(self, frame):
        return Site(frame, self.positions.of(frame))


def _installed(path):
    return (os.sep + "site-packages" + os.sep) in path or (os.sep + "dist-packages" + os.sep) in path


def operator_name(func):
    """`add` of torch.add, Tensor.add, Tensor.__add__ and Tensor.__radd__'s like; `add_` of Tensor.__iadd__; `T` of the property."""
    name = getattr(func, "__name__", "") or type(func).__name__
    if name in ("__get__", "__set__"):
        name = getattr(getattr(func, "__self__", None), "__name__", name)
        return name if func.__name__ == "__get__" else name + "="
    if name == "default" or "." in name:  # an overload of torch.ops
        name = str(func).split(".")[-2] if str(func).count(".") else name
    if name.startswith("__") and name.endswith("__"):
        name = name[2:-2]
        name = name[1:] + "_" if name in _AUGMENTED else name
    return _NAMES.get(name, name)


_AUGMENTED = frozenset("iadd isub imul itruediv ifloordiv imod ipow imatmul iand ior ixor ilshift irshift".split())
# Other names of the same operator. The reflected ones take the tensor first, as the others do.
_NAMES = {"radd": "add", "rmul": "mul", "multiply": "mul", "multiply_": "mul_", "truediv": "div", "true_divide": "div", "divide": "div",
          "truediv_": "div_", "divide_": "div_", "subtract": "sub", "subtract_": "sub_", "absolute": "abs", "negative": "neg"}  # fmt: skip
# `x * gate` and `gate * x` are one: the larger operand is recorded first.
_COMMUTE = ("add", "mul", "eq", "ne", "minimum", "maximum")


def _size(operand):
    return operand.numel() if isinstance(operand, torch.Tensor) else 0


def _flipped(func):
    """The function with its first two arguments the other way round: what it computes is the same, what is recorded
    first is not."""
    return lambda second, first: func(first, second)


def busy():
    """Does this process record already: is the test session itself below `opguard run`?"""
    return _rt.recording()


def record_call(folder, call):
    """call(watched) once, recorded into `folder` -> Calls. What it does inside `with watched:` is recorded. It gives a dict of
    tensors, which are what the two logs are compared by."""
    calls = Calls()
    with contextlib.ExitStack() as stack:
        stack.enter_context(_eagerly())
        stack.enter_context(_steps())
        stack.enter_context(_put(torch.autograd.Variable, "_execution_engine", _Engine(calls)))
        stack.enter_context(_put(torch.autograd.Function, "apply", classmethod(functools.partial(_apply, calls))))
        _rt.start(folder, 0, 1, "full", "", lambda: {"mode": "full"}, _names_of(call), generators.collect)
        stack.callback(_rt.rest)
        _rt.saved(call(calls))
    return calls


def _names_of(call):
    """Names of parameters for the log: those that the call's `names` has, by id."""
    names = getattr(call, "names", {})
    return lambda tensors: [names.get(id(tensor)) for tensor in tensors]


class _Engine:
    """The autograd engine, below which the mode is on again: what a pass runs of Python's (a Function's backward, a recomputation) is
    recorded too."""

    def __init__(self, calls):
        self.calls, self.engine = calls, torch.autograd.Variable._execution_engine

    def run_backward(self, tensors, *args, **kwargs):
        _rt.loss(tensors)
        with self.calls:
            return self.engine.run_backward(tensors, *args, **kwargs)

    def __getattr__(self, name):
        return getattr(self.engine, name)


_function_apply = torch.autograd.Function.__dict__["apply"].__func__


def _apply(calls, function, *args, **kwargs):
    """Function.apply of a class of the program's: no function mode is told of it."""
    call = functools.partial(_function_apply, function)
    return calls.record(function.__name__, sys._getframe(1), call, args, kwargs) if _rt.recording() else call(*args, **kwargs)


@contextlib.contextmanager
def _put(owner, name, value):
    """owner.name is `value` for a while. By the table of the class itself, so that a classmethod is put back as one."""
    before = owner.__dict__[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def _eagerly():
    """Compiled code would compile the mode into itself."""
    stance = getattr(torch.compiler, "set_stance", None)
    return stance("force_eager") if stance is not None and "torch._dynamo" in sys.modules else contextlib.nullcontext()


@contextlib.contextmanager
def _steps():
    """An optimizer's steps are told, as long as it records."""
    optim = sys.modules.get("torch.optim.optimizer")
    if not hasattr(optim, "register_optimizer_step_pre_hook"):
        yield
        return
    before = optim.register_optimizer_step_pre_hook(recording._step_begins)
    after = optim.register_optimizer_step_post_hook(recording._step_ended)
    try:
        yield
    finally:
        before.remove()
        after.remove()
