"""`opguard prove --replay`: what is refuted runs, and torch's numbers are those that were predicted."""

import json
import re
import shlex
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT, binary, clean_environment
from test_prove_report import BROKEN, MLP, STUCK, UNKNOWN

pytest.importorskip("torch")
CASES = ROOT.parent / "shared" / "cases" / "prove"
NUMBERS = re.compile(r"the (model|plan) +predicted (\S+), replayed (\S+)")


@pytest.fixture
def written(opguard, tmp_path):
    """written(text or path) -> the folder of its replay, moved away from the plan."""

    def write(plan, code=1):
        folder = tmp_path / "plans"
        if isinstance(plan, str):
            folder.mkdir()
            (folder / "plan.py").write_text(plan)
            plan = folder / "plan.py"
        done = opguard("prove", plan, "--python", "python", "--replay", tmp_path / "made", "--json", tmp_path / "out.json")
        assert done.returncode == code, done.stdout + done.stderr
        shutil.rmtree(folder, ignore_errors=True)
        return (tmp_path / "made").rename(tmp_path / "sent on")

    return write


def replay(folder, *options):
    """(exit code, what it prints)"""
    done = subprocess.run([sys.executable, folder / "replay.py", *options], env=clean_environment(), capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout + done.stderr


def assert_as_predicted(folder, told):
    case = json.loads((folder / "case.json").read_text())
    found = {side: (float(predicted), float(replayed)) for side, predicted, replayed in NUMBERS.findall(told)}
    assert found["model"][0] == pytest.approx(case["difference"]["logical"], rel=1e-8) and found["plan"][0] == pytest.approx(case["difference"]["plan"], rel=1e-8)
    for predicted, replayed in found.values():
        assert replayed == pytest.approx(predicted, rel=1e-6)


def judged(folder):
    """The command that README.md gives for `opguard diff`, run there as it stands."""
    [command] = [line.strip() for line in (folder / "README.md").read_text().splitlines() if "opguard diff" in line and line.startswith("    ")]
    words = [str(binary("opguard")), *shlex.split(command)[1:], "-q", "--json", "diff.json"]
    done = subprocess.run(words, cwd=folder, env=clean_environment(), capture_output=True, text=True, timeout=600)
    return done, json.loads((folder / "diff.json").read_text())


def test_a_missing_collective_runs_and_is_confirmed(written):
    folder = written(BROKEN)
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "case.json", "lib", "plan", "replay.py"]
    code, told = replay(folder)
    assert code == 0 and "grad:x at [0, 0] of rank 0, in float64" in told and told.endswith("confirmed: the two sides part as predicted\n"), told
    assert_as_predicted(folder, told)
    done, found = judged(folder)
    assert (done.returncode, found["verdict"], found["pivot"]["kind"]) == (1, "diverged", "missing_reduce"), done.stdout + done.stderr
    made = json.loads((folder.parent / "out.json").read_text())["difference"]["made"]
    assert (found["pivot"]["b"]["file"], found["pivot"]["b"]["line"]) == ("plan.py", made["line"])


def test_other_numbers_than_predicted_are_not_confirmed(written):
    folder = written(BROKEN)
    case = json.loads((folder / "case.json").read_text())
    case["difference"]["plan"] *= 1.01
    (folder / "case.json").write_text(json.dumps(case))
    code, told = replay(folder)
    assert code == 1 and "not confirmed: other numbers than predicted" in told, told


def test_a_plan_that_is_right_is_not_confirmed_as_wrong(written):
    folder = written(BROKEN)
    (folder / "plan" / "plan.py").write_text(MLP)
    code, told = replay(folder)
    assert code == 1 and "not confirmed" in told, told
    done, found = judged(folder)
    assert (done.returncode, found["verdict"]) == (0, "equivalent"), done.stdout + done.stderr


def test_one_side_alone(written):
    folder = written(BROKEN)
    difference = json.loads((folder / "case.json").read_text())["difference"]
    for side, who, what in (("logical", "the model", "logical"), ("plan", "rank 0", "plan")):
        code, told = replay(folder, "--side", side, "--dtype", "float64")
        number = re.search(who + r": grad:x is (\S+)", told)
        assert code == 0 and float(number[1]) == pytest.approx(difference[what], rel=1e-8), told
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", folder / "replay.py", "--side", "plan", "--dtype", "float64"]
    done = subprocess.run(torchrun, env=clean_environment(), capture_output=True, text=True, timeout=300)
    number = re.search(r"rank 0: grad:x is (\S+)", done.stdout)
    assert done.returncode == 0 and float(number[1]) == pytest.approx(difference["plan"], rel=1e-8), done.stdout + done.stderr


