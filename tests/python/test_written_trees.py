"""Programs that write into their own tree: said; with --copy-trees every run has a tree of its own."""
import json
import subprocess

import pytest

from conftest import tree_digest

pytest.importorskip("torch")

# Goes on from what an earlier run left, as training scripts do.
TRAIN = """
import os
import torch

torch.manual_seed(0)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
start = int(open("out/last.txt").read()) if os.path.exists("out/last.txt") else 0
print("starts at", start)
for step in range(start, start + 2):
    optimizer.zero_grad()
    loss = model(torch.randn(4, 8)).square().mean() * 2.0
    loss.backward()
    optimizer.step()
os.makedirs("out", exist_ok=True)
open("out/last.txt", "w").write(str(start + 2))
open("out/other.txt", "w").write("x")
"""
COMMAND = ["--", "python", "train.py"]


@pytest.fixture
def trees(tmp_path):
    for name, factor in (("a", "2.0"), ("b", "2.5")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_text(TRAIN.replace("2.0", factor))
    return tmp_path / "a", tmp_path / "b"


def notes(done):
    return [line for line in done.stderr.splitlines() if "wrote into its own tree" in line]


def test_what_a_program_wrote_is_said(opguard, trees):
    done = opguard("diff", *trees, "--no-prove", *COMMAND)
    assert notes(done) == ["opguard: note: the program wrote into its own tree: 2 files in a (out/last.txt, ...), 2 files in b (out/last.txt, ...); "
                           "--copy-trees gives every run a tree of its own"]
    assert (trees[0] / "out" / "last.txt").read_text() == "4"


def test_every_run_has_a_copy(opguard, trees, tmp_path):
    (trees[0] / "link").symlink_to("train.py")
    (trees[0] / "venv").mkdir()
    (trees[0] / "venv" / "pyvenv.cfg").write_text("")
    before = [tree_digest(tree) for tree in trees]
    work = tmp_path / "work"
    done = opguard("diff", *trees, "--copy-trees", "--work", work, "--json", tmp_path / "o.json", *COMMAND)
    assert done.returncode == 1 and notes(done) == [], done.stderr
    assert [tree_digest(tree) for tree in trees] == before
    # Preflights, guarded runs and the proof's.
    outputs = [path.read_text() for path in work.rglob("output.txt")]
    assert len(outputs) > 4 and all("starts at 0" in text for text in outputs)
    answer = json.loads((tmp_path / "o.json").read_text())
    assert answer["proof"]["state"] == "proven" and answer["pivot"]["b"]["path"] == str(trees[1] / "train.py")
    assert f"  b {trees[1]}/train.py:12:12" in done.stdout and str(work) not in done.stdout
    copy = work / "run_a" / "tree"
    assert (copy / "link").is_symlink() and (copy / "venv").resolve() == trees[0] / "venv"


def test_a_repository_costs_its_files_and_not_its_bytes(opguard, trees, tmp_path):
    """Objects are linked; what git writes again (HEAD, the index) is each run's own."""
    def git(*words):
        return subprocess.run(["git", "-C", trees[0], "-c", "user.name=n", "-c", "user.email=e", *words], check=True, capture_output=True, text=True).stdout

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "one")
    work = tmp_path / "work"
    assert opguard("diff", *trees, "--copy-trees", "--no-prove", "--work", work, *COMMAND).returncode == 1
    ours, copied = trees[0] / ".git", work / "run_a" / "tree" / ".git"
    objects = [path.relative_to(ours) for path in (ours / "objects").rglob("*") if path.is_file()]
    assert objects and all((ours / name).stat().st_ino == (copied / name).stat().st_ino for name in objects)
    assert (ours / "HEAD").stat().st_ino != (copied / "HEAD").stat().st_ino
    before = git("rev-parse", "HEAD")
    subprocess.run(["git", "-C", copied.parent, "-c", "user.name=n", "-c", "user.email=e", "commit", "-qam", "two", "--allow-empty"], check=True)
    assert git("rev-parse", "HEAD") == before and git("fsck") == ""


def test_copies_of_revisions_and_of_a_tree_that_holds_the_work(opguard, trees, tmp_path):
    done = opguard("diff", trees[0], trees[1], "--copy-trees", "--no-prove", "--work", trees[0] / "w", *COMMAND)
    assert done.returncode == 1, done.stderr
    assert not (trees[0] / "w" / "run_a" / "tree" / "w").exists() and not (trees[0] / "out").exists()


def test_a_full_work_folder_is_refused(opguard, trees, tmp_path):
    full = tmp_path / "full"
    full.mkdir()
    (full / "mine.txt").write_text("x")
    for command in (["diff", *trees], ["noise", trees[0]]):
        done = opguard(*command, "--work", full, *COMMAND)
        assert (done.returncode, done.stderr) == (2, f"opguard: error: '{full}' is not empty; give --work a new folder\n")
    assert [path.name for path in full.iterdir()] == ["mine.txt"]
    empty = tmp_path / "empty"
    empty.mkdir()
    assert opguard("diff", *trees, "--no-prove", "--work", empty, *COMMAND).returncode == 1
