"""`record`, `against`, `store`: a run kept once shows what ran, after its tree was edited, moved or removed."""
import json
import shutil

import pytest

pytest.importorskip("torch")

TRAIN = """
import sys
import torch
from model import loss_of

torch.manual_seed(0)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for step in range(2):
    optimizer.zero_grad()
    loss = loss_of(model, torch.randn(4, 8))
    loss.backward()
    optimizer.step()
"""
MODEL = """
def loss_of(model, x):
    y = model(x)
    return y.square().mean() * 2.0
"""
COMMAND = ["--", "python", "train.py"]


@pytest.fixture
def tree(tmp_path):
    made = tmp_path / "tree"
    made.mkdir()
    (made / "train.py").write_text(TRAIN)
    (made / "model.py").write_text(MODEL)
    return made


def test_an_edit_is_named_with_the_text_that_was_kept(opguard, tree, tmp_path):
    kept = opguard("record", "good", *COMMAND, cwd=tree)
    assert kept.returncode == 0, kept.stderr
    assert (tree / ".opguard" / ".gitignore").read_text().endswith("*\n")
    # A refactoring is no difference; the command is the kept one.
    (tree / "model.py").write_text(MODEL.replace("y = ", "result = ").replace("y.square", "result.square"))
    same = opguard("against", "good", cwd=tree)
    assert same.returncode == 0 and same.stdout.startswith("identical"), same.stdout + same.stderr
    assert ".opguard" not in same.stderr  # its copies are no sources

    (tree / "model.py").write_text("# moved down\n" + MODEL.replace("2.0", "2.5"))
    moved = tmp_path / "elsewhere"
    shutil.move(tree, moved)
    verdict = tmp_path / "verdict.json"
    other = opguard("against", "good", "--json", verdict, *COMMAND, cwd=moved)
    assert other.returncode == 1, other.stdout + other.stderr
    assert "diverged, proven" in other.stdout
    assert "model.py:4:12 (good)" in other.stdout and "return y.square().mean() * 2.0" in other.stdout
    assert "return y.square().mean() * 2.5" in other.stdout
    assert json.loads(verdict.read_text())["verdict"] == "diverged"


def test_control_of_the_kept_run_is_taken(opguard, tree):
    (tree / "train.py").write_text(TRAIN.replace("torch.manual_seed(0)\n", ""))
    assert opguard("record", "good", "--deterministic", "--seed", 5, *COMMAND, cwd=tree).returncode == 0
    same = opguard("against", "good", cwd=tree)
    assert same.returncode == 0, same.stdout
    assert "seed 5" in same.stderr


def test_the_store_is_listed_and_freed(opguard, tree, tmp_path):
    store = tmp_path / "kept here"
    table = tmp_path / "runs.json"
    for command in (["record", "good", "--store", store, *COMMAND], ["store", "ls", "--store", store, "--json", table]):
        done = opguard(*command, cwd=tree)
        assert done.returncode == 0, done.stderr
    assert not (tree / ".opguard").exists()
    run, = json.loads(table.read_text())["runs"]
    assert run["names"] == ["good"] and run["program"] == "python train.py" and run["bytes"] > 1000
    logs = opguard("store", "path", "good", "--store", store).stdout.strip()
    assert opguard("align", logs, logs).returncode == 0

    (store / "runs" / run["id"] / "plan.json").write_text("{}")
    damaged = opguard("against", "good", "--store", store, *COMMAND, cwd=tree)
    assert damaged.returncode == 2 and "plan.json is damaged" in damaged.stderr


@pytest.mark.parametrize("words, said", [
    (["record", "../x", *COMMAND], "'../x' is no name for a run"),
    (["record", "x", "--", "python", "none.py"], "none.py"),
    (["against", "good"], "no run is kept here"),
    (["store", "ls"], "no run is kept here"),
    (["store", "rm"], "rm needs the name of a run"),
    (["store", "ls", "good"], "ls takes no name"),
    (["store", "burn"], "burn"),
    (["store", "gc", "--keep-size", "lots"], "lots"),
])
def test_bad_input_is_one_error(opguard, tree, words, said):
    done = opguard(*words, cwd=tree)
    assert done.returncode == 2 and said in done.stderr, done.stderr
    assert done.stderr.count("error:") == 1
