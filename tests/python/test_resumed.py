"""A run that goes on from a checkpoint against the run that never stopped: tests/fixtures/resumed/train.py, and faults in how it resumes.

Steps are paired by state, so that a right resume is `identical` and a wrong one is named where it is wrong. b is the same program with one edit."""

import json
import subprocess
import sys

import pytest

from conftest import ROOT, clean_environment

pytest.importorskip("torch")
SOURCE = ROOT / "tests" / "fixtures" / "resumed" / "train.py"

# name: (what b's text has instead, what of these lines of b is named, kinds it may be).
FAULTS = {
    "optimizer_forgotten": ('    opt.load_state_dict(state["opt"])\n', "", ["    opt.step()"], {"structure", "input", "scalar"}),
    "random_state_forgotten": ('    torch.set_rng_state(state["random"])\n', "", ["F.dropout(F.gelu(h), 0.2)"], {"value"}),
    "data_from_the_start": ("enumerate(batches(begin), begin)", "enumerate(batches(0), begin)", ["picked = order[", "yield data[picked]", "in enumerate(batches(0)"], {"scalar", "input"}),
    "scheduler_forgotten": ('    rate.load_state_dict(state["rate"])\n', '    opt.param_groups[0]["lr"] = 0.01\n', ["    opt.step()"], {"scalar"}),
    "average_forgotten": ('    average.kept = state["average"]\n', "", ["mine.lerp_(", "average.update(net)"], {"input"}),
    "buffers_forgotten": ('net.load_state_dict(state["net"])', 'net.load_state_dict({k: v for k, v in state["net"].items() if "running" not in k}, strict=False)', ["h = self.norm(self.first(x))"], {"input"}),
    "scale_reset": ('scale.value, scale.good = state["scale"], state["good"]', "scale.good = state[\"good\"]", ["(loss * scale.value)"], {"input", "value"}),
    "count_reset": ('scale.value, scale.good = state["scale"], state["good"]', 'scale.value = state["scale"]', ["self.value = self.value * 2", "(loss * scale.value)", "scale.update()"], {"structure", "input"}),
    "weights_through_bfloat16": ('net.load_state_dict(state["net"])', 'net.load_state_dict({k: v.bfloat16() for k, v in state["net"].items()})', [".bfloat16()"], {"structure"}),
    "weights_forgotten": ('    net.load_state_dict(state["net"])\n', "", ["self.norm(self.first(x))", "nn.Linear(8, 16)", "    opt.step()"], {"input", "value", "structure"}),
}
# Names the tool has given instead.
WRONG_TODAY = {}


def edited(name):
    text = SOURCE.read_text()
    old, new, _, _ = FAULTS[name]
    assert text.count(old) == 1, name
    return text.replace(old, new)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """What the program saves before its step 3."""
    path = tmp_path_factory.mktemp("checkpoint") / "three.pt"
    command = [sys.executable, SOURCE, "--steps", "3", "--save-at", "3", "--save", path]
    subprocess.run([*map(str, command)], env=clean_environment(), check=True, capture_output=True)
    sgd = path.with_name("sgd.pt")
    subprocess.run([*map(str, command[:-1]), str(sgd), "--optimizer", "sgd"], env=clean_environment(), check=True, capture_output=True)
    return path


def compare(opguard, tmp_path, run_a, run_b, b_text=None, prove=()):
    a, b = tmp_path / "a", tmp_path / "b"
    for folder, text in ((a, SOURCE.read_text()), (b, b_text or SOURCE.read_text())):
        folder.mkdir()
        (folder / "train.py").write_text(text)
    out = tmp_path / "answer.json"
    prove = prove or ["--no-prove"]
    ran = opguard("diff", a, b, *prove, "--json", out, "--color", "never", "--run-a", "python {tree}/train.py " + run_a,
                  "--run-b", "python {tree}/train.py " + run_b, timeout=900)
    return ran, json.loads(out.read_text())


def same(answer):
    assert len(answer["steps"]["pairs"]) == 1, answer["steps"]
    return [(s["a"], s["b"], s["count"]) for s in answer["steps"]["pairs"][0]["same"]]


def test_a_right_resume_is_identical(opguard, tmp_path, checkpoint):
    ran, answer = compare(opguard, tmp_path, "--steps 6", f"--steps 6 --resume {checkpoint}")
    assert (ran.returncode, answer["verdict"]) == (0, "identical"), ran.stdout
    assert same(answer) == [(3, 0, None)]
    assert "steps: step 0 of run b is step 3 of run a and so on; run a makes 3 steps besides (0 to 2)" in ran.stdout
    assert answer["unreached_pairs"] == 0, ran.stdout


def test_either_side_may_be_the_resumed_one(opguard, tmp_path, checkpoint):
    ran, answer = compare(opguard, tmp_path, f"--steps 6 --resume {checkpoint}", "--steps 6")
    assert (ran.returncode, answer["verdict"]) == (0, "identical"), ran.stdout
    assert same(answer) == [(0, 3, None)]


def test_parameters_tell_where_an_optimizer_has_no_count(opguard, tmp_path, checkpoint):
    resumed = checkpoint.with_name("sgd.pt")
    ran, answer = compare(opguard, tmp_path, "--steps 6 --optimizer sgd", f"--steps 6 --optimizer sgd --resume {resumed}")
    assert (ran.returncode, answer["verdict"]) == (0, "identical"), ran.stdout
    assert same(answer) == [(3, 0, None)]


def test_a_run_that_ends_earlier_is_not_identical(opguard, tmp_path, checkpoint):
    ran, answer = compare(opguard, tmp_path, "--steps 6", f"--steps 5 --resume {checkpoint}")
    assert (ran.returncode, answer["why"]) == (1, "one run computes more model values"), ran.stdout
    assert same(answer) == [(3, 0, None)]


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.xfail(reason=WRONG_TODAY[n], strict=True)) if n in WRONG_TODAY else n for n in FAULTS])
def test_a_wrong_resume_is_named(opguard, tmp_path, checkpoint, name):
    _, _, named, kinds = FAULTS[name]
    text = edited(name)
    ran, answer = compare(opguard, tmp_path, "--steps 6", f"--steps 6 --resume {checkpoint}", text)
    assert (ran.returncode, answer["verdict"]) == (1, "diverged"), ran.stdout
    assert same(answer) == [(3, 0, None)], ran.stdout
    pivot = answer["pivot"]
    assert pivot["kind"] in kinds, ran.stdout
    found = set()
    for side, source in (("a", SOURCE.read_text()), ("b", text)):
        if pivot[side]:
            line = source.splitlines()[pivot[side]["line"] - 1]
            found |= {part for part in named if part in line}
    assert found, ran.stdout
