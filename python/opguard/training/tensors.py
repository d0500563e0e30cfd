"""Tensors, looked at without the program's noticing: forms, digests, norms, numbers.

    with quietly(): ...                 no gradient, no mode and no subclass of the program's sees what we ask torch
    collect({"a": [x, y]}, "arg0", f)   [("arg0.a[0]", x), ("arg0.a[1]", y)]

Nothing here waits for a device: what lies there has no digest and no norm. Counterexample: a subclass with a
__torch_dispatch__ of its own is not read: its elements are what the program's code says they are."""

import contextlib
import sys

from opguard import _rt

MOST_TENSORS, MOST_DEPTH = 64, 4  # of one value: a list of ten thousand tensors is looked at in part
_dtypes = {}
_TRACED = ("torch._subclasses.functional_tensor", "torch._subclasses.fake_tensor")


def torch():
    return sys.modules["torch"]


@contextlib.contextmanager
def quietly():
    module = sys.modules["torch"]
    with module._C.DisableTorchFunction(), module._C._DisableTorchDispatch(), module.no_grad():
        yield


def dtype_text(dtype):
    text = _dtypes.get(dtype)
    if text is None:
        text = _dtypes[dtype] = str(dtype).rpartition(".")[2]
    return text


def is_traced(tensor):
    """Is it one of torch.compile's stand-ins, which have a form and no elements?"""
    return type(tensor).__module__ in _TRACED


def local(tensor):
    """What this process holds of it: the shard of a DTensor."""
    held = getattr(tensor, "_local_tensor", None) if type(tensor) is not torch().Tensor else None
    return tensor if held is None else held


def is_plain(tensor):
    """May its elements be read here and now, by torch's own operators?"""
    module = torch()
    kind = type(tensor)
    return (
        (kind is module.Tensor or kind is module.nn.Parameter or kind.__torch_dispatch__ is module.Tensor.__torch_dispatch__)
        and tensor.device.type == "cpu"
        and tensor.layout is module.strided
        and not tensor.is_quantized
        and not module._C._functorch.is_functorch_wrapped_tensor(tensor)
    )


def collect(value, name, found, depth=0):
    """(name, tensor) of the tensors in a value, in order; at most MOST_TENSORS."""
    if isinstance(value, sys.modules["torch"].Tensor):
        found.append((name, value))
    elif depth < MOST_DEPTH and len(found) < MOST_TENSORS:
        if isinstance(value, (list, tuple)):
            for i, item in enumerate(value[:MOST_TENSORS] if type(value) in (list, tuple) else value):
                if len(found) >= MOST_TENSORS or i >= MOST_TENSORS:
                    break
                collect(item, "%s[%d]" % (name, i), found, depth + 1)
        elif isinstance(value, dict):
            for key, item in dict.items(value):
                if len(found) >= MOST_TENSORS:
                    break
                collect(item, "%s.%s" % (name, key) if isinstance(key, (str, int)) else name, found, depth + 1)
        elif hasattr(type(value), "__dataclass_fields__"):
            for key, item in list(getattr(value, "__dict__", {}).items()):
                collect(item, "%s.%s" % (name, key), found, depth + 1)


def shape_of(tensor):
    try:
        return tuple(tensor.shape)
    except Exception:  # a nested tensor has none
        return ()


def forms(value, name):
    """[[name, dtype, shape, requires_grad], ...] of the tensors in a value."""
    found = []
    collect(value, name, found)
    return [(n, dtype_text(t.dtype), shape_of(t), t.requires_grad) for n, t in found]


def number(value):
    """A number that can be read without waiting; None for any other."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return float(value)
    module = torch()
    if isinstance(value, module.Tensor) and value.numel() == 1 and is_plain(value) and not value.is_complex():
        with quietly():
            return float(value.detach().item())
    return None


def hashes(tensors):
    """A digest each, None where it cannot be read."""
    return _rt.hashes([local(t) for t in tensors])


def read(tensors):
    """([digest], [norm]), None where they cannot be read, or where there is no norm: one pass over memory."""
    return _rt.measures([local(t) for t in tensors])


# So many elements of a stamp or a few more: evenly spaced where they are contiguous, else the first ones.
_SAMPLED = 32


def stamp(tensor):
    """What changes with a tensor's elements, all but surely: torch's version, its address and some elements. Writes through
    `.data` change no version. None of one that cannot be told."""
    held = local(tensor)
    if not is_plain(held) or not held.numel() or held.is_inference():
        return None
    held = held.detach()
    few = held.view(-1)[:: max(1, held.numel() // _SAMPLED)] if held.is_contiguous() else held.flatten()[:_SAMPLED]
    return tensor._version, held.data_ptr(), few.tolist()


def is_constant(tensor):
    """Are all elements equal? None where it cannot be told."""
    held = local(tensor)
    if not is_plain(held) or not held.numel() or not held.is_floating_point():
        return None
    with quietly():
        held = held.detach()
        first = held.flatten()[:16] if held.is_contiguous() else held[(0,) * (held.dim() - 1)][:16] if held.dim() else held.flatten()
        return bool((first == first[0]).all()) and bool((held == first[0]).all())
