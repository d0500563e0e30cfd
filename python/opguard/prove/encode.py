"""Tensors, numbers and arguments as JSON.

    x[:, 1:]  of a [4, 8] float32   {"t": [3, 1, [4, 7], [8, 1], "float32"]}     storage 3, offset 1, sizes, strides
    float("-inf")                   {"f": "-inf"}
    dist.ReduceOp.SUM               {"reduce": "sum"}

Tensors are told apart by storage, offset and strides, so that views and in-place writes need no rule.
Storages are kept alive: the address of one that was freed would soon be another's.
Counterexample: a sparse tensor has no storage that strides describe. It is {"other": "tensor of layout ..."}."""

import math

import torch
import torch.distributed as dist

_REDUCTIONS = ("sum", "avg", "prod", "min", "max", "band", "bor", "bxor", "premul")  # c10d's ReduceOp::RedOpType, in order
_tolist = torch._C.TensorBase.tolist  # torch.Tensor's is watched: world.py


def number(value):
    """A float that JSON has no word for by its name."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"f": "nan" if value != value else "inf" if value > 0 else "-inf"}
    return value


def contents(tensor):
    """A tensor's elements, flat, in its own order; a complex one as [real, imaginary]."""
    tensor = tensor.detach()
    if tensor.is_complex():
        pairs = torch.view_as_real(tensor.resolve_conj()).reshape(-1, 2)
        return [[number(real), number(imaginary)] for real, imaginary in _tolist(pairs)]
    if tensor.dtype is torch.bool:
        tensor = tensor.to(torch.uint8)
    elif tensor.is_floating_point() and tensor.dtype not in (torch.float32, torch.float64):
        tensor = tensor.float()
    flat = tensor.reshape(-1)
    if flat.is_floating_point() and not bool(torch.isfinite(flat).all()):
        return [number(value) for value in _tolist(flat)]
    return _tolist(flat)


def dtype_name(dtype):
    return str(dtype).partition(".")[2]


def has_storage(tensor):
    """Sparse and opaque tensors have none that strides describe."""
    return tensor.layout is torch.strided


def plain(tensor):
    """The tensor that a functional collective will have filled: its wrapper has a storage without data."""
    return tensor.elem if type(tensor).__name__ == "AsyncCollectiveTensor" else tensor


def tensors_in(value, found):
    """Appends every tensor of an argument, or of a list of them."""
    if isinstance(value, torch.Tensor):
        found.append(plain(value))
    elif isinstance(value, (list, tuple)):
        for item in value:
            tensors_in(item, found)
    elif isinstance(value, dict):
        for item in value.values():
            tensors_in(item, found)
    return found


def group_ranks(name):
    """The global ranks of a group that a functional collective names."""
    group = name if isinstance(name, dist.ProcessGroup) else dist.distributed_c10d._resolve_process_group(name)
    return [int(rank) for rank in dist.get_process_group_ranks(group)]


def _boxed(value):
    """Process groups and reductions as c10d's operators take them: objects of TorchScript, which have no Python type."""
    try:
        return {"group": group_ranks(dist.ProcessGroup.unbox(value))}
    except Exception:  # not a group: torch raises what it likes
        pass
    try:
        return {"reduce": _REDUCTIONS[int(value.op())]}
    except Exception:
        return {"other": "ScriptObject"}


class Storages:
    """Numbers storages by first use, and keeps them."""

    def __init__(self):
        self._numbers, self._kept = {}, []

    def number(self, tensor):
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self._numbers:
            self._numbers[key] = len(self._numbers)
            self._kept.append(storage)
        return self._numbers[key]

    def tensor(self, tensor):
        if not has_storage(tensor):
            return {"other": "tensor of layout %s" % tensor.layout}
        sizes, strides = [int(size) for size in tensor.shape], [int(stride) for stride in tensor.stride()]
        return {"t": [self.number(tensor), int(tensor.storage_offset()), sizes, strides, dtype_name(tensor.dtype)]}

    def argument(self, value):
        """An argument of an operator as JSON; docs/formats/prove.md lists the objects. What has no meaning for the
        checker (a device, a generator) is {"other": its name}. bool comes before int, whose subclass it is."""
        if isinstance(value, torch.Tensor):
            return self.tensor(plain(value))
        if isinstance(value, (list, tuple)):
            return [self.argument(item) for item in value]
        if value is None or isinstance(value, (bool, str)):
            return value
        if isinstance(value, int):
            return int(value)
        if isinstance(value, float):
            return number(value)
        if isinstance(value, torch.dtype):
            return {"dtype": dtype_name(value)}
        if isinstance(value, dist.ProcessGroup):
            return {"group": group_ranks(value)}
        if isinstance(value, dist.ReduceOp):
            return {"reduce": _REDUCTIONS[int(value.op)]}
        if isinstance(value, torch.ScriptObject):
            return _boxed(value)
        if isinstance(value, (torch.device, torch.layout, torch.memory_format)):
            return {"other": str(value)}
        return {"other": type(value).__name__}
