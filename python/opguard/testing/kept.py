"""What a function can reach and change, put back as it was: so two calls begin alike, and a test leaves nothing behind.

    model, its parameters, gradients, buffers, attributes      an optimizer and its state      a torch.Generator
    random numbers of torch (all devices), Python, numpy       flags: grad mode, autocast, default dtype, deterministic algorithms

Reached are a function's closure, defaults, the object it is a method of, its arguments, and the globals that it and
functions of its own file name. Counterexample: a file it writes, a counter in a C extension: neither is seen.
The cost: a copy of every tensor reached."""

import collections
import functools
import random
import sys
import types

import torch

from opguard.testing import bits

_MOST = 100_000  # objects; a test that reaches more keeps the rest as it finds it
_CONTAINERS = (list, dict, set, collections.deque)
_OPAQUE = (type, types.ModuleType, types.BuiltinFunctionType, str, bytes, int, float, complex, type(None), torch.dtype, torch.device)
# Of torch's own classes these hold what a training step changes; others are machinery.
_STATEFUL = ("torch.optim", "torch.nn", "torch.amp", "torch.cuda.amp")


def reached(*roots):
    """Every object that holds state, each once, breadth first."""
    waiting, seen, found = collections.deque(roots), set(), []
    while waiting and len(found) < _MOST:
        value = waiting.popleft()
        if id(value) in seen or isinstance(value, _OPAQUE):
            continue
        seen.add(id(value))
        found.append(value)
        waiting.extend(_inside(value))
    return found


def _inside(value):
    """What an object holds that a call may change. Of a tensor nothing more: its memory is kept as a whole."""
    if isinstance(value, torch.Tensor):
        return ()
    if isinstance(value, functools.partial):
        return (value.func, value.args, value.keywords)
    if isinstance(value, types.MethodType):
        return (value.__self__, value.__func__)
    if isinstance(value, types.FunctionType):
        return _of_function(value)
    if isinstance(value, dict):
        return tuple(value.values())
    if isinstance(value, (list, tuple, set, frozenset, collections.deque)):
        return tuple(value)
    if isinstance(value, torch.nn.Module) or _is_stateful(value):
        return tuple(vars(value).values())
    return ()


def _is_stateful(value):
    """An object of the program's, or of torch's that a step changes."""
    module = type(value).__module__ or ""
    return hasattr(value, "__dict__") and (module.partition(".")[0] not in _libraries() or module.startswith(_STATEFUL))


@functools.lru_cache(None)
def _libraries():
    own = {"torch", "opguard", "numpy", "pytest", "_pytest", "pluggy", "builtins"}
    return own | set(getattr(sys, "stdlib_module_names", ()))


def _of_function(function):
    """What a function reaches: its closure, defaults, and those globals that its code names and that hold state.

    Of a library's function the closure and what it wraps alone: its globals are the library's."""
    if (function.__module__ or "").partition(".")[0] in _libraries():
        return (getattr(function, "__wrapped__", None),) + tuple(_cells(function))
    named = [function.__globals__.get(name) for name in _names(function.__code__)]
    # Of the globals only what holds state itself, and the file's own functions: not the whole of what they import.
    named = [v for v in named if isinstance(v, (torch.Tensor, torch.nn.Module) + _CONTAINERS) or _is_own(v, function) or
             (not callable(v) and v is not None and _is_stateful(v)) or isinstance(v, torch.optim.Optimizer)]  # fmt: skip
    return (*_cells(function), *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values(), *named)


def _cells(function):
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            continue  # not yet filled


def _is_own(value, function):
    return isinstance(value, types.FunctionType) and value.__globals__ is function.__globals__


