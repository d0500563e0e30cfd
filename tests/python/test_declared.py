"""What DTensor, FSDP2 and Megatron's attributes declare, beside what the ranks hold: `opguard diff --tolerance`."""

import json
import sys

import pytest
import runtime_log

pytest.importorskip("torch.distributed.tensor")

PROGRAM = """
import os
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

WORLD = int(os.environ.get("WORLD_SIZE", 1))
if WORLD > 1:
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (WORLD,))

def placed(x, placement):
    return distribute_tensor(x, mesh, [placement]) if WORLD > 1 else x

def scaled(x, weight):
    if WORLD == 1:
        return x * weight
    x = x.redistribute(mesh, [Shard(1)])
    weight = weight.to_local(grad_placements=[Partial()])
    return DTensor.from_local(x.to_local() * weight, mesh, [Shard(1)]).redistribute(mesh, [Replicate()])

def gathered(h):
    if WORLD == 1:
        return h
    h = DTensor.from_local(h.to_local(), mesh, [Shard(2)])
    return h.redistribute(mesh, [Replicate()]).reshape(2, 8, 32)

def summed(part):
    if WORLD == 1:
        return part
    return part.redistribute(mesh, [Replicate()])

class Block(torch.nn.Module):
    def __init__(self, number):
        super().__init__()
        g = torch.Generator().manual_seed(number + 1)
        up, down = torch.randn(32, 16, generator=g) / 4, torch.randn(16, 32, generator=g) / 4
        self.scale = torch.nn.Parameter(placed(torch.rand(16, generator=g) + 0.5, Replicate()))
        self.up = torch.nn.Parameter(placed(up, Shard(0)))
        self.down = torch.nn.Parameter(placed(down, Shard(1)))

    def forward(self, x):
        h = F.gelu(F.linear(scaled(x, self.scale), self.up))
        part = F.linear(gathered(h), self.down)
        return x + summed(part)

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block(i) for i in range(2))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x

torch.manual_seed(0)
model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, eps=1e-3, foreach=False)
for step in range(2):
    g = torch.Generator().manual_seed(100 + step)
    x, y = torch.randn(2, 8, 16, generator=g), torch.randn(2, 8, 16, generator=g)
    loss = F.mse_loss(model(placed(x, Replicate())), placed(y, Replicate()))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
if WORLD > 1:
    dist.barrier()
    dist.destroy_process_group()
"""

# torch's own plans: tensor parallel over 2 ranks, FSDP2 over 2, and both over 4.
LIBRARY = """
import os
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

WORLD, TP = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("TP", 1))

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(16, 32), torch.nn.Linear(32, 16)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(x)))

torch.manual_seed(0)
model = torch.nn.Sequential(Block(), Block())
shards = 1
if WORLD > 1:
    dist.init_process_group("gloo")
    shards = WORLD // TP
    mesh = init_device_mesh("cpu", (shards, TP), mesh_dim_names=("dp", "tp"))
    for block in model:
        if TP > 1:
            parallelize_module(block, mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
        if shards > 1:
            fully_shard(block, mesh=mesh["dp"])
    if shards > 1:
        fully_shard(model, mesh=mesh["dp"])
mine = dist.get_rank() // TP if WORLD > 1 else 0
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, eps=1e-3, foreach=False)
for step in range(2):
    g = torch.Generator().manual_seed(100 + step)
    x, y = torch.randn(4, 8, 16, generator=g), torch.randn(4, 8, 16, generator=g)
    loss = F.mse_loss(model(x.chunk(shards)[mine]), y.chunk(shards)[mine])
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
if WORLD > 1:
    dist.barrier()
    dist.destroy_process_group()
"""

