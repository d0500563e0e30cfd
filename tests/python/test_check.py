"""`opguard check`, `infer` and `run --check`: one run without another, with real torch."""
import json

import pytest

pytest.importorskip("torch")

# FAULT says what goes wrong: nothing, "zero" (gradients are never cleared), "cut" (a layer is detached).
TRAIN = """
import os
import torch
import torch.nn as nn
import torch.nn.functional as F

FAULT = os.environ.get("FAULT", "")
torch.manual_seed(int(os.environ.get("SEED", "0")))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(8, 16)
        self.fc2 = nn.Linear(16, 4)

    def forward(self, x):
        h = F.relu(self.fc1(x))
        if FAULT == "cut":
            h = h.detach()
        return self.fc2(h)


model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(4):
    x = torch.randn(8, 8)
    if FAULT != "zero":
        optimizer.zero_grad()
    loss = F.cross_entropy(model(x), x[:, :4].argmax(1))
    loss.backward()
    optimizer.step()
    print("step", step, flush=True)
"""
LINES = TRAIN.splitlines()


def line_of(text):
    return next(i for i, line in enumerate(LINES, 1) if text in line)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("check")
    (made / "train.py").write_text(TRAIN)
    return made


@pytest.fixture(scope="module")
def good_log(opguard, folder):
    done = opguard("run", "--observe", "--log", "good", "--", "python", "train.py", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "good"


def test_a_good_run_is_kept(opguard, folder, good_log):
    done = opguard("check", good_log, "--json", "good.json", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("kept: ")
    found = json.loads((folder / "good.json").read_text())
    assert found["verdict"] == "kept" and not found["findings"] and found["rules"]["applied"] > 10


def test_a_violation_is_printed_while_the_program_runs(opguard, folder):
    done = opguard("run", "--log", "online", "--check", "builtin", "--json", "online.json", "--", "python", "train.py", cwd=folder,
                   env={"FAULT": "zero"})
    assert done.returncode == 1, done.stderr
    assert "step 1, rank 0: backward: gradients of the last step are still there" in done.stderr
    assert f"train.py:{line_of('loss.backward()')}" in done.stderr
    found = json.loads((folder / "online.json").read_text())
    first = found["findings"][0]
    assert (first["step"], first["relation"], first["place"]["line"]) == (1, "sequence", line_of("loss.backward()"))
    assert first["invariant"]["severity"] == "error"


@pytest.mark.parametrize("what, status, steps", [("warn", 0, 4), ("stop", 1, 1)])
def test_what_a_violation_does(opguard, folder, what, status, steps):
    done = opguard("run", "--log", what, "--check", "builtin", "--on-violation", what, "--", "python", "train.py", cwd=folder,
                   env={"FAULT": "zero"})
    assert done.returncode == status, done.stderr
    assert done.stdout.count("step") == steps
    assert ("InvariantViolation: " in done.stderr) == (what == "stop")
    assert not list((folder / what).glob("stop*"))


def test_a_command_gets_each_finding(opguard, folder):
    command = 'cat > found.json; echo "$OPGUARD_VIOLATION_STEP $OPGUARD_VIOLATION_RANK" > where; kill -0 $OPGUARD_VIOLATION_PID && touch lives'
    done = opguard("run", "--log", "hooked", "--check", "builtin", "--violation-command", command, "--on-violation", "stop", "--",
                   "python", "train.py", cwd=folder, env={"FAULT": "zero"})
    assert done.returncode == 1, done.stderr
    found = json.loads((folder / "found.json").read_text())
    assert (found["step"], found["place"]["line"]) == (1, line_of("loss.backward()"))
    assert (folder / "where").read_text() == "1 0\n" and (folder / "lives").exists()


def test_with_probes_the_statement_is_named(opguard, folder):
    done = opguard("check", "--json", "cut.json", "--html", "cut.html", "--sarif", "cut.sarif", "--", "python", "train.py", cwd=folder,
                   env={"FAULT": "cut"})
    assert done.returncode == 1, done.stdout + done.stderr
    first = json.loads((folder / "cut.json").read_text())["findings"][0]
    assert first["relation"] == "coverage" and first["name"].startswith("fc1.")
    assert first["place"]["line"] == line_of("h = h.detach()"), done.stdout
    assert first["seen_at"]["line"] == line_of("self.fc1(x)")
    page = (folder / "cut.html").read_text()
    assert "h = h.detach()" in page and "<script" not in page
    result = json.loads((folder / "cut.sarif").read_text())["runs"][0]["results"][0]
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == line_of("h = h.detach()")


def test_rules_of_one_program(opguard, folder, good_log):
    opguard("run", "--observe", "--log", "other", "--", "python", "train.py", cwd=folder, env={"SEED": "1"})
    done = opguard("infer", "--program", f"net={good_log}", "--program", "net=other", "-o", "net.json", cwd=folder)
    assert done.returncode == 0, done.stderr
    again = opguard("infer", "--program", "net=other", "--program", f"net={good_log}", "-o", "again.json", cwd=folder)
    # Given by itself as well, a log is still one.
    twice = opguard("infer", "other", good_log, "--program", "net=other", "--program", f"net={good_log}", "-o", "twice.json", cwd=folder)
    assert twice.returncode == 0 and (folder / "net.json").read_text() == (folder / "twice.json").read_text()
    assert again.returncode == 0 and (folder / "net.json").read_text() == (folder / "again.json").read_text()
    assert opguard("check", good_log, "--invariants", "net.json", cwd=folder).returncode == 0
    opguard("run", "--observe", "--log", "bad", "--", "python", "train.py", cwd=folder, env={"FAULT": "zero"})
    bad = opguard("check", "bad", "--invariants", "net.json", "--json", "bad.json", cwd=folder)
    assert bad.returncode == 1
    first = json.loads((folder / "bad.json").read_text())["findings"][0]
    assert first["step"] <= 1 and first["invariant"]["tier"] == "program"


def test_a_program_says_what_must_hold(opguard, tmp_path):
    (tmp_path / "train.py").write_text(TRAIN + "import opguard\nopguard.invariant('four steps', step == 4, step=step)\n")
    done = opguard("run", "--log", "log", "--check", "builtin", "--", "python", "train.py", cwd=tmp_path)
    assert done.returncode == 1 and "four steps: step 3" in done.stderr.replace("\n", " "), done.stderr


def test_rules_are_listed_shown_muted_and_merged(opguard, tmp_path):
    text = opguard("invariants", "builtin", "list").stdout
    rule = next(line for line in text.splitlines() if "cleared before the next backward pass" in line)
    name = rule.split("]")[0].strip("[")
    shown = opguard("invariants", "builtin", "show", name).stdout
    assert "every backward pass" in shown and "not stale" in shown
    (tmp_path / "own.json").write_text(json.dumps({"opguard_invariants": 1, "invariants": [
        {"view": "backward", "when": [{"column": "several", "is": "no"}, {"column": "masters", "is": "no"}],
         "then": {"column": "stale", "is": "no"}, "severity": "note"}]}))
    assert opguard("invariants", "own.json", "mute", name, "--because", "on purpose", cwd=tmp_path).returncode == 0
    assert "muted: on purpose" in opguard("invariants", "own.json", "list", cwd=tmp_path).stdout
    assert opguard("invariants", "own.json", "merge", "builtin", "-o", "both.json", cwd=tmp_path).returncode == 0
    assert len(opguard("invariants", "both.json", "list", cwd=tmp_path).stdout.splitlines()) == len(text.splitlines())
    refused = opguard("invariants", "builtin", "mute", name, "--because", "x")
    assert refused.returncode == 2 and "--ignore" in refused.stderr


@pytest.mark.parametrize("text, said", [
    ("{", "own.json:1:"),
    ('{"opguard_invariants": 7, "invariants": []}', "own.json:1:"),
    ('{"opguard_invariants": 1, "invariants": []}', "no rule is left"),
    ('{"opguard_invariants": 1, "invariants": [{"view": "nothing", "then": {"column": "a", "is": "b"}}]}', "no rule is left"),
    ('{"opguard_invariants": 1, "invariants": [{"view": "told", "then": {"column": "holds", "is": 1}}]}', "own.json:1:"),
])
def test_files_that_are_none(opguard, folder, good_log, tmp_path, text, said):
    (tmp_path / "own.json").write_text(text)
    done = opguard("check", good_log, "--invariants", "own.json", cwd=tmp_path)
    assert done.returncode == 2 and said in done.stderr, done.stderr


def test_a_log_without_observations(opguard, folder):
    opguard("run", "--log", "plain", "--", "python", "train.py", cwd=folder)
    for words in (["check", "plain"], ["infer", "plain", "-o", "x.json"]):
        done = opguard(*words, cwd=folder)
        assert done.returncode == 2 and "holds no observations: record it with opguard run --observe" in done.stderr
    assert not (folder / "x.json").exists()
