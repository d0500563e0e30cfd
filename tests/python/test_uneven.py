"""`opguard diff --tolerance` where ranks hold unequal parts: a vocabulary of 103 rows over 4 ranks, as it is and padded to 104, DTensor and FSDP2."""

import json
import sys

import pytest

pytest.importorskip("torch.distributed.tensor")

VOCABULARY = """
import os
import torch
import torch.distributed as dist
import torch.nn.functional as F

WORLD = int(os.environ.get("WORLD_SIZE", 1))
RANK = int(os.environ.get("RANK", 0))
VOCAB, HIDDEN = 103, 16
# Each rank holds as many rows, and the last of them are a pad.
PADDED, PAD = WORLD > 1 and "PAD" in os.environ, float(os.environ.get("PAD", 0))
EACH = -(-VOCAB // WORLD)
FIRST = RANK * EACH

def rows(weight):
    part = weight[FIRST : FIRST + EACH].clone()
    if PADDED and len(part) < EACH:
        part = F.pad(part, (0, 0, 0, EACH - len(part)), value=PAD)
    return part

class Summed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        if WORLD > 1:
            dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad

class Copied(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.contiguous()
        if WORLD > 1:
            dist.all_reduce(grad)
        return grad

class Embedding(torch.nn.Module):
    def __init__(self):
        super().__init__()
        g = torch.Generator().manual_seed(1)
        self.weight = torch.nn.Parameter(rows(torch.randn(VOCAB, HIDDEN, generator=g)))

    def forward(self, tokens):
        local = tokens - FIRST
        outside = (local < 0) | (local >= len(self.weight))
        h = F.embedding(local.clamp(0, len(self.weight) - 1), self.weight)
        h = h.masked_fill(outside[..., None], 0.0)
        return Summed.apply(h)

class Head(torch.nn.Module):
    def __init__(self):
        super().__init__()
        g = torch.Generator().manual_seed(2)
        self.weight = torch.nn.Parameter(rows(torch.randn(VOCAB, HIDDEN, generator=g) / 4))

    def forward(self, h, labels):
        logits = F.linear(Copied.apply(h), self.weight)
        if PADDED:
            logits = logits[..., : max(0, min(EACH, VOCAB - FIRST))]
        largest = logits.detach().amax(-1)
        if WORLD > 1:
            dist.all_reduce(largest, op=dist.ReduceOp.MAX)
        logits = logits - largest[..., None]
        total = Summed.apply(logits.exp().sum(-1))
        local = labels - FIRST
        outside = (local < 0) | (local >= logits.shape[-1])
        mine = logits.gather(-1, local.clamp(0, logits.shape[-1] - 1)[..., None])[..., 0]
        target = Summed.apply(mine.masked_fill(outside, 0.0))
        return (total.log() - target).mean()

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.head = Embedding(), Head()
        g = torch.Generator().manual_seed(3)
        self.up = torch.nn.Parameter(torch.randn(HIDDEN, HIDDEN, generator=g) / 4)

    def forward(self, tokens, labels):
        h = self.emb(tokens)
        h = h + F.gelu(F.linear(h, self.up))
        return self.head(h, labels)

if WORLD > 1:
    dist.init_process_group("gloo")
model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, eps=1e-3, foreach=False)
for step in range(2):
    g = torch.Generator().manual_seed(100 + step)
    tokens, labels = (torch.randint(0, VOCAB, (2, 16), generator=g) for _ in range(2))
    loss = model(tokens, labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
if WORLD > 1:
    dist.barrier()
    dist.destroy_process_group()
"""

# torch's own plans over dimensions that the ranks do not divide.
LIBRARY = """
import os
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

WORLD, PLAN = int(os.environ.get("WORLD_SIZE", 1)), os.environ.get("PLAN", "")

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(13, 30), torch.nn.Linear(30, 13)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(x)))

torch.manual_seed(0)
model = torch.nn.Sequential(Block(), Block())
if WORLD > 1:
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (WORLD,))
    for block in model:
        if PLAN == "tp":
            parallelize_module(block, mesh, {"up": ColwiseParallel(use_local_output=False), "down": RowwiseParallel()})
        elif PLAN == "fsdp":
            fully_shard(block, mesh=mesh)
    if PLAN == "fsdp":
        fully_shard(model, mesh=mesh)
    elif PLAN == "fsdp1":
        model = FSDP(model, use_orig_params=os.environ.get("ORIGINAL", "1") == "1", device_id=torch.device("cpu"))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, eps=1e-3, foreach=False)
for step in range(2):
    g = torch.Generator().manual_seed(100 + step)
    x, y = torch.randn(4, 8, 13, generator=g), torch.randn(4, 8, 13, generator=g)
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
if WORLD > 1:
    dist.barrier()
    dist.destroy_process_group()
"""


def compared(opguard, tmp_path, program, edits=(), ranks=4, **env):
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
        "--json", out, "--work", tmp_path / "work", env={"OMP_NUM_THREADS": "1", **env},
    )  # fmt: skip
    assert out.exists(), done.stderr
    return done, json.loads(out.read_text())


def line_of(text, program=VOCABULARY):
    return next(n for n, line in enumerate(program.splitlines(), 1) if text in line)