# Megatron's attributes, and what it promises of a parameter that bears `sequence_parallel`.
ATTRIBUTES = """
import os
import torch
import torch.distributed as dist
import torch.nn.functional as F

WORLD, RANK = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
if WORLD > 1:
    dist.init_process_group("gloo")

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        g = torch.Generator().manual_seed(1)
        self.norm = torch.nn.Parameter(torch.rand(16, generator=g) + 0.5)
        self.up = torch.nn.Parameter((torch.randn(32, 16, generator=g) / 4).chunk(WORLD)[RANK].clone())
        self.norm.sequence_parallel = True
        self.up.tensor_model_parallel, self.up.partition_dim, self.up.partition_stride = True, 0, 1

    def forward(self, x):
        x = x.chunk(WORLD, 1)[RANK] * self.norm
        x = x.contiguous() if WORLD == 1 else Gathered.apply(x)
        h = torch.tanh(F.linear(x, self.up))
        return h

class Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        parts = [torch.empty_like(x) for _ in range(WORLD)]
        dist.all_gather(parts, x.contiguous())
        return torch.cat(parts, 1)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.contiguous()
        dist.all_reduce(grad)
        return grad.chunk(WORLD, 1)[RANK]

torch.manual_seed(0)
model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, eps=1e-3, foreach=False)
for step in range(2):
    g = torch.Generator().manual_seed(100 + step)
    x, y = torch.randn(2, 8, 16, generator=g), torch.randn(2, 8, 32, generator=g)
    loss = (model(x) - y.chunk(WORLD, 2)[RANK]).square().sum() / 512
    loss.backward()
    for parameter in model.parameters():
        if WORLD > 1 and getattr(parameter, "sequence_parallel", False):
            dist.all_reduce(parameter.grad)
    optimizer.step()
    optimizer.zero_grad()
if WORLD > 1:
    dist.barrier()
    dist.destroy_process_group()
"""


def compared(opguard, tmp_path, edits=(), program=PROGRAM, ranks=2, env=()):
    for name, changes in (("a", ()), ("b", edits)):
        text = program
        for old, new in changes:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_text(text)
    out = tmp_path / "verdict.json"
    done = opguard(
        "diff", "--tolerance", "-q", tmp_path / "a", tmp_path / "b", "--run-a", f"{sys.executable} {{tree}}/train.py",
        "--run-b", f"{sys.executable} -m torch.distributed.run --standalone --nproc-per-node {ranks} {{tree}}/train.py",
        "--json", out, "--sarif", tmp_path / "verdict.sarif", "--work", tmp_path / "work", env={"OMP_NUM_THREADS": "1", **dict(env)},
    )  # fmt: skip
    assert out.exists(), done.stderr
    return done, json.loads(out.read_text())


def line_of(text, program=PROGRAM):
    return next(n for n, line in enumerate(program.splitlines(), 1) if text in line)


def declared_in(tmp_path):
    """{declared} of all that the candidate's ranks recorded, and {slot name: declared} of their parameters."""
    found, parameters = set(), {}
    for path in (tmp_path / "work" / "run_b" / "log").glob("*.log"):
        log = runtime_log.Log(path)
        for event, (_, slots) in log.sketches.items():
            for place, sets in slots.items():
                for kind, *text in sets:
                    if kind == "declared":
                        found.add(text[0])
                        slot = log.events[event].slots[place]
                        if slot.name.startswith("param:"):
                            parameters[slot.name] = text[0]
    return found, parameters


def test_what_is_declared_rightly_is_found_so(opguard, tmp_path):
    done, found = compared(opguard, tmp_path)
    assert (done.returncode, found["verdict"]) == (0, "equivalent"), done.stdout
    told = found["tolerance"]["declared"]
    assert told["placements"] > 100 and told["otherwise"] == [], told
    assert told["as_found"] >= told["placements"] * 0.9
    assert "placements declared" in done.stdout and "sharded along 0; declared Shard(0)" in done.stdout
    layouts = {t["slot"]: t for t in found["tolerance"]["placements"] if t["boundary"] == "<parameters>"}
    assert layouts["param:blocks.0.up"]["declared"] == {"text": "Shard(0) over ranks 0-1", "state": "as_found"}
    assert layouts["param:blocks.0.up"]["found"] == "sharded along 0"
    texts, parameters = declared_in(tmp_path)
    assert parameters["param:blocks.1.down"] == "Shard(1) over 2 ranks 0-1"
    assert texts >= {"Replicate() over 2 ranks 0-1", "Partial(sum) over 2 ranks 0-1", "Shard(2) over 2 ranks 0-1"}


