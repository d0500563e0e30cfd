"""Ids of a large corpus, all of torch's own files: unique, short, the same again, and no other for what is added elsewhere."""
import json
import shutil

import pytest

torch = pytest.importorskip("torch")
PARTS = ["nn", "optim", "distributed", "_inductor", "fx", "autograd"]


def ids(opguard, tree, plan):
    done = opguard("plan", "--static", tree, "-o", plan)
    assert done.returncode == 0, done.stderr
    return [(b["file"], b["scope"], b["text"], b["id"]) for b in json.loads(plan.read_text())["boundaries"]]


@pytest.fixture(scope="module")
def corpus(opguard, tmp_path_factory):
    """(the tree, its ids)"""
    folder = tmp_path_factory.mktemp("corpus")
    tree = folder / "tree"
    for part in PARTS:
        shutil.copytree(f"{torch.__path__[0]}/{part}", tree / part, ignore=lambda _, names: {n for n in names if "." in n and not n.endswith(".py")})
    return tree, ids(opguard, tree, folder / "plan.json")


def test_no_two_operators_share_an_id_and_ids_are_short(corpus):
    names = [name for *_, name in corpus[1]]
    assert len(names) > 10_000 and len(set(names)) == len(names)
    lengths = sorted(len(name.rpartition(":")[0]) for name in names)
    assert lengths[-1] <= 49 and lengths[len(lengths) // 2] <= 24
    letters = [len(name.rpartition(":")[2]) for name in names]
    assert min(letters) == 4 and sum(n > 4 for n in letters) < len(letters) / 1000


def test_what_is_added_elsewhere_changes_no_id(opguard, corpus, tmp_path):
    tree, before = corpus
    for path in tree.rglob("*.py"):
        added = "\n\ndef added_by_somebody(x, y):\n    z = x + y\n    return z.softmax(dim=-1) @ y[0]\n"
        path.write_bytes(b"# a line\n" + path.read_bytes() + added.encode())
    after = [b for b in ids(opguard, tree, tmp_path / "after.json") if b[1] != "added_by_somebody"]
    # A new id like an old one makes both longer: once in 100,000.
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert len(changed) <= len(before) / 10_000
    assert all(new[3].startswith(old[3]) for old, new in changed)


def test_a_plan_keeps_the_ids_of_the_version_that_made_it(opguard, tmp_path):
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "m.py").write_text("import torch\n\n\ndef f(x):\n    a, b = torch.softmax(x, -1)\n    return a @ b\n")
    plan = tmp_path / "plan.json"
    ids(opguard, tmp_path / "tree", plan)
    document = json.loads(plan.read_text())
    for boundary in document["boundaries"]:
        boundary["id"] = "an_older_label." + boundary["id"]
    plan.write_text(json.dumps(document))
    (tmp_path / "tree" / "m.py").write_text("import torch\n\n\ndef f(value):\n    a, b = torch.softmax(value, dim=-1)\n    return a @ b\n")
    done = opguard(tmp_path / "tree", "--plan", plan, program="opguard-instrument")
    assert done.returncode == 0, done.stderr
    assert all(b["id"] in done.stdout for b in document["boundaries"]) and document["boundaries"]
