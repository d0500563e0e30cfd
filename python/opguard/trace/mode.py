"""The dispatch mode below which a program is traced, in every thread, and how it gets there.

    torch.mul(x, y) in the program      __torch_dispatch__(aten.mul.Tensor, ...) here, then the operator itself

It is the lowest mode of a thread's stack: modes that the program pushes lie above it, and what they pass on comes here.
Counterexample: a launch of Triton's is no operator and does not come here. kernels.py wraps those."""

import functools
import threading

from opguard.trace import kernels, script


def make_mode(torch, tracer):
    """The class of the modes, one a thread, that show the tracer every operator."""
    from torch.utils import _python_dispatch as dispatch

    class TracerMode(dispatch.TorchDispatchMode):
        # cond, flex_attention and the like come through as operators.
        supports_higher_order_operators = True

        @classmethod
        def _should_skip_dynamo(cls):
            return False  # else the first operator would import torch._dynamo

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            name = _name(func)
            if type(args[0] if args else None) in script.NUMBERS:
                args = script.with_tensors(torch, func, args)
            use, launches = tracer.saw(func, name, args, kwargs)
            if use is not None and kernels.may_write_unsaid(name, func):
                return tracer.watch_writes(use, args, kwargs, lambda: tracer.below(launches, lambda: func(*args, **kwargs)))
            if launches:
                return tracer.devices.below(launches, lambda: func(*args, **kwargs))
            return func(*args, **kwargs)

    return TracerMode


_names = {}


def _name(func):
    """"aten::add.Tensor", "aten::relu" where there is no overload, "higher_order::cond". Kept by the operator."""
    name = _names.get(func)
    if name is None:
        schema = getattr(func, "_schema", None)
        if schema is None:
            name = "higher_order::%s" % getattr(func, "__name__", "unknown")
        else:
            name = "%s.%s" % (schema.name, schema.overload_name) if schema.overload_name else schema.name
        _names[func] = name
    return name


def let_higher_order_pass(torch, mode_class):
    """Before torch 2.7 a mode unknown to a higher order operator is an error there.

    So the mode steps aside for the call: what the operator runs inside is not traced, and the program goes on."""
    from torch.utils import _python_dispatch as dispatch

    if hasattr(dispatch.TorchDispatchMode, "supports_higher_order_operators"):
        return
    operator = getattr(torch._ops, "HigherOrderOperator", None)
    inner = getattr(operator, "dispatch", None)
    if inner is None or not hasattr(dispatch, "_pop_mode_temporarily"):
        return

    @functools.wraps(inner)
    def passed(self, key, *args, **kwargs):
        if key == torch._C.DispatchKey.Python and type(dispatch._get_current_dispatch_mode()) is mode_class:
            with dispatch._pop_mode_temporarily():
                return self(*args, **kwargs)
        return inner(self, key, *args, **kwargs)

    operator.dispatch = passed


def follow_threads(mode_class):
    """Modes are per thread: each later thread gets one of its own."""
    begin = getattr(threading.Thread, "_bootstrap_inner", None)
    if begin is None:
        return

    @functools.wraps(begin)
    def _bootstrap_inner(self):
        try:
            mode = mode_class()
            mode.__enter__()
        except Exception:
            mode = None
        try:
            begin(self)
        finally:
            leave(mode)

    threading.Thread._bootstrap_inner = _bootstrap_inner


def leave(mode):
    """Takes the mode out where nothing the program has pushed is above it."""
    try:
        from torch.utils import _python_dispatch as dispatch

        if mode is not None and dispatch._get_current_dispatch_mode() is mode:
            mode.__exit__(None, None, None)
    except Exception:
        pass  # it goes with the thread
