"""Several of us at once in one tree, and a tree that holds another repository."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import clean_environment, tree_digest

pytest.importorskip("torch")

TRAINS = """
import torch
from sub.model import forward
torch.manual_seed(0)
w = torch.nn.Parameter(torch.randn(3, 3))
opt = torch.optim.SGD([w], lr=.1)
for _ in range(2):
    loss = forward(w, torch.ones(3)).sum()
    print("loss", loss.item())
    loss.backward()
    opt.step()
    opt.zero_grad()
"""
MODEL = "import torch\n\n\ndef forward(w, x):\n    h = w @ x\n    return torch.tanh(h * %s)\n"


def git(folder, *arguments):
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always", *map(str, arguments)], cwd=folder, check=True,
                   capture_output=True, env=clean_environment())  # fmt: skip


@pytest.fixture
def trees(tmp_path):
    """A work tree whose model is a submodule, and a copy of it with another number there."""
    library = tmp_path / "library"
    library.mkdir()
    (library / "model.py").write_text(MODEL % "2.0")
    git(library, "init", "-q")
    git(library, "add", ".")
    git(library, "commit", "-qm", "model")
    found = []
    for name, factor in (("a", "2.0"), ("b", "2.5")):
        tree = tmp_path / name
        tree.mkdir()
        git(tree, "init", "-q")
        git(tree, "submodule", "add", "-q", library, "sub")
        (tree / "train.py").write_text(TRAINS)
        (tree / "sub" / "model.py").write_text(MODEL % factor)
        git(tree, "add", ".")
        git(tree, "commit", "-qm", "program")
        found.append(tree)
    return found


def test_three_diffs_at_once_of_trees_with_a_submodule(opguard, tmp_path, trees):
    a, b = trees
    before = tree_digest(a), tree_digest(b)

    def one(i):
        out = tmp_path / f"answer{i}.json"
        done = opguard("diff", a, b, "--no-prove", "--json", out, "--", sys.executable, "train.py")
        return done.returncode, json.loads(out.read_text())["pivot"]["a"], done.stderr

    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(one, range(3)))
    for code, pivot, said in answers:
        assert code == 1, said
        assert (pivot["file"], pivot["line"]) == ("sub/model.py", 6), pivot
    assert (tree_digest(a), tree_digest(b)) == before
