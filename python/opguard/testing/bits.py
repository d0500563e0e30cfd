"""Values taken apart into named leaves, and two such lists compared bit for bit.

    {"loss": t, "aux": (u, 3)}      out['loss'] a tensor, out['aux'][0] a tensor, out['aux'][1] the number 3

Bits: 0.0 and -0.0 differ, a NaN equals only one of the same payload. Strides and devices are not compared.
Counterexample: a sparse tensor may hold one value in two ways, so its bits say nothing. It is refused by name."""

import collections
import dataclasses
import enum
import struct
import sys

import torch

from opguard.testing import CannotCompare

_ITSELF = (type(None), bool, int, str, bytes, enum.Enum, torch.dtype, torch.device, torch.layout, torch.memory_format, type, slice, range)


def leaves(value, name="out"):
    """[(name, tensor, number or text)], in order."""
    found = []
    _take(value, name, found, ())
    return found


def _take(value, name, found, above):
    """One value into `found`. `above`: ids of what holds it, since a container that holds itself has no end."""
    if id(value) in above:
        raise CannotCompare("%s holds itself" % name)
    inside = above + (id(value),)
    if isinstance(value, torch.Tensor):
        found.append((name, readable(value, name)))
    elif isinstance(value, torch.nn.Module):
        for key, tensor in state_of(value):
            _take(tensor, "%s.%s" % (name, key), found, inside)
    elif isinstance(value, torch.optim.Optimizer):
        _take(value.state_dict(), name, found, inside)
    elif isinstance(value, collections.abc.Mapping):
        for key in value:
            _take(value[key], "%s[%r]" % (name, key), found, inside)
    elif isinstance(value, (list, tuple, collections.deque)):
        for number, item in enumerate(value):
            _take(item, "%s[%d]" % (name, number), found, inside)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            _take(getattr(value, field.name), "%s.%s" % (name, field.name), found, inside)
    elif isinstance(value, (float, complex) + _ITSELF):
        found.append((name, value))
    elif _is_own_object(value):
        for key, item in vars(value).items():  # a cache of keys and values, an output of one's own
            _take(item, "%s.%s" % (name, key), found, inside)
    else:
        found.append((name, _of_numpy(value, name)))


def _is_own_object(value):
    """An object of the program's that holds something; no function, no class of torch's."""
    module = (type(value).__module__ or "").partition(".")[0]
    return module not in ("torch", "numpy", "builtins") and not callable(value) and bool(getattr(value, "__dict__", None))


