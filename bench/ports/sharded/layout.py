"""Four layouts of the model: a DTensor plan, FSDP2, FSDP2 over the plan, DDP; and what each needs around a step."""
import os
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_module
from torch.distributed.tensor.parallel import ColwiseParallel, ParallelStyle, PrepareModuleInput, RowwiseParallel, SequenceParallel
from torch.distributed.tensor.parallel import loss_parallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

FULL = MixedPrecisionPolicy()  # everything in the type it has


class Everywhere(ParallelStyle):
    """Every rank has the whole module and does the same with the same input, which it first makes of its part."""
    def __init__(self, given):
        self.given = given

    def _apply(self, module, mesh):
        return distribute_module(module, mesh, None, self.enter, self.leave)

    def enter(self, module, inputs, mesh):
        return DTensor.from_local(inputs[0], mesh, [self.given]).redistribute(placements=[Replicate()])

    def leave(self, module, made, mesh):
        return made.to_local()


def by_ranks(weight, size):
    """Rows of gate and up such that each of `size` equal parts begins with gate's rows and ends with up's."""
    gate, up = weight.chunk(2)
    return torch.cat([half for pair in zip(gate.chunk(size), up.chunk(size)) for half in pair])


def plan(block, mesh):
    """Between the parts of a block a rank has some positions of all sequences; in them all positions, of its heads or its hidden numbers."""
    weight = block.ffn.gate_up.weight
    weight.data = by_ranks(weight.data, mesh.size())
    parallelize_module(block, mesh, {
        "norm1": SequenceParallel(use_local_output=True), "norm2": SequenceParallel(use_local_output=True),
        "attention": PrepareModuleInput(input_layouts=(Shard(1), None, None), desired_input_layouts=(Replicate(), None, None)),
        "attention.wq": ColwiseParallel(), "attention.wk": ColwiseParallel(), "attention.wv": ColwiseParallel(),
        "attention.q_norm": SequenceParallel(sequence_dim=2, use_local_output=True),  # which cuts the heads here
        "attention.k_norm": SequenceParallel(sequence_dim=2, use_local_output=True),
        "attention.wo": RowwiseParallel(output_layouts=Shard(1)),
        "ffn": PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Replicate()), "ffn.gate_up": ColwiseParallel(),
        "ffn.down": RowwiseParallel(output_layouts=Shard(1)),
    })  # fmt: skip


def tensor_parallel(model, mesh):
    parallelize_module(model, mesh, {
        "words": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
        "norm": Everywhere(Shard(1)),
        "head": ColwiseParallel(output_layouts=Shard(-1), use_local_output=False),
    })  # fmt: skip
    for block in model.blocks:
        plan(block, mesh)


def fully_sharded(model, mesh):
    for block in model.blocks:
        fully_shard(block, mesh=mesh, mp_policy=FULL)
    fully_shard(model, mesh=mesh, mp_policy=FULL)
    # The loss is divided by the words of all ranks already. Each FSDP module reduces its own parameters' gradients and has its own factor.
    for part in model.modules():
        if isinstance(part, FSDPModule):
            part.set_gradient_divide_factor(1.0)
            part.set_force_sum_reduction_for_comms(True)  # gloo has no scaled sum


def raw(model):
    return model.module if isinstance(model, DistributedDataParallel) else model


class Layout:
    """Ranks in rows: a row has one copy of the data (`tp`), a column one part of the model (`dp`)."""
    def __init__(self, data=1, tensor=1, wrapper="fsdp"):
        self.data, self.tensor, self.wrapper = data, tensor, wrapper
        self.rank, self.averages, self.tp, self.dp = 0, 1, None, None  # averages: what the wrapper divides gradients by
        if data * tensor > 1:
            dist.init_process_group("gloo")
            mesh = init_device_mesh("cpu", (data, tensor), mesh_dim_names=("dp", "tp"))
            self.dp, self.tp = mesh["dp"], mesh["tp"]
            self.rank = self.dp.get_local_rank()

    def wrap(self, model):
        if self.tensor > 1:
            tensor_parallel(model, self.tp)
        if self.data > 1 and self.wrapper == "ddp":
            self.averages = self.data
            return DistributedDataParallel(model, process_group=self.dp.get_group())
        if self.data > 1:
            fully_sharded(model, self.dp)
        return model

    def add_up(self, x):
        """A sum over the ranks that have other data."""
        if self.dp is not None:
            dist.all_reduce(x, group=self.dp.get_group())
        return x

    def accumulating(self, model, last):
        """Ranks exchange gradients once in a step."""
        if isinstance(model, FSDPModule):
            model.set_requires_gradient_sync(last)
        return model.no_sync() if isinstance(model, DistributedDataParallel) and not last else nullcontext()

    def losses(self):
        return loss_parallel() if self.tensor > 1 else nullcontext()

    def says(self):
        return int(os.environ.get("RANK", 0)) == 0


def whole(x):
    """All of a DTensor, on every rank."""
    return x.redistribute(placements=[Replicate()] * x.device_mesh.ndim).to_local() if isinstance(x, DTensor) else x
