"""Seams of DTensor: plans leave every parameter whole, a plain tensor of the one process.

    parallelize_module(model, mesh["tp"], {"w1": ColwiseParallel()})    w1.weight is a Parameter [128, 64], as without
    mesh["tp"].size(), mesh["tp"].get_local_rank()                      2 and 1: the layout is the program's

A DTensor that is replicated would compute the same, but by other operators: a plain tensor's log is the reference's.
What a program asks of a parameter that it takes for a DTensor (`full_tensor()`, `placements`) is answered.

Counterexample: a tensor that the program has cut itself, and gives to DTensor.from_local as a shard, is refused.
The cost: none in a step. Ranks take the weights of the mesh's first rank, as parallelize_module makes them do.
"""

import contextlib
import functools
import sys

from opguard.simulate import exchange, seams

_STYLES = (
    "ColwiseParallel",
    "RowwiseParallel",
    "SequenceParallel",
    "PrepareModuleInput",
    "PrepareModuleOutput",
    "PrepareModuleInputOutput",
)
_PREPARE = ("PrepareModuleInput", "PrepareModuleOutput", "PrepareModuleInputOutput")
_STYLE_MODULE = "torch.distributed.tensor.parallel.style"

_meshes = seams.ByIdentity()  # Parameter -> mesh, of those that would be DTensors


def ranks_of(mesh):
    return [int(rank) for rank in mesh.mesh.flatten().tolist()]


def _check_style(style):
    """Only torch's own styles: what another one does is code of its own, for which nothing stands."""
    kind = type(style)
    if kind.__module__ != _STYLE_MODULE or kind.__name__ not in _STYLES:
        seams.refuse_call(
            "parallelize_module with the style %s.%s" % (kind.__module__, kind.__qualname__),
            "has no seam: only torch's own styles are known",
        )


def _styles_below(module, plan):
    """(module, style) for each that a plan names, as parallelize_module finds them."""
    from fnmatch import fnmatch

    if not isinstance(plan, dict):
        yield module, plan
        return
    for path, style in plan.items():
        if path == "":
            yield module, style
            continue
        found = [("", module)]
        for token in path.split("."):
            found = [child for _, parent in found for child in parent.named_children() if fnmatch(child[0], token)]
        for _, child in found:
            yield child, style


def group_of(mesh):
    return mesh.get_group() if mesh.ndim == 1 else mesh._flatten().get_group()


def move(module, mesh):
    """Parameters and buffers to the mesh's device, as whoever distributes them moves them."""
    for tensor in [*module.parameters(), *module.buffers()]:
        if not tensor.is_meta and tensor.device.type != mesh.device_type:
            tensor.data = tensor.data.to(mesh.device_type)


def _take_first_ranks(module, mesh):
    """Parameters and buffers of the mesh's rank 0: what would be scattered from there.

    Each rank may have drawn other weights; the parallel run has those of one."""
    move(module, mesh)
    for tensor in [*module.parameters(), *module.buffers()]:
        if not tensor.is_meta:
            exchange.broadcast(tensor, group_of(mesh))
    for parameter in module.parameters():
        _meshes.put(parameter, mesh)


def _torch():
    return sys.modules["torch"]


def _parallelize_module(original):
    @functools.wraps(original)
    def parallelize_module(module, device_mesh=None, parallelize_plan=None, *, src_data_rank=0):
        if device_mesh is None:
            device_mesh = _torch().distributed.device_mesh._mesh_resources.get_current_mesh()
        if device_mesh.ndim != 1:
            raise ValueError("parallelize_module takes a mesh of one dimension, not of %d" % device_mesh.ndim)
        seams.used("parallelize_module")
        seams.replicate(ranks_of(device_mesh))
        for child, style in _styles_below(module, parallelize_plan) if parallelize_plan is not None else ():
            _check_style(style)
            if type(style).__name__ not in _PREPARE and src_data_rank is not None and device_mesh.size() > 1:
                _take_first_ranks(child, device_mesh)
        return module

    return parallelize_module


