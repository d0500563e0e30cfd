"""`opguard prove` on small plans: proved, refuted, unknown, bad input, and what was once proved wrongly."""

import json
import subprocess
import sys

import pytest

from conftest import ROOT, binary

pytest.importorskip("torch")
OPGUARD = binary("opguard")

# y = relu(x @ w) @ v, its inner dimension cut over two ranks.
PLAN = """import torch, torch.distributed as dist
DIMS, WORLD = dict(rows=3, width=2, inner=4), 2
CUT = {"w": 1, "v": 0}
class Copy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)
    @staticmethod
    def backward(ctx, grad):
        grad = grad.clone()
        dist.all_reduce(grad)  # BACKWARD
        return grad
def build(d, parts):
    state = {"x": torch.randn(d["rows"], d["width"]), "w": torch.randn(d["width"], d["inner"] // parts), "v": torch.randn(d["inner"] // parts, d["width"])}
    for t in state.values(): t.requires_grad_()
    def step():
        x = state["x"].tanh()
        if parts > 1: x = Copy.apply(x)
        y = (x @ state["w"]).relu() @ state["v"]
        if parts > 1:
            y = y.clone()
            with torch.no_grad(): dist.all_reduce(y)  # FORWARD
        loss = y.square().mean()
        y.backward(y.detach() * 2 / y.numel())  # of the mean, by hand
        return {"loss": loss.detach(), **{"grad:" + n: t.grad for n, t in state.items()}}
    return dict(state=state, tokens={}, step=step)
def logical(d): return build(d, 1)
def plan(rank, d):
    return dict(build(d, WORLD), place=lambda name, full: full.chunk(WORLD, CUT[name])[rank] if name in CUT else full)
"""


def prove(path, *options):
    """(exit code, stdout, result)"""
    written = path.parent / "result.json"
    ran = subprocess.run([OPGUARD, "prove", path, "--python", sys.executable, "--json", written, *options], capture_output=True, text=True, timeout=300)
    return ran.returncode, ran.stdout, json.loads(written.read_text()) if written.exists() else ran.stderr


def plan_file(folder, text):
    path = folder / "mlp.py"
    path.write_text(text)
    return path


def test_a_right_plan_is_proved(tmp_path):
    code, text, result = prove(plan_file(tmp_path, PLAN))
    assert (code, result["verdict"]) == (0, "proved"), result
    assert text.startswith("proved: the plan computes what its model computes, over the reals\n")
    assert result["outputs"] == 8 and "difference" not in result


def test_a_missing_collective_is_refuted_with_its_statement(tmp_path):
    code, text, result = prove(plan_file(tmp_path, PLAN.replace("dist.all_reduce(grad)  # BACKWARD", "pass  # BACKWARD")))
    assert (code, result["verdict"]) == (1, "refuted"), result
    found = result["difference"]
    assert found["output"] == "grad:x" and found["logical"] != found["plan"] and found["point"]
    lines = PLAN.splitlines()
    named = {lines[found[key]["line"] - 1].strip() for key in ("made", "passed")}
    assert named <= {"grad = grad.clone()", 'y = (x @ state["w"]).relu() @ state["v"]'}, named


def test_other_dims(tmp_path):
    assert prove(plan_file(tmp_path, PLAN), "--dims", "inner=8,rows=2")[0] == 0


def test_what_is_captured_can_be_kept(tmp_path):
    path = plan_file(tmp_path, PLAN)
    assert prove(path, "--work", tmp_path / "kept")[0] == 0
    ran = subprocess.run([OPGUARD, "prove", "--captured", tmp_path / "kept"], capture_output=True, text=True)
    assert ran.returncode == 0 and ran.stdout.startswith("proved")
    cut = tmp_path / "kept" / "rank-1.json"
    cut.write_text(cut.read_text()[:-10])
    ran = subprocess.run([OPGUARD, "prove", "--captured", tmp_path / "kept"], capture_output=True, text=True)
    assert ran.returncode == 3 and "rank-1.json: is no JSON, or not whole" in ran.stderr


def test_bad_input_is_one_line(tmp_path):
    code, text, error = prove(plan_file(tmp_path, PLAN.replace("def plan(", "def plans(")))
    assert code == 3 and text == "" and "mlp.py:" in error and "plan" in error
    assert prove(tmp_path / "none.py")[0] == 3


ONE = """import torch
DIMS, WORLD = dict(vocab=5), 2
def build(roundly):
    ids, w = torch.tensor([1, 3]), torch.randn(4)
    def step():
        h = ids / 2
        h = %s if roundly else h
        return {"out": h, "new:w": w * 2}
    return dict(state={"w": w}, tokens={"ids": ids}, step=step)
def logical(d): return build(True)
def plan(rank, d):
    %s
"""


@pytest.mark.parametrize("rounding", ["h.floor()", "h.long().float()", "h.to(torch.int32) * 1.0"])
def test_rounding_is_no_proof(tmp_path, rounding):
    code, _, result = prove(plan_file(tmp_path, ONE % (rounding, "return build(False)")))
    assert (code, result["verdict"]) == (2, "unknown"), result


@pytest.mark.parametrize("fresh, code", [("torch.empty(2)", 2), ("torch.empty(2).fill_(3.0)", 0), ("torch.empty(2).copy_(torch.tensor([3.0, 3.0]))", 0), ("torch.zeros(2).add_(3)", 0)])
def test_memory_that_nobody_wrote_is_no_number(tmp_path, fresh, code):
    text = ONE.replace("h = ids / 2", "h = ids / 2 + (torch.full((2,), 3.0) if roundly else %s).pow(2)" % fresh)
    found = prove(plan_file(tmp_path, text % ("h", "return build(False)")))
    assert found[0] == code, found


def test_parts_that_are_not_the_whole_are_refuted(tmp_path):
    both = """found = build(True)
    found["state"]["w"] = w = torch.randn(2)
    return dict(found, step=lambda: {"out": found["tokens"]["ids"] / 2, "new:w": w * 2}, place=lambda n, full: full[:2])"""
    code, _, result = prove(plan_file(tmp_path, ONE % ("h", both)))
    assert (code, result["verdict"]) == (1, "refuted"), result
    assert result["why"] == "no rank has element 2 of the model's new:w"


def test_the_meanings_are_torchs():
    ran = subprocess.run([OPGUARD, "prove", "--rules", "--python", sys.executable], capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "WRONG" not in ran.stdout and " as torch computes them" in ran.stdout


def test_plans_with_known_answers():
    cases = ROOT.parent / "shared" / "cases" / "prove" / "exam.json"
    if not cases.is_file():
        pytest.skip(f"no {cases}")
    ran = subprocess.run([sys.executable, ROOT / "bench" / "prove_exam.py", "--opguard", OPGUARD, "--python", sys.executable, "--only", "tpsp,fsdp2,m12_mask_not_shifted,m18_deadlock,e01_max_by_sum"], capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0 and "5 of 5 verdicts as expected, 0 wrongly proved" in ran.stdout, ran.stdout + ran.stderr
