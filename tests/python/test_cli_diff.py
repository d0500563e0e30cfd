"""`opguard diff` on a whole training program: one textual edit, and the line that must be named.

Each edit is one that a careless commit could make. They are not those of the shared cases: the tool is shown
those by bench/accuracy.py.
"""
import json
import re

import pytest

from conftest import tree_digest

COMMAND = ["python", "train.py", "--steps", "2"]


def line_of(tree, file, text):
    """1-based line of the one line of a file that holds `text`."""
    lines = [i for i, line in enumerate((tree / file).read_text().splitlines(), 1) if text in line]
    assert len(lines) == 1, f"{file}: {text!r} is on {len(lines)} lines"
    return lines[0]


@pytest.fixture
def diff(opguard, tmp_path):
    """diff(a, b, *options, command=) -> (exit code, JSON or None, the finished process); trees stay untouched."""

    def run(a, b, *options, command=COMMAND):
        before = tree_digest(a), tree_digest(b)
        out = tmp_path / "answer.json"
        done = opguard("diff", a, b, "--json", out, "--color", "never", *options, "--", *command)
        assert (tree_digest(a), tree_digest(b)) == before, "diff changed a file of the user's"
        return done.returncode, json.loads(out.read_text()) if out.exists() else None, done

    return run


FAULTS = {
    # The epsilon of a norm: same operators, another number.
    "norm_eps": dict(
        edit=("minigpt/model/norm.py", "eps=1e-6", "eps=1e-5"),
        file="minigpt/model/norm.py", text="rstd = torch.rsqrt(", kinds={"scalar"}),
    # The other GELU: a keyword of one call.
    "gelu_exact": dict(
        edit=("minigpt/model/mlp.py", 'approximate="tanh"', 'approximate="none"'),
        file="minigpt/model/mlp.py", text="F.gelu(", kinds={"scalar"}),
    # After the backward pass: an operator that only the good tree runs.
    "clip_without_epsilon": dict(
        edit=("minigpt/optim/clip.py", "limit / (norm + 1e-6)", "limit / norm"),
        file="minigpt/optim/clip.py", text="scale = torch.clamp(", kinds={"structure", "value"}),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_wrong_line_is_named(name, diff, minitrain, edited):
    fault = FAULTS[name]
    bad = edited(fault["edit"])
    code, answer, done = diff(minitrain, bad, "--no-prove")
    assert code == 1, done.stdout + done.stderr
    assert answer["verdict"] == "diverged"
    pivot = answer["pivot"]
    wanted = fault["file"], line_of(bad, fault["file"], fault["text"])
    places = [(side["file"], side["line"]) for side in (pivot["a"], pivot["b"]) if side]
    assert wanted in places, json.dumps(pivot, indent=1)
    assert pivot["kind"] in fault["kinds"]
    assert answer["lost_records"] == 0
    # What is certified comes before what differs.
    assert 0 < answer["certified_prefix"] <= min(answer["records"].values())
    # The report shows that line of the source, with a caret under it.
    shown = minitrain if pivot["a"] else bad
    source = (shown / fault["file"]).read_text().splitlines()[wanted[1] - 1].strip()
    assert source in done.stdout
    assert re.search(r"^\s*[\d|]*\s*\^~*", done.stdout, re.M), done.stdout
    assert f"{wanted[0]}:{wanted[1]}" in done.stdout


def test_a_refactoring_is_identical(diff, minitrain, edited):
    """A helper extracted, a product split in two, a check that only one side makes, and shifted lines."""
    other = edited(
        ("minigpt/model/norm.py", "        h = h * rstd * self.weight\n",
         "        # The same products, one a line.\n        scaled = h * rstd\n        h = self.apply_weight(scaled)\n"),
        ("minigpt/model/norm.py", "    def forward(self, x):\n",
         "    def apply_weight(self, h):\n        return h * self.weight\n\n    def forward(self, x):\n"),
        ("minigpt/optim/clip.py", "    scale = torch.clamp(",
         "    if not torch.isfinite(norm):\n        print('bad norm')\n    scale = torch.clamp("))
    code, answer, done = diff(minitrain, other)
    assert code == 0, done.stdout + done.stderr
    assert answer["verdict"] == "identical" and answer["pivot"] is None


def test_a_tree_equals_itself(diff, minitrain, tmp_path):
    work = tmp_path / "work"
    code, answer, done = diff(minitrain, minitrain, "--work", work)
    assert code == 0, done.stdout + done.stderr
    assert answer["verdict"] == "identical"
    assert answer["records"]["a"] == answer["records"]["b"] > 1000
    assert answer["coverage"]["activities"] > 0.9
    # The work folder keeps what the instrumented programs printed.
    losses = [re.findall(r"loss \S+", (work / f"run_{s}" / "output.txt").read_text()) for s in "ab"]
    assert losses[0] == losses[1] and len(losses[0]) == 2


def test_two_commands_on_one_tree(opguard, minitrain, tmp_path):
    """--run-a and --run-b: the difference is in the settings, the line is where it first acts."""
    out = tmp_path / "answer.json"
    done = opguard("diff", minitrain, minitrain, "--no-prove", "--json", out,
                   "--run-a", "python {tree}/train.py --steps 1",
                   "--run-b", "python {tree}/train.py --steps 1 --set rope_base=20000.0")
    assert done.returncode == 1, done.stdout + done.stderr
    pivot = json.loads(out.read_text())["pivot"]
    assert pivot["b"]["file"] == "minigpt/model/rope.py"
    assert pivot["b"]["line"] == line_of(minitrain, "minigpt/model/rope.py", "inv_freq = 1.0 / (base **")


CRASH = ("minigpt/engine/trainer.py", "        loss.backward()\n", "        loss.backward()\n        if self.step == 1: raise RuntimeError('no more')\n")


def test_a_run_that_fails_is_compared_as_far_as_it_went(diff, minitrain, edited):
    fault = FAULTS["norm_eps"]
    bad = edited(fault["edit"], CRASH)
    code, answer, done = diff(minitrain, bad, "--no-prove")
    assert code == 1, done.stdout + done.stderr
    assert answer["verdict"] == "diverged" and answer["pivot"]["kind"] == "scalar"
    assert answer["pivot"]["b"]["line"] == line_of(bad, fault["file"], fault["text"])
    assert "run b ended with exit code 1" in done.stdout and "RuntimeError: no more" in done.stderr
    assert any("ended with exit code 1" in note for note in answer["notes"])


def test_a_run_that_fails_is_never_called_identical(diff, minitrain, edited):
    code, answer, done = diff(edited(CRASH, name="one"), edited(CRASH, name="other"))
    assert code == 2, done.stdout + done.stderr
    assert answer["verdict"] == "inconclusive" and "run a ended with exit code 1" in answer["why"]
    code, answer, done = diff(minitrain, edited(CRASH, name="b"))
    print(done.stdout)
    assert code != 0 and "run b ended with exit code 1" in done.stdout