def _distribute_tensor(original):
    """The tensor itself, with the values of the mesh's first rank where the real one would scatter them
    (src_data_rank)."""

    @functools.wraps(original)
    def distribute_tensor(tensor, device_mesh=None, placements=None, *, src_data_rank=0):
        if device_mesh is None:
            device_mesh = _torch().distributed.device_mesh._mesh_resources.get_current_mesh()
        seams.used("distribute_tensor")
        seams.replicate(ranks_of(device_mesh))
        if not tensor.is_meta and tensor.device.type != device_mesh.device_type:
            tensor = tensor.to(device_mesh.device_type)
        if src_data_rank is not None and not tensor.is_meta and device_mesh.size() > 1:
            exchange.broadcast(tensor, group_of(device_mesh))
        return tensor

    return distribute_tensor


def _from_local(original):
    """A replica is the tensor itself. A piece is the program's own cut, for which no seam stands."""

    def from_local(local_tensor, device_mesh=None, placements=None, **options):
        if device_mesh is not None and device_mesh.size() > 1 and any(not p.is_replicate() for p in placements or ()):
            seams.refuse_call("DTensor.from_local of a piece", "has no seam: the program has cut the tensor itself")
        return local_tensor

    return staticmethod(from_local)


def _on_api(module):
    module.distribute_tensor = _distribute_tensor(module.distribute_tensor)
    module.DTensor.from_local = _from_local(module.DTensor.from_local)
    for name in ("distribute_module", "rand", "randn", "ones", "zeros", "full", "empty"):
        setattr(module, name, seams.refusing("torch.distributed.tensor." + name, "has no seam"))


def _on_parallel(module):
    module.parallelize_module = _parallelize_module(module.parallelize_module)


# --- what is asked of a parameter that would be a DTensor ---


def _whole(parameter):
    return lambda *args, **kwargs: parameter


# What a parameter answers that would be a DTensor; one that would be none has no such attribute, as without us.
_ANSWERS = {
    "device_mesh": lambda parameter: _meshes.get(parameter),
    "placements": lambda parameter: _replicated(_meshes.get(parameter)),
    "full_tensor": _whole,
    "to_local": _whole,
    "redistribute": _whole,
}


def _replicated(mesh):
    from torch.distributed.tensor import Replicate

    return (Replicate(),) * mesh.ndim


def _answer(name):
    def get(parameter):
        if _meshes.get(parameter) is None:
            raise AttributeError("'Parameter' object has no attribute '%s'" % name)
        return _ANSWERS[name](parameter)

    return property(get)


def _on_parameter(module):
    for name in _ANSWERS:
        setattr(module.Parameter, name, _answer(name))


def remember(parameter, mesh):
    """It would be a DTensor on this mesh."""
    _meshes.put(parameter, mesh)


# --- context parallelism: the sequence stays whole ---


def _on_context_parallel(module):
    @contextlib.contextmanager
    def context_parallel(mesh, *, buffers=None, buffer_seq_dims=None, no_restore_buffers=None):
        seams.used("context_parallel")
        seams.replicate(ranks_of(mesh))
        yield

    def context_parallel_unshard(mesh, buffers, seq_dims, load_balancer=None):
        return list(buffers)

    module.context_parallel = context_parallel
    module.context_parallel_unshard = context_parallel_unshard
    for name in ("_context_parallel_shard", "_enable_context_parallel_dispatcher", "_ContextParallel"):
        if hasattr(module, name):
            setattr(module, name, seams.refusing(name, "has no seam: the context manager context_parallel has one"))


def install():
    seams.on_import("torch.nn.parameter", _on_parameter)
    seams.on_import("torch.distributed.tensor._api", _on_api)
    seams.on_import("torch.distributed.tensor.parallel.api", _on_parallel)
    seams.on_import("torch.distributed.tensor.experimental._context_parallel._attention", _on_context_parallel)
