"""How the model is laid out over ranks: DTensor's tensor and sequence parallelism, FSDP2, DDP, or FSDP2 over tensor parallelism."""
import os
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_module, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, ParallelStyle, PrepareModuleInput, RowwiseParallel, SequenceParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

FULL = MixedPrecisionPolicy()  # everything in the type it has


class Layout:
    """This process's place: `rank` of `size` data-parallel ones, and the mesh of its tensor-parallel ones."""
    def __init__(self, data, tensor):
        self.rank, self.size, self.dp, self.tp = 0, data, None, None
        if "RANK" in os.environ:
            dist.init_process_group("gloo")
            mesh = init_device_mesh("cpu", (data, tensor), mesh_dim_names=("dp", "tp"))
            self.dp, self.tp = mesh["dp"], mesh["tp"] if tensor > 1 else None
            self.rank = self.dp.get_local_rank()


def placed(p, mesh, placement):
    return nn.Parameter(distribute_tensor(p.detach(), mesh, [placement]))


class HiddenParallel(ParallelStyle):
    """Each rank has some of the hidden units. It gets its part of the sequence, works on all positions, and gives back its part."""
    def _apply(self, module, mesh):
        return distribute_module(module, mesh, self.cut, self.enter, self.leave)

    @staticmethod
    def cut(_, module, mesh):
        module.up, module.down = placed(module.up, mesh, Shard(0)), placed(module.down, mesh, Shard(1))

    @staticmethod
    def enter(_, inputs, mesh):
        whole = DTensor.from_local(inputs[0], mesh, [Shard(1)]).redistribute(placements=[Replicate()])
        return whole.to_local(grad_placements=[Partial()])

    @staticmethod
    def leave(_, made, mesh):
        total = DTensor.from_local(made, mesh, [Partial()])
        return total.redistribute(placements=[Shard(1)]).to_local()


def tensor_parallel(model, mesh):
    """Between blocks each rank has a part of the sequence, in blocks a part of the heads or hidden units, behind the head a part of the words."""
    parallelize_module(model, mesh, {
        "words": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
        "norm": SequenceParallel(use_local_output=True),
        "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Shard(-1), use_local_output=False),
    })  # fmt: skip
    for block in model.blocks:
        parallelize_module(block, mesh, {
            "norm1": SequenceParallel(use_local_output=True), "norm2": SequenceParallel(use_local_output=True), "ffn": HiddenParallel(),
            "attention": PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Replicate()),
            "attention.query": ColwiseParallel(), "attention.key": ColwiseParallel(), "attention.value": ColwiseParallel(),
            "attention.out": RowwiseParallel(output_layouts=Shard(1)),
        })  # fmt: skip
    model.places.weight, model.heat = placed(model.places.weight, mesh, Replicate()), placed(model.heat, mesh, Replicate())
    model.places.part = mesh.get_local_rank()
    model.tie()  # each of the two modules was given a parameter of its own


def fully_sharded(model, mesh):
    """FSDP2 takes no scalar: every rank keeps the whole of it, and `finish` sees to its gradient."""
    for block in model.blocks:
        fully_shard(block, mesh=mesh, mp_policy=FULL)
    return fully_shard(model, mesh=mesh, mp_policy=FULL, ignored_params={model.heat})


def lay_out(model, layout, sharded):
    if layout.tp is not None:
        tensor_parallel(model, layout.tp)
    if layout.size > 1:
        return fully_sharded(model, layout.dp) if sharded else DistributedDataParallel(model, process_group=layout.dp.get_group())
    return model


def accumulating(model, last):
    """Gradients go around once a step, with its last micro-batch."""
    if isinstance(model, FSDPModule):
        model.set_requires_gradient_sync(last)
    elif isinstance(model, DistributedDataParallel) and not last:
        return model.no_sync()
    return nullcontext()


def finish(model, layout):
    """Makes whole what a wrapper left in parts."""
    for p in model.parameters():
        if isinstance(p, DTensor):
            p.grad = p.grad.redistribute(placements=p.placements)
    if isinstance(model, FSDPModule):
        grad = model.heat.grad.to_local() if isinstance(model.heat, DTensor) else model.heat.grad
        dist.all_reduce(grad, group=layout.dp.get_group())
        grad.div_(layout.size)


def clip(model, largest):
    """The norm before clipping."""
    grads = [p.grad.full_tensor() if isinstance(p.grad, DTensor) else p.grad for p in model.parameters()]
    norm = torch.nn.utils.get_total_norm(grads)
    scale = (largest / norm).clamp(max=1.0).item()
    for p in model.parameters():
        p.grad.mul_(scale)
    return norm
