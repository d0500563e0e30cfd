"""A reference of several data parallel ranks: each has the whole model, and its data are micro-batches of one run."""

import json
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch.distributed.fsdp")

PROGRAM = """
import os
import sys
import torch
import torch.distributed as dist
import torch.nn.functional as F

dist.init_process_group("gloo")
RANK, WORLD = dist.get_rank(), dist.get_world_size()

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(16)
        self.up, self.down = torch.nn.Linear(16, 32), torch.nn.Linear(32, 16)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))

torch.manual_seed(0)
model = torch.nn.Sequential(Block(), Block())
if sys.argv[1] == "fsdp":
    from torch.distributed.fsdp import fully_shard

    for block in model:
        fully_shard(block)
    fully_shard(model)
else:
    model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, eps=1e-3)
for step in range(2):
    g = torch.Generator().manual_seed(100 + step)
    x, y = torch.randn(8, 4, 16, generator=g), torch.randn(8, 4, 16, generator=g)
    each = 8 // WORLD
    mine = slice(RANK * each, RANK * each + each)
    loss = F.mse_loss(model(x[mine]), y[mine])
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
dist.barrier()
dist.destroy_process_group()
"""


def compared(opguard, tmp_path, how, ranks, edit=("", ""), *options):
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_text(PROGRAM.replace(*edit) if name == "b" and edit[0] else PROGRAM)
    assert edit[0] in PROGRAM
    launch = f"{sys.executable} -m torch.distributed.run --standalone --nproc-per-node"
    out = tmp_path / "verdict.json"
    done = opguard("diff", "--tolerance", "-q", tmp_path / "a", tmp_path / "b", "--run-a", f"{launch} 2 {{tree}}/train.py ddp",
                   "--run-b", f"{launch} {ranks} {{tree}}/train.py {how}", "--json", out, "--work", tmp_path / "work", *options,
                   env={"OMP_NUM_THREADS": "1"})  # fmt: skip
    assert out.exists(), done.stderr
    return done, json.loads(out.read_text())


def line_of(text):
    return next(n for n, line in enumerate(PROGRAM.splitlines(), 1) if text in line)


@pytest.mark.parametrize("how, ranks", [("fsdp", 2), ("ddp", 4)])
def test_other_layouts_of_data_parallel_runs_are_equivalent(opguard, tmp_path, how, ranks):
    done, found = compared(opguard, tmp_path, how, ranks)
    assert (done.returncode, found["verdict"]) == (0, "equivalent"), done.stdout
    assert found["tolerance"]["beyond"] == 0
    layouts = {t["slot"]: t["found"] for t in found["tolerance"]["placements"] if t["boundary"] == "<parameters>"}
    assert ("sharded along 0" if how == "fsdp" else "replicated") in layouts.values()
    # Rank 1 of the reference is behind rank 0, whatever rank of b has its data.
    assert f"rank {ranks - 1}: micro-batch 0 of step 0 is 1" in done.stdout


def test_data_of_another_rank_are_named(opguard, tmp_path):
    done, found = compared(opguard, tmp_path, "fsdp", 2, ("model(x[mine]), y[mine]", "model(x[mine]), y[:each]"))
    assert (done.returncode, found["verdict"], found["pivot"]["kind"]) == (1, "diverged", "stale"), done.stdout
    assert found["pivot"]["b"]["line"] == line_of("y[mine]")
    assert "micro-batch 0, rank 1, slot root0" in done.stdout or "micro-batch 0, rank 1, slot out0" in done.stdout


def test_a_fault_on_one_rank_is_proven(opguard, tmp_path):
    fault = ("F.gelu(self.up(self.norm(x)))", "F.gelu(self.up(self.norm(x)), approximate='tanh' if RANK == 1 else 'none')")
    done, found = compared(opguard, tmp_path, "fsdp", 2, fault, "--isolate")
    assert (done.returncode, found["verdict"], found["proof"]["state"]) == (1, "diverged", "proven"), done.stdout
    assert found["pivot"]["b"]["line"] == line_of("F.gelu(") and len(found["tolerance"]["isolation"]["faults"]) == 1
