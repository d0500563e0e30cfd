"""One model in other pieces: lists of tensors, shares of ranks, flat buffers with padding. What agrees is `identical`, what differs is not."""
import json

import pytest

from distributed import run_ranks
from runtime_log import record

pytest.importorskip("torch.distributed")

# `fault`: in the last step one rank's optimizer decays the weights it holds more. No loss is computed behind it.
TRAIN = """
fault = %r
from torch.nn import functional as F
torch.manual_seed(3)
net = torch.nn.Sequential(torch.nn.Linear(6, 7), torch.nn.ReLU(), torch.nn.Linear(7, 3))
settings = dict(lr=1e-2, weight_decay=.1)
def train(net, optimizer, before=lambda: None):
    for step in range(3):
        g = torch.Generator().manual_seed(100 * step + rank)
        x, y = torch.randn(4, 6, generator=g), torch.randint(0, 3, (4,), generator=g)
        loss = og("train.loss", F.cross_entropy)(og("train.net", net)(x), y)
        og("train.backward", loss.backward)()
        if step == 2 and rank in fault:
            optimizer.param_groups[0]["weight_decay"] = .2
        before()
        og("train.step", optimizer.step)()
        optimizer.zero_grad()
"""
DDP = TRAIN + """
from torch.nn.parallel import DistributedDataParallel
net = DistributedDataParallel(net)
train(net, torch.optim.AdamW(net.parameters(), **settings))
"""
ZERO = TRAIN + """
from torch.nn.parallel import DistributedDataParallel
from torch.distributed.optim import ZeroRedundancyOptimizer
net = DistributedDataParallel(net)
train(net, ZeroRedundancyOptimizer(net.parameters(), torch.optim.AdamW, **settings))
"""
FULLY_SHARD = TRAIN + """
from torch.distributed.fsdp import fully_shard
for layer in (net[0], net[2]):
    fully_shard(layer)
fully_shard(net)
train(net, torch.optim.AdamW(net.parameters(), **settings))
"""
FSDP = TRAIN + """
from torch.distributed.fsdp import FullyShardedDataParallel
net = FullyShardedDataParallel(net, use_orig_params=False, device_id=torch.device("cpu"))
train(net, torch.optim.AdamW(net.parameters(), **settings))
"""
# One process.
ALONE = "import torch\nrank = 0\n" + TRAIN
LIST = ALONE + """
train(net, torch.optim.AdamW(net.parameters(), **settings))
"""
FOREACH, FOR_LOOP = (LIST.replace("**settings", "**settings, foreach=" + yes) for yes in ("True", "False"))
# The parameters are views of one buffer, each padded to a multiple of 16 elements.
FLAT = ALONE + """
parts = list(net.parameters())
flat = torch.nn.Parameter(torch.zeros(sum(-(-p.numel() // 16) * 16 for p in parts)))
places, at = [], 0
for p in parts:
    places.append(slice(at, at + p.numel()))
    with torch.no_grad():
        flat[places[-1]] = p.flatten()
    p.data = flat.data[places[-1]].view_as(p)
    at += -(-p.numel() // 16) * 16
def gather():
    flat.grad = torch.zeros_like(flat)
    for p, place in zip(parts, places):
        flat.grad[place] = p.grad.flatten()
        p.grad = None
train(net, torch.optim.AdamW([flat], **settings), before=gather)
"""


@pytest.fixture
def compared(opguard, tmp_path):
    """compared(a, b, ranks, fault of b) -> JSON."""

    def compare(a, b, world, fault=()):
        for name, source in (("a", a % (set(),)), ("b", b % (set(fault),))):
            if world > 1:
                run_ranks(source, world, tmp_path / name)
            else:
                record(source, tmp_path / name)
        done = opguard("align", tmp_path / "a", tmp_path / "b", "--json", tmp_path / "answer.json", "--color", "never")
        answer = json.loads((tmp_path / "answer.json").read_text())
        assert done.returncode == {"identical": 0, "diverged": 1, "inconclusive": 2}[answer["verdict"]], done.stderr
        return answer

    return compare


PAIRS = {
    "ddp-zero": (DDP, ZERO, 2),
    "ddp-fully_shard": (DDP, FULLY_SHARD, 2),
    "ddp-fsdp": (DDP, FSDP, 2),
    "zero-fully_shard": (ZERO, FULLY_SHARD, 2),
    "list-flat": (LIST, FLAT, 1),
    "foreach-for_loop": (FOREACH, FOR_LOOP, 1),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_the_same_elements_in_other_pieces_are_identical(compared, pair):
    a, b, world = PAIRS[pair]
    answer = compared(a, b, world)
    assert answer["verdict"] == "identical", answer["why"]
    in_pieces = [note for note in answer["notes"] if "in other pieces" in note]
    assert len(in_pieces) == (pair not in ("ddp-zero", "foreach-for_loop")), answer["notes"]


@pytest.mark.parametrize("pair", PAIRS)
def test_a_piece_that_decays_otherwise_is_not(compared, pair):
    a, b, world = PAIRS[pair]
    answer = compared(a, b, world, {world - 1})
    assert answer["verdict"] == "diverged" and answer["why"] == "the parameters differ after a step"