def _of_numpy(value, name):
    """An array of numbers as a tensor of its own memory; numpy is not imported for it."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)) and value.dtype.kind in "biufc":
        return torch.from_numpy(numpy.array(value, order="C"))
    raise CannotCompare(
        "%s is a %s.%s, of which no bits are known: return tensors, arrays, numbers, texts, modules, optimizers, and containers of these"
        % (name, type(value).__module__, type(value).__qualname__)
    )


def readable(tensor, name):
    """The tensor, if it is one whose bits are its value."""
    kind = type(tensor)
    plain = (torch.Tensor, torch.nn.Parameter, getattr(torch.nn, "Buffer", torch.Tensor))
    if kind not in plain:
        raise CannotCompare("%s is a %s.%s, a subclass of Tensor: give its plain tensors" % (name, kind.__module__, kind.__qualname__))
    if tensor.layout is not torch.strided:
        raise CannotCompare("%s is sparse (%s): give .to_dense() of it" % (name, tensor.layout))
    if tensor.is_quantized:
        raise CannotCompare("%s is quantized: give .int_repr() of it" % name)
    if tensor.is_nested:
        raise CannotCompare("%s is a nested tensor: give its .unbind()" % name)
    if tensor.device.type == "meta":
        raise CannotCompare("%s is on the meta device: it has no values" % name)
    return tensor


def is_plain(tensor):
    """Whether readable() would take it, without the words."""
    try:
        return readable(tensor, "") is tensor
    except CannotCompare:
        return False


def state_of(module):
    """Parameters and buffers by name, uninitialised ones of lazy modules left out."""
    lazy = torch.nn.parameter.is_lazy
    for table in (module.named_parameters(), module.named_buffers()):
        yield from ((name, tensor) for name, tensor in table if not lazy(tensor))


def kept(found):
    """The same leaves, whose tensors nobody else can change."""
    with torch.no_grad():
        return [(name, value.detach().clone() if isinstance(value, torch.Tensor) else value) for name, value in found]


def raw(tensor):
    """One row of bytes an element."""
    with torch.no_grad():
        plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
        try:
            return plain.view(torch.uint8).reshape(plain.numel(), -1)
        except RuntimeError as error:
            raise CannotCompare("a tensor of %s cannot be read byte by byte: %s" % (tensor.dtype, error)) from None


def same(a, b):
    """Bit for bit; types count, so True is not 1 and 1 is not 1.0."""
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(raw(a), raw(b))
    if type(a) is not type(b):
        return False
    return _number(a) == _number(b)


def _number(value):
    """A float by its bytes: 0.0 and -0.0 are two, a NaN equals its like."""
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, complex):
        return struct.pack("<dd", value.real, value.imag)
    return value


def differences(found_a, found_b):
    """[(name, how)] of what differs or is there on one side alone."""
    a, b = dict(found_a), dict(found_b)
    told = []
    for name in list(a) + [name for name in b if name not in a]:
        if name not in a or name not in b:
            told.append((name, "only %s has it" % ("a" if name in a else "b")))
        elif not same(a[name], b[name]):
            told.append((name, how(a[name], b[name])))
    return told


def how(a, b):
    """In words, of two leaves that differ."""
    if not (isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)):
        return "%s in a, %s in b" % (_short(a), _short(b))
    if a.dtype != b.dtype:
        return "%s in a, %s in b%s" % (_type(a), _type(b), "" if a.shape != b.shape else _beside(a, b))
    if a.shape != b.shape:
        return "shape %s in a, %s in b" % (list(a.shape), list(b.shape))
    rows = (raw(a) != raw(b)).any(1)
    first = int(rows.nonzero()[0])
    place = _place(first, a.shape)
    x, y = a.reshape(-1)[first].item(), b.reshape(-1)[first].item()
    text = "%d of %d elements differ, the first at %s: " % (int(rows.sum()), a.numel(), place) if a.numel() > 1 else ""
    if repr(x) == repr(y):
        return text + "%r in both, in bits %s in a, %s in b" % (x, _hex(a, first), _hex(b, first))
    return text + "%r in a, %r in b" % (x, y) + _apart(a, b, rows)


def _place(index, shape):
    place = []
    for size in reversed(shape):
        index, at = divmod(index, size)
        place.insert(0, at)
    return place


def _type(tensor):
    return str(tensor.dtype).rpartition(".")[2]


def _beside(a, b):
    """Of two types, one shape: are they the same numbers? 1.5 in bfloat16 is 1.5 in float32."""
    wide = torch.complex128 if a.is_complex() or b.is_complex() else torch.float64
    return ", equal as numbers" if torch.equal(a.to("cpu", wide), b.to("cpu", wide)) else ", and other numbers"


def _apart(a, b, rows):
    """"; at most 1.79e-07 apart" over the elements that differ; "" where that says nothing, as of integers."""
    if a.numel() < 2 or not a.dtype.is_floating_point:
        return ""
    gap = (a.detach().cpu().double() - b.detach().cpu().double()).abs().reshape(-1)[rows]
    gap = gap[gap == gap]
    return "; at most %.3g apart" % gap.max().item() if gap.numel() else ""


def _hex(tensor, index):
    """An element's bytes, the most significant first."""
    return "0x" + bytes(raw(tensor)[index].flip(0).tolist()).hex()


def _short(value):
    if isinstance(value, torch.Tensor):
        return "a tensor of %s%s" % (_type(value), list(value.shape))
    text = "%s %r" % (type(value).__name__, value) if value is not None else "None"
    return text if len(text) <= 80 else text[:77] + "..."
