"""`opguard prove --full`: whether a plan is the same program at the dims that it is meant for."""

import json
import subprocess
import sys

import pytest

from conftest import binary

pytest.importorskip("torch")
OPGUARD = binary("opguard")

# Layers of two products, the inner dimension cut over tp ranks, the rows over dp ranks.
PLAN = """import torch, torch.distributed as dist
DIMS = dict(dp=2, tp=2, layers=3, rows=4, width=2, inner=4)
FULL = dict(dp=4, tp=2, layers=9, rows=4096, width=512, inner=4096)
WORLD = ("dp", "tp")
class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group, forward):
        ctx.group = None if forward else group
        x = x.clone()
        if forward: dist.all_reduce(x, group=group)
        return x
    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.clone()
        if ctx.group is not None: dist.all_reduce(gradient, group=ctx.group)
        return gradient, None, None
def build(d, dp, tp, data=None, tensor=None):
    rows, inner = d["rows"] // dp, d["inner"] // tp
    state = {"x": torch.randn(rows, d["width"])}
    for i in range(d["layers"]):
        state["layers.%d.up" % i], state["layers.%d.down" % i] = torch.randn(d["width"], inner), torch.randn(inner, d["width"])
    for t in state.values(): t.requires_grad_()
    def step():
        x = state["x"]
        for i in range(d["layers"]):
            up, down = state["layers.%d.up" % i], state["layers.%d.down" % i]
            z = Sum.apply(x, tensor, False) if tp > 1 else x
            y = torch.tanh(z @ up) @ down
            if tp > 1: y = Sum.apply(y, tensor, True)
            x = x + y / d["width"]
        loss = x.square().sum() / (d["rows"] * d["width"])
        loss.backward()
        if dp > 1:
            for name, t in state.items():
                if name != "x": dist.all_reduce(t.grad, group=data)
            loss = loss.detach()
            dist.all_reduce(loss, group=data)
        return {"loss": loss.detach(), **{"grad:" + n: t.grad for n, t in state.items()}}
    return dict(state=state, tokens={}, step=step)
def logical(d): return build(d, 1, 1)
def plan(rank, d):
    dp, tp = divmod(rank, d["tp"])
    data, tensor = None, None
    for t in range(d["tp"]):
        group = dist.new_group([x * d["tp"] + t for x in range(d["dp"])])
        data = group if t == tp else data
    for x in range(d["dp"]):
        group = dist.new_group([x * d["tp"] + t for t in range(d["tp"])])
        tensor = group if x == dp else tensor
    def place(name, full):
        if name == "x": return full.chunk(d["dp"], 0)[dp]
        return full.chunk(d["tp"], 1 if name.endswith("up") else 0)[tp]
    return dict(build(d, d["dp"], d["tp"], data, tensor), place=place)
"""


def prove(folder, text, *options):
    """(exit code, stdout and stderr, result)"""
    path, written = folder / "layers.py", folder / "result.json"
    path.write_text(text)
    ran = subprocess.run([OPGUARD, "prove", path, "--python", sys.executable, "--json", written, *options], capture_output=True, text=True, timeout=300)
    return ran.returncode, ran.stdout + ran.stderr, json.loads(written.read_text()) if written.exists() else None


def changed(old, new):
    assert old in PLAN
    return PLAN.replace(old, new)


def test_the_same_program_at_full_dims(tmp_path):
    code, text, result = prove(tmp_path, PLAN, "--full")
    assert code == 0, text
    full = result["full"]
    assert full["same"] and full["world"] == 8 and full["looked_at"] == 4  # 0, 1 along tp, 6 along dp, and the last
    assert {(r["reduced"], r["full"]) for r in full["repeated"]} <= {(2, 8), (3, 9)} and full["repeated"]  # the first or the last layer may stand apart
    assert "the same program at full dims: 4 ranks of 8 looked at" in text
    assert "what holds at these dims holds at the full ones" in result["assumed"][-1]


def test_full_dims_by_option(tmp_path):
    code, text, result = prove(tmp_path, PLAN.replace("FULL =", "UNUSED ="), "--full", "layers=12,width=64")
    assert code == 0 and result["full"]["dims"]["layers"] == 12 and result["full"]["dims"]["inner"] == 4, text


# What is right at the small dims and is another program at the full ones.
@pytest.mark.parametrize(
    "old, new, says",
    [
        ("if tp > 1: y = Sum", "if tp > 1 and i < 4: y = Sum", "at full dims it runs"),  # a layer without its collective
        ('state["layers.%d.up" % i], state["layers.%d.down" % i]\n            z', 'state["layers.%d.up" % {7: 8, 8: 7}.get(i, i)], state["layers.%d.down" % i]\n            z', "comes from another"),  # two layers' weights exchanged
        ('y / d["width"]', 'y / (2 if d["width"] == 2 else 5)', "no product of dims grew so"),  # a number of its own
        ('y / d["width"]', 'y / (5 if i == 4 else d["width"])', "in repetition"),  # of one layer in the middle
        ("x = x + y", "x = (x if i < 6 else state['x']) + y", "at full dims it runs"),  # a residual that begins again
        ("rows, inner = ", "dist.barrier() if d['rows'] > 8 and dp > 1 else None\n    rows, inner = ", None),  # outside the step: no difference
    ],
)
def test_another_program_at_full_dims(tmp_path, old, new, says):
    code, text, result = prove(tmp_path, changed(old, new), "--full")
    if says is None:
        assert code == 0, text
        return
    assert code == 2 and result["verdict"] == "unknown", text
    assert "proved at the reduced dims only" in result["why"] and says in result["why"], result["why"]
    assert not result["full"]["same"]


def test_a_refutation_stays_one(tmp_path):
    code, text, result = prove(tmp_path, changed("if dp > 1:\n            for", "if dp > 2:\n            for"), "--full")
    assert code == 1 and result["verdict"] == "refuted", text


@pytest.mark.parametrize(
    "old, new, says",
    [
        ("FULL =", "OTHER =", "no FULL, a dict of extents, is defined"),
        ("FULL = dict(", "FULL = dict(depth=3, ", "FULL has 'depth', which DIMS has not"),
        ("FULL = dict(dp=4", "FULL = dict(dp=1", "an axis that has several has several in both"),
        ('WORLD = ("dp", "tp")', 'WORLD = ("dp", "ep")', "WORLD has 'ep', and DIMS has nothing of it"),
        ("x = state[", "d['rows'] > 8 and float(state['x'].sum())\n        x = state[", "layers.py:"),
    ],
)
def test_bad_input(tmp_path, old, new, says):
    code, text, result = prove(tmp_path, changed(old, new), "--full")
    assert code == 3 and says in text.splitlines()[-1] and result is None, text