@pytest.mark.parametrize("name, kind", [("m05_dp_world_scaling", "scale"), ("m12_mask_not_shifted", None)])
def test_plans_of_the_exam(written, name, kind):
    plan = CASES / f"{name}.py"
    if not plan.is_file():
        pytest.skip(f"no {plan}")
    folder = written(plan)
    assert (folder / "plan" / "llama.py").is_file(), "a module that the plan takes from its folder"
    code, told = replay(folder)
    assert code == 0, told
    assert_as_predicted(folder, told)
    if kind is not None:
        done, found = judged(folder)
        assert (done.returncode, found["verdict"]) == (1, "diverged"), done.stdout + done.stderr
        made = json.loads((folder.parent / "out.json").read_text())["difference"]["made"]
        assert (found["pivot"]["kind"], found["pivot"]["b"]["line"]) == (kind, made["line"])


def test_ranks_that_wait_are_shown_where_they_wait(written):
    folder = written(STUCK)
    code, told = replay(folder, "--timeout", "5")
    line = next(n for n, text in enumerate(STUCK.splitlines(), 1) if "both wait" in text)
    where = "waits at plan/plan.py:%d: dist.recv(other, 1 - rank)" % line
    assert code == 0 and f"rank 0 {where}" in told and f"rank 1 {where}" in told and "confirmed: the plan does not come to its end" in told, told
    (folder / "plan" / "plan.py").write_text(STUCK.replace("dist.recv(other, 1 - rank)", "pass").replace("dist.send(y, 1 - rank)", "pass"))
    code, told = replay(folder, "--timeout", "5")
    assert code == 1 and "not confirmed: every rank ended its step" in told, told


FLOAT32 = """import torch, torch.distributed as dist
DIMS, WORLD = dict(rows=4), 2
def build(d, parts):
    from helper import table  # as late as this
    x = torch.randn(2, d["rows"] // parts, dtype=torch.float32)
    def step():
        y = (table(d["rows"] // parts) @ x.t()).sum()
        y = y / x.square().sum().sqrt()
        return {"out": y}
    return dict(state={"x": x}, tokens={}, step=step)
def logical(d): return build(d, 1)
def plan(rank, d): return dict(build(d, WORLD), place=lambda name, full: full.chunk(WORLD, 1)[rank])
"""


def test_a_plan_that_is_in_float32_only_and_has_a_helper(opguard, tmp_path):
    (tmp_path / "plan.py").write_text(FLOAT32)
    (tmp_path / "helper.py").write_text("import torch\ndef table(n): return torch.ones(n)\n")
    done = opguard("prove", tmp_path / "plan.py", "--python", "python", "--replay", tmp_path / "made")
    assert done.returncode == 1 and (tmp_path / "made" / "plan" / "helper.py").is_file(), done.stdout + done.stderr
    code, told = replay(tmp_path / "made")
    assert code == 0 and "in float32" in told, told


ROOTS = """import torch, torch.distributed as dist
DIMS, WORLD = dict(rows=4, width=6), 2
def build(d, parts):
    v, x = torch.ones(d["width"]), torch.randn(d["rows"] // parts)
    def step():
        g = x.square().sum()
        if parts > 1:
            dist.all_reduce(g, op=dist.ReduceOp.AVG)
        return {"out": g / (v.sqrt().sum() + v.log().sum())}
    return dict(state={"v": v, "x": x}, tokens={}, step=step)
def logical(d): return build(d, 1)
def plan(rank, d): return dict(build(d, WORLD), place=lambda name, full: full.chunk(WORLD)[rank] if name == "x" else full)
"""


def test_the_input_lies_where_torch_has_numbers(written):
    folder = written(ROOTS)
    assert min(json.loads((folder / "case.json").read_text())["values"]["v"]) > 0
    code, told = replay(folder)
    assert code == 0, told
    assert_as_predicted(folder, told)


@pytest.mark.parametrize("text, code, why", [(MLP, 0, "the plan is proved"), (UNKNOWN, 2, "the plan is not refuted")])
def test_there_is_nothing_to_replay(opguard, tmp_path, text, code, why):
    (tmp_path / "plan.py").write_text(text)
    done = opguard("prove", tmp_path / "plan.py", "--python", "python", "--replay", tmp_path / "made")
    assert done.returncode == code and f"nothing to replay: {why}" in done.stderr and not (tmp_path / "made").exists(), done.stderr


def test_a_folder_that_is_not_empty_is_refused_before_anything_runs(opguard, tmp_path):
    (tmp_path / "plan.py").write_text("raise SystemExit('it ran')\n")
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "mine.txt").write_text("")
    done = opguard("prove", tmp_path / "plan.py", "--python", "python", "--replay", tmp_path / "made")
    assert done.returncode == 3 and "is not empty; give --replay a new folder" in done.stderr and "capturing" not in done.stderr
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["mine.txt"]