def test_parts_of_a_sum_that_are_called_a_whole(opguard, tmp_path):
    forged = "return DTensor.from_local(part.to_local(), mesh, [Replicate()])"
    done, found = compared(opguard, tmp_path, [("return part.redistribute(mesh, [Replicate()])", forged)])
    assert (done.returncode, found["verdict"], found["pivot"]["kind"]) == (1, "diverged", "declared"), done.stdout
    assert found["pivot"]["b"]["line"] == line_of("return part.redistribute(mesh, [Replicate()])")
    assert found["pivot"]["why"] == "declared Replicate() over ranks 0-1, holds parts of a sum (partial) over ranks 0, 1"
    otherwise = found["tolerance"]["declared"]["otherwise"][0]
    assert otherwise["boundary"] == found["pivot"]["boundary"] and otherwise["found"] == "partial sum"
    assert '"ruleId": "declared"' in (tmp_path / "verdict.sarif").read_text()


def test_a_shard_of_another_dimension(opguard, tmp_path):
    line = "h = DTensor.from_local(h.to_local(), mesh, [Shard(2)])"
    done, found = compared(opguard, tmp_path, [(line, line.replace("Shard(2)", "Shard(0)"))])
    assert (done.returncode, found["verdict"], found["pivot"]["kind"]) == (1, "diverged", "declared"), done.stdout
    assert found["pivot"]["b"]["line"] == line_of(line)
    assert found["pivot"]["why"] == "declared Shard(0) over ranks 0-1, holds pieces along 2 (sharded) over ranks 0, 1"


def test_a_gradient_that_is_no_whole(opguard, tmp_path):
    line = "weight = weight.to_local(grad_placements=[Partial()])"
    done, found = compared(opguard, tmp_path, [(line, "weight = weight.to_local()")])
    assert (done.returncode, found["verdict"], found["pivot"]["kind"]) == (1, "diverged", "declared"), done.stdout
    assert found["pivot"]["b"]["line"] == line_of(line)


def test_a_fault_beside_right_declarations_keeps_its_kind(opguard, tmp_path):
    done, found = compared(opguard, tmp_path, [("return x + summed(part)", "return x + 2 * summed(part)")])
    assert (done.returncode, found["verdict"], found["pivot"]["kind"]) == (1, "diverged", "value"), done.stdout
    assert found["pivot"]["b"]["line"] == line_of("return x + summed(part)")
    assert found["tolerance"]["declared"]["otherwise"] == []


@pytest.mark.parametrize(("ranks", "tp"), [(2, 2), (2, 1), (4, 2)])
def test_plans_of_torch_are_found_as_they_say(opguard, tmp_path, ranks, tp):
    done, found = compared(opguard, tmp_path, program=LIBRARY, ranks=ranks, env={"TP": str(tp)})
    assert (done.returncode, found["verdict"]) == (0, "equivalent"), done.stdout
    told = found["tolerance"]["declared"]
    assert told["otherwise"] == [] and told["as_found"] > 10, told
    _, parameters = declared_in(tmp_path)
    up = {(2, 2): "Shard(0) over 2 ranks 0-1", (2, 1): "Shard(0) over 2 ranks 0-1", (4, 2): "_StridedShard(0, 2), Shard(0) over 2x2 ranks 0-3"}
    assert parameters["param:0.up.weight"] == up[ranks, tp]


def test_attributes_that_hold(opguard, tmp_path):
    done, found = compared(opguard, tmp_path, program=ATTRIBUTES)
    assert (done.returncode, found["verdict"]) == (0, "equivalent"), done.stdout
    assert found["tolerance"]["declared"]["otherwise"] == []
    declared = {t["slot"]: t["declared"] for t in found["tolerance"]["placements"] if t["boundary"] == "<gradients>"}
    assert declared["grad:norm"] == {"text": "sequence_parallel", "state": "as_found"}
    assert declared["grad:up"] == {"text": "tensor_model_parallel, partition_dim 0", "state": "as_found"}


def test_a_sequence_parallel_parameter_whose_gradient_is_not_summed(opguard, tmp_path):
    line = 'if WORLD > 1 and getattr(parameter, "sequence_parallel", False):'
    done, found = compared(opguard, tmp_path, [(line, 'if WORLD > 1 and getattr(parameter, "sequence_parallel_norm", False):')], program=ATTRIBUTES)
    assert (done.returncode, found["verdict"], found["pivot"]["kind"]) == (1, "diverged", "declared"), done.stdout
    assert found["pivot"]["why"] == "declared sequence_parallel, holds parts of a sum (partial) over ranks 0, 1"
    assert found["pivot"]["b"]["line"] == line_of("* self.norm", ATTRIBUTES)
