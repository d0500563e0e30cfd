"""TorchScript under preflight. torch.jit.trace and a dispatch mode do not go together. Below a mode the tracer finds
tensors that it has not made, and ends with an error. While it traces, ours steps aside; what runs there is seen where
it runs again.

    torch.jit.trace(model, x)      the mode is taken off the stack for the call
    traced(x)                      its operators are dispatched and seen, under this expression"""

import functools

from opguard.trace import marks

NUMBERS = (bool, int, float, complex)


def with_tensors(torch, func, args):
    """The arguments as the operator takes them. torch hands a mode a number in place of the tensor that a number became
    (`x * 2` in a TorchScript graph). It takes it back only for operators that are written with numbers."""
    schema = getattr(func, "_schema", None)
    takes = getattr(torch._C, "_should_allow_numbers_as_tensors", None)
    if schema is None or takes is None or takes(schema.name.split("::")[-1]):
        return args
    wants = [str(a.type) == "Tensor" for a in schema.arguments]
    return tuple(_tensor(torch, a) if w and type(a) in NUMBERS else a for a, w in zip(args, wants))


def _tensor(torch, number):
    kinds = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}
    return torch.scalar_tensor(number, dtype=kinds[type(number)])


def _without(mode_class, original):
    """Only where ours is the innermost mode: a mode of the program's own above it is the program's affair."""
    from torch.utils import _python_dispatch as dispatch

    @functools.wraps(original)
    def aside(*args, **kwargs):
        if type(dispatch._get_current_dispatch_mode()) is not mode_class:
            return original(*args, **kwargs)
        with dispatch._pop_mode_temporarily():
            return original(*args, **kwargs)

    return aside


def install(torch, mode_class):
    """Right after torch has been imported."""
    from torch.utils import _python_dispatch as dispatch

    inner = getattr(torch.jit, "_trace", None)
    if inner is None or not hasattr(dispatch, "_pop_mode_temporarily"):
        return
    for name in ("trace", "trace_module", "_get_trace_graph"):
        original = getattr(inner, name, None)
        if original is not None:
            aside = _without(mode_class, original)
            marks.replace(inner, name, original, aside)
            if getattr(torch.jit, name, None) is original:
                marks.replace(torch.jit, name, original, aside)