def _names(code):
    """Names that the code asks for, also in functions and comprehensions that are written inside of it."""
    found = list(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found += _names(constant)
    return found


class Kept:
    """What was reached from `roots`, as it is now; restore() as often as wanted.

    tensors: (tensor, its memory, a copy, requires_grad, gradient, a copy of that). tables: dicts, lists and objects'
    __dict__ with what they held. Memory is written back in place, so that views and optimizers' references stay
    good."""

    def __init__(self, *roots):
        self.tensors, self.tables, self.generators, self.arrays = [], [], [], []
        for value in reached(*roots):
            if isinstance(value, torch.Tensor):
                self.keep_tensor(value)
            elif isinstance(value, torch.Generator):
                self.generators.append((value, value.get_state()))
            elif type(value).__module__ == "numpy" and type(value).__name__ == "ndarray":
                self.arrays.append((value, value.copy()))
            elif isinstance(value, _CONTAINERS):
                self.tables.append((value, _copy(value)))
            elif not isinstance(value, (types.FunctionType, types.MethodType, tuple, frozenset, functools.partial)) and hasattr(value, "__dict__"):
                self.tables.append((vars(value), dict(vars(value))))
        self.random = _random()
        self.flags = _flags()

    def keep_tensor(self, tensor):
        """A tensor whose bits cannot be read is not kept: what a call does to it stays."""
        if torch.nn.parameter.is_lazy(tensor) or not bits.is_plain(tensor):
            return
        gradient = tensor.grad if tensor.is_leaf else None
        with torch.no_grad():
            self.tensors.append((tensor, tensor.detach(), tensor.detach().clone(), tensor.requires_grad, gradient,
                                 None if gradient is None else gradient.detach().clone()))  # fmt: skip

    def restore(self):
        """Tables first: a parameter that the call has replaced is there again before its memory is written."""
        with torch.no_grad():
            for table, values in self.tables:
                _put(table, values)
            for tensor, memory, values, wants, gradient, gradient_values in self.tensors:
                if tensor.data_ptr() != memory.data_ptr() or tensor.shape != memory.shape or tensor.dtype != memory.dtype:
                    tensor.data = memory
                _write(tensor, values)
                if tensor.is_leaf:
                    if tensor.requires_grad != wants:
                        tensor.requires_grad_(wants)
                    if gradient is not None:
                        _write(gradient, gradient_values)
                    if tensor.grad is not gradient:
                        tensor.grad = gradient
        for array, values in self.arrays:
            if array.flags.writeable:
                array[...] = values
        for generator, state in self.generators:
            generator.set_state(state)
        set_random(self.random)
        self.restore_flags()

    def restore_flags(self):
        for put, value in self.flags:
            put(value)


def _write(tensor, values):
    # What is as it was keeps its version: a graph made before may still need it.
    if not bits.same(tensor.detach(), values):
        tensor.detach().copy_(values)


def _copy(container):
    return dict(container) if isinstance(container, dict) else list(container)


def _put(table, values):
    """The container as it was, the same object; written only where it differs."""
    if isinstance(table, dict):
        if list(table) != list(values) or any(table[key] is not values[key] for key in values):
            table.clear()
            table.update(values)
    elif len(table) != len(values) or any(x is not y for x, y in zip(table, values)):
        table.clear()
        table.update(values) if isinstance(table, set) else table.extend(values)


def _random():
    numpy = sys.modules.get("numpy.random")
    return (
        torch.get_rng_state(),
        torch.cuda.get_rng_state_all() if torch.cuda.is_available() and torch.cuda.is_initialized() else None,
        random.getstate(),
        numpy.get_state() if numpy is not None else None,
    )


def set_random(state):
    cpu, cuda, python, numpy = state
    torch.set_rng_state(cpu)
    if cuda is not None:
        torch.cuda.set_rng_state_all(cuda)
    random.setstate(python)
    if numpy is not None:
        sys.modules["numpy.random"].set_state(numpy)


def _flags():
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    found = [
        (torch.set_grad_enabled, torch.is_grad_enabled()),
        (torch.set_default_dtype, torch.get_default_dtype()),
        (lambda on: torch.use_deterministic_algorithms(on, warn_only=warn_only), torch.are_deterministic_algorithms_enabled()),
        (torch.set_float32_matmul_precision, torch.get_float32_matmul_precision()),
        (torch.set_num_threads, torch.get_num_threads()),
    ]
    for owner, name in ((torch.backends.cudnn, "deterministic"), (torch.backends.cudnn, "benchmark")):
        found.append((functools.partial(setattr, owner, name), getattr(owner, name)))
    return found
