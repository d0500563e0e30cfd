"""The form of a module's call: modes, types and shapes. One that was met before costs a look-up."""

import sys

from opguard.training import sink

_MOST_TENSORS = 16
_dtypes = {}
_forms = {}  # key -> number


def dtype_name(dtype):
    name = _dtypes.get(dtype)
    if name is None:
        name = _dtypes[dtype] = str(dtype).replace("torch.", "", 1)
    return name


def tensors_in(values, found, prefix, tensor, depth=0):
    """[(name, tensor)] in tuples, lists and dictionaries, at most _MOST_TENSORS and 3 deep."""
    for name, value in values:
        if len(found) >= _MOST_TENSORS:
            return
        if isinstance(value, tensor):
            found.append((prefix + str(name), value))
        elif depth < 3 and isinstance(value, (list, tuple)):
            tensors_in(enumerate(value), found, "%s%s." % (prefix, name), tensor, depth + 1)
        elif depth < 3 and isinstance(value, dict):
            tensors_in(list(value.items()), found, "%s%s." % (prefix, name), tensor, depth + 1)


def described(pairs):
    return tuple((name, dtype_name(t.dtype), tuple(t.shape), t.requires_grad) for name, t in pairs)


def autocast(torch, device):
    """The type that autocast computes in, None where it is off."""
    try:
        if torch.is_autocast_enabled(device):
            return dtype_name(torch.get_autocast_dtype(device))
        return None
    except TypeError:  # before 2.4
        if device == "cpu":
            return dtype_name(torch.get_autocast_cpu_dtype()) if torch.is_autocast_cpu_enabled() else None
        return dtype_name(torch.get_autocast_gpu_dtype()) if torch.is_autocast_enabled() else None


def number_of(module, args, kwargs, result, grad, is_root):
    torch = sys.modules["torch"]
    inputs, outputs = [], []
    tensors_in(enumerate(args), inputs, "arg", torch.Tensor)
    if kwargs:
        tensors_in(kwargs.items(), inputs, "", torch.Tensor)
    tensors_in((("out", result),), outputs, "", torch.Tensor)
    own = [p for p in module._parameters.values() if p is not None]
    device = inputs[0][1].device.type if inputs else own[0].device.type if own else "cpu"
    uniform = None
    if is_root:
        uniform = all(m.training == module.training for m in module.modules())
    key = (
        module.training, grad, autocast(torch, device), described(inputs), described(outputs),
        dtype_name(own[0].dtype) if own else None, any(p.requires_grad for p in own) if own else None, uniform,
    )  # fmt: skip
    number = _forms.get(key)
    if number is None:
        number = _forms[key] = len(_forms)
        sink.see("form", (number,) + key)
    return number
