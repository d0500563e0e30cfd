"""`opguard align --single`: activation checkpointing that does not reproduce its forward, in one run."""

import json

import pytest

from runtime_log import record

torch = pytest.importorskip("torch")

PROGRAM = """
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
torch.manual_seed(0)
F = torch.nn.functional
def forward(): return torch._C._current_graph_task_id() == -1
def count(self):
    self.calls += 1
    return self.calls
def cast(self, h, on):
    with torch.autocast("cpu", torch.bfloat16, enabled=on):
        return og("block.mm", F.linear)(h, self.lin.weight).float()
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(8, 8)
        self.calls = 0
        self.register_buffer("seen", torch.zeros(1))
    def forward(self, x):
        h = og("block.lin", self.lin)(x)
        h = og("block.gelu", F.gelu)(h)
        h = {work}
        return og("block.add", h) + x
class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = Block(), Block()
    def forward(self, x):
        return run(self.two, run(self.one, x)) if {nested} else self.two(self.one(x))
def run(block, x): return og("model.checkpoint", checkpoint)(block, x, use_reentrant={reentrant}{options})
layers = nn.ModuleList([{layer}() for _ in range(3)])
optimizer = torch.optim.SGD(layers.parameters(), lr=0.1)
data = torch.Generator().manual_seed(1)
for step in range(2):
    for micro in range(2):
        x = og("data.randn", torch.randn)(4, 8, generator=data, requires_grad=True)
        for layer in layers: x = run(layer, x)
        og("loss.backward", og("loss.mean", og("loss.square", x.square)().mean)().backward)()
    optimizer.step()
    optimizer.zero_grad()
"""


# What is read again in backward last is where an early stop cuts the recomputation off: after the dropout.
DROPOUT = "og('block.scale', og('block.drop', F.dropout)(h, 0.5)) * self.lin.bias"


def single(opguard, folder, **parts):
    fields = {"work": DROPOUT, "nested": False, "reentrant": False, "options": "", "layer": "Block",
              **parts}  # fmt: skip
    log = record(PROGRAM.format(**fields), folder / "log")
    result = opguard("align", "--single", folder / "log", "--json", folder / "out.json")
    assert result.stderr == "", result.stderr
    found = json.loads((folder / "out.json").read_text())
    assert result.returncode == (1 if found["findings"] else 0)
    assert result.stdout.startswith(found["verdict"] + ": " + found["why"])
    again = [e for e in log.events if e.phase == "recompute" and e.kind == "op"]
    assert len(again) == found["recomputed"] > 0
    return found, result.stdout


@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("nested", [True, False])
def test_a_recompute_like_its_forward_is_clean(opguard, tmp_path, reentrant, nested):
    found, _ = single(opguard, tmp_path, reentrant=reentrant, nested=nested, layer="Pair")
    assert found["verdict"] == "clean" and not found["findings"]
    assert found["compared"] >= found["recomputed"] * 0.8


@pytest.mark.parametrize("reentrant", [True, False])
def test_dropout_without_the_random_state(opguard, tmp_path, reentrant):
    found, text = single(opguard, tmp_path, reentrant=reentrant, options=", preserve_rng_state=False")
    (finding,) = found["findings"]
    assert (finding["kind"], finding["boundary"], finding["check"]) == ("value", "block.drop", "recompute")
    assert finding["times"] == 12 and finding["slot"] == "out0"
    assert finding["a"]["line"] == finding["b"]["line"] > 0
    assert "finding: value in block.drop, " in text


# Nothing after the dropout is read in backward: it is what the early stop cuts short.
@pytest.mark.parametrize("options", ["", ", preserve_rng_state=False"])
def test_dropout_cut_short_by_an_early_stop(opguard, tmp_path, options):
    work = "og('block.drop', F.dropout)(h, 0.5) * 2"
    found, text = single(opguard, tmp_path, reentrant=False, work=work, options=options)
    assert [f["boundary"] for f in found["findings"]] == (["block.drop"] if options else [])
    assert ("draws other random numbers" in text) == bool(options)


def test_a_counter(opguard, tmp_path):
    found, text = single(opguard, tmp_path, reentrant=True, work="og('block.mul', h) * count(self)")
    (finding,) = found["findings"]
    assert (finding["kind"], finding["boundary"]) == ("scalar", "block.mul")
    assert "arg0=" in text


def test_a_buffer_written_in_place(opguard, tmp_path):
    found, _ = single(opguard, tmp_path, work="h * og('block.bump', self.seen.add_)(1).clone()")
    (finding,) = found["findings"]
    assert (finding["kind"], finding["boundary"], finding["slot"]) == ("input", "block.bump", "self")


@pytest.mark.parametrize("on", ["True", "forward()"])
def test_autocast_in_the_forward_only(opguard, tmp_path, on):
    found, _ = single(opguard, tmp_path, reentrant=True, work="cast(self, h, %s)" % on)
    if on == "True":
        assert found["verdict"] == "clean"
        return
    (finding,) = found["findings"]
    assert (finding["kind"], finding["boundary"]) == ("structure", "block.mm")
    assert {finding["differs"][0][side]["dtype"] for side in "ab"} == {"bfloat16", "float32"}


def test_two_runs_of_which_one_loses_the_random_state(opguard, tmp_path):
    for side, options in (("a", ""), ("b", ", preserve_rng_state=False")):
        fields = dict(work=DROPOUT, nested=False, reentrant=False, options=options, layer="Block")
        record(PROGRAM.format(**fields), tmp_path / side)
    result = opguard("align", tmp_path / "a", tmp_path / "b", "--json", tmp_path / "out.json")
    verdict = json.loads((tmp_path / "out.json").read_text())
    assert result.returncode == 1 and verdict["verdict"] == "diverged"
    pivot = verdict["pivot"]
    assert (pivot["boundary"], pivot["kind"]) == ("block.drop", "value")
    assert "in run b its recomputation does not reproduce its forward" in pivot["why"]
    assert any(n.startswith("run b: the recomputation of block.drop at ") for n in verdict["notes"])


def test_the_options_of_align(opguard, tmp_path):
    assert opguard("align", tmp_path).returncode == 2
    assert opguard("align", tmp_path, tmp_path, "--single", tmp_path).returncode == 2
    assert opguard("align", "--single", tmp_path / "none").returncode == 2
