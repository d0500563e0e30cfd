"""Which elements of a logical tensor a rank holds, as flat indices.

    place("wq.weight", full)     full.chunk(2, 0)[1] of an [8, 4]: 16, 17, ... 31

A plan says it by `place`, called on a tensor of indices. DTensors say it themselves, by mesh and placements.
Where both say it, they have to say the same. An output that is a DTensor counts by its own placements.
Counterexample: a DTensor of a part, as of one rank's experts, has other sizes than the logical tensor. There place counts.
"""

import torch

from . import encode
from .problem import Problem, raised, where_defined


def local(tensor):
    """What a rank holds of a DTensor: a plain tensor, without an operator being run."""
    if hasattr(tensor, "_local_tensor"):
        tensor = tensor._local_tensor
    elif hasattr(tensor, "to_local") and not type(tensor) is torch.Tensor:
        tensor = tensor.to_local()
    return encode.plain(tensor)


def indices(shape, fake=False):
    """The logical tensor as its own flat indices, [[0, 1], [2, 3]]: what a plan cuts from it says where the parts lie.
    `fake`: a tensor of that shape on meta, without numbers."""
    if fake:
        return torch.empty(list(shape), dtype=torch.int64, device="meta")
    count = 1
    for size in shape:
        count *= size
    return torch.arange(count).reshape(list(shape))


def _chunk(full, parts, at, dim):
    """torch.chunk gives fewer parts where they do not come out even: the last ranks then hold nothing."""
    found = torch.chunk(full, parts, dim)
    return found[at] if at < len(found) else full.narrow(dim, 0, 0)


def from_placements(tensor, full):
    """The slice that a DTensor holds; None if its placements do not tell."""
    coordinate = tensor.device_mesh.get_coordinate()
    if coordinate is None:
        return full.reshape(-1)[:0]  # the rank is not in the mesh
    plain, strided = [], []
    for mesh_dim, placement in enumerate(tensor.placements):
        kind = type(placement).__name__
        if kind in ("Shard", "_StridedShard"):
            (plain if kind == "Shard" else strided).append((mesh_dim, placement.dim))
        elif kind != "Replicate":
            return None
    # A strided shard is one that was cut after the mesh dimensions to its right: fully_shard over tensor parallelism.
    for mesh_dim, dim in plain + strided[::-1]:
        full = _chunk(full, tensor.device_mesh.size(mesh_dim), coordinate[mesh_dim], dim)
    return full


def shown(placements):
    return ", ".join(str(placement) for placement in placements)


def place(who, plan, built, name, tensor, shape, fake=False):
    """Flat logical indices of what a rank holds as `name`, in its own order. `fake`: only its shape is looked at, and there are none."""
    full, held = indices(shape, fake), tuple(local(tensor).shape)
    function, slice_, own = built.get("place"), None, None
    if hasattr(tensor, "placements") and (function is None or tuple(tensor.shape) == tuple(shape)):
        # `said` and `where`: who gave the slice, for a message that names it.
        said, where = "the placements of %r give" % name, where_defined(plan)
        if tuple(tensor.shape) != tuple(shape):
            raise Problem("%s: %r is a DTensor of %s, the model's is %s" % (who, name, list(tensor.shape), list(shape)), *where)
        own = slice_ = from_placements(tensor, full)
        if own is None:
            raise Problem("%s: %r has the placements %s: no slice of the logical tensor" % (who, name, tensor.placements), *where)
    if function is not None:
        try:
            given = function(name, full)
        except BaseException as error:
            raise raised("%s: place(%r, full)" % (who, name), function, error) from None
        if given is not None or own is None:
            slice_, said, where = given, "place(%r, full) gives" % name, where_defined(function)
        if not isinstance(slice_, torch.Tensor):
            raise Problem("%s: %s %s, not a tensor" % (who, said, type(slice_).__name__), *where)
        if own is not None and slice_ is not own and not _same(slice_, own, fake):
            text = "%s: %s other elements than the DTensor has by its placements, %s: give the same, or None" % (who, said, shown(tensor.placements))
            raise Problem(text, *where)
    elif own is None:
        slice_, said, where = full, "without place(), %r is the whole" % name, where_defined(plan)
    if tuple(slice_.shape) != held:
        raise Problem("%s: %s %s, the rank holds %s" % (who, said, list(slice_.shape), list(held)), *where)
    if slice_.is_floating_point() or slice_.dtype is torch.bool:
        raise Problem("%s: %s %s, not the indices that it was given" % (who, said, slice_.dtype), *where)
    return [] if fake else torch._C.TensorBase.tolist(slice_.reshape(-1))


def _same(slice_, own, fake):
    """Two slices; where there are no numbers their shapes alone tell."""
    return slice_.shape == own.shape and (fake or torch.equal(slice_, own))


def output_place(who, step, name, tensor, held, fake=False):
    """The same of an output that is a DTensor; None where it is no DTensor, or is cut as `held`, the state of its name."""
    if not hasattr(tensor, "placements"):
        return None
    if hasattr(held, "placements") and (held.shape, held.placements, held.device_mesh) == (tensor.shape, tensor.placements, tensor.device_mesh):
        return None
    slice_ = from_placements(tensor, indices(tensor.shape, fake))
    if slice_ is None:
        text = "%s: step() returns %r with the placements %s: each rank has a part of a sum; redistribute it" % (who, name, shown(tensor.placements))
        raise Problem(text, *where_defined(step))
    if tuple(slice_.shape) != tuple(local(tensor).shape):
        text = "%s: step() returns %r with the placements %s: of %s that is %s, the rank holds %s"
        shapes = list(tensor.shape), list(slice_.shape), list(local(tensor).shape)
        raise Problem(text % (who, name, shown(tensor.placements), *shapes), *where_defined(step))
    return [] if fake else torch._C.TensorBase.tolist(slice_.reshape(-1))