def parameters(found, ending=""):
    """What is found of each parameter's value; sharded ones are gathered meanwhile."""
    of = [t for t in found["tolerance"]["placements"] if t["slot"].startswith("param:") and t["slot"].endswith(ending)]
    assert of and all(t["state"] == "equal" for t in of)
    return {t["found"] for t in of}


def named(found):
    return found["pivot"]["kind"], found["pivot"]["b"]["line"]


@pytest.mark.parametrize("ranks", [2, 4])
def test_a_vocabulary_of_unequal_shards_is_equivalent(opguard, tmp_path, ranks):
    done, found = compared(opguard, tmp_path, VOCABULARY, ranks=ranks)
    assert (done.returncode, found["verdict"]) == (0, "equivalent"), done.stdout
    assert parameters(found, "emb.weight") == parameters(found, "head.weight") == {"sharded along 0"}
    logits = [t for t in found["tolerance"]["placements"] if t["boundary"].startswith("train.exp:") and not t["node"]]
    assert logits and all((t["found"], t["state"]) == ("sharded along 2", "equal") for t in logits)


def test_a_row_offset_of_the_last_shard(opguard, tmp_path):
    """The last rank takes the labels of the row before."""
    wrong = "local = labels - FIRST + (WORLD > 1 and RANK == WORLD - 1)"
    done, found = compared(opguard, tmp_path, VOCABULARY, [("local = labels - FIRST", wrong)])
    assert (done.returncode, found["verdict"]) == (1, "diverged"), done.stdout
    assert named(found) == ("replicas", line_of("local = labels - FIRST"))


def test_a_last_shard_that_is_dropped(opguard, tmp_path):
    kept = "logits.exp().sum(-1) * (RANK < 3)"
    done, found = compared(opguard, tmp_path, VOCABULARY, [("logits.exp().sum(-1)", kept)])
    assert (done.returncode, found["verdict"]) == (1, "diverged"), done.stdout
    assert named(found) == ("missing_reduce", line_of("total = Summed.apply"))


@pytest.mark.parametrize("pad", ["0", "3"])
def test_a_pad_without_effect_is_equivalent(opguard, tmp_path, pad):
    done, found = compared(opguard, tmp_path, VOCABULARY, PAD=pad)
    assert (done.returncode, found["verdict"]) == (0, "equivalent"), done.stdout
    assert parameters(found, "emb.weight") == parameters(found, "head.weight") == {"sharded along 0"}


@pytest.mark.parametrize("pad", ["0", "3"])
def test_a_pad_that_enters_the_softmax(opguard, tmp_path, pad):
    done, found = compared(opguard, tmp_path, VOCABULARY, [("        if PADDED:\n", "        if False:\n")], PAD=pad)
    assert (done.returncode, found["verdict"]) == (1, "diverged"), done.stdout
    # Zeros are larger than no logit here; threes are.
    assert named(found) == ("value", line_of("total = Summed.apply" if pad == "0" else "largest = "))


@pytest.mark.parametrize("plan", ["tp", "fsdp"])
def test_plans_of_torch_are_found_as_they_say(opguard, tmp_path, plan):
    done, found = compared(opguard, tmp_path, LIBRARY, PLAN=plan)
    assert (done.returncode, found["verdict"]) == (0, "equivalent"), done.stdout
    told = found["tolerance"]["declared"]
    assert told["placements"] > 20 and told["otherwise"] == [], told
    assert parameters(found, "up.weight") == ({"sharded along 0"} if plan == "tp" else {"sharded along 0", "replicated"})
    declared = [t["declared"] for t in found["tolerance"]["placements"] if t["found"] == "sharded along 0" and t["slot"] == "param:0.up.weight"]
    assert declared and all(said == {"text": "Shard(0) over ranks 0-3", "state": "as_found"} for said in declared)


def test_flat_shards_are_told_by_the_elements_laid_end_to_end(opguard, tmp_path):
    """FSDP1: rank 0 holds the first parameters and the beginning of one, the last rank the end."""
    done, found = compared(opguard, tmp_path, LIBRARY, PLAN="fsdp1")
    assert (done.returncode, found["verdict"]) == (0, "equivalent"), done.stdout
    assert "sharded" in parameters(found, "weight") and parameters(found, "weight") <= {"sharded", "replicated"}


def test_a_flat_shard_with_another_gradient(opguard, tmp_path):
    wrong = """    if WORLD > 1 and dist.get_rank() == 1:
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.grad is not None:
                    parameter.grad.mul_(1.5)
    optimizer.step()
"""
    done, found = compared(opguard, tmp_path, LIBRARY, [("    optimizer.step()\n", wrong)], PLAN="fsdp1")
    assert (done.returncode, found["verdict"]) == (1, "diverged"), done.stdout
    # Rank 1 of 4 holds nothing of the last parameters, so the first step's gradients of these agree.
    first = {}
    for t in found["tolerance"]["placements"]:
        if t["boundary"] == "<gradients>":
            first.setdefault(t["slot"], t["state"])
    assert first["grad:0.up.bias"] == "beyond" and first["grad:1.down.bias"] == "equal"


def test_flat_shards_without_the_parameters_names_are_not_judged(opguard, tmp_path):
    done, found = compared(opguard, tmp_path, LIBRARY, PLAN="fsdp1", ORIGINAL="0")
    assert (done.returncode, found["verdict"]) == (2, "inconclusive"), done.stdout
    assert "have no partner" in done.stdout
