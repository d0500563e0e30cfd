"""`diff --git`: revisions are named as the user named them, in every format, and nothing leads into a folder that is gone."""
import json
import re
import subprocess
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

pytest.importorskip("torch")

MODEL = """
import torch


def loss_of(model, x):
    return model(x).square().mean() * 2.0
"""
TRAIN = """
import torch
from pkg.model import loss_of

torch.manual_seed(0)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for step in range(2):
    optimizer.zero_grad()
    loss = loss_of(model, torch.randn(4, 8))
    loss.backward()
    optimizer.step()
"""
COMMAND = ["--", "python", "train.py"]


def git(tree, *words):
    words = ["git", "-c", "user.name=T", "-c", "user.email=t@example.org", *words]
    return subprocess.run(words, cwd=tree, check=True, capture_output=True, text=True).stdout.strip()


def commit(tree, tag):
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", tag)
    git(tree, "tag", tag)


@pytest.fixture
def repo(tmp_path):
    """v1 and v2, which takes the mean another way."""
    tree = tmp_path / "repo"
    (tree / "pkg").mkdir(parents=True)
    (tree / "train.py").write_text(TRAIN)
    (tree / "pkg" / "model.py").write_text(MODEL)
    (tree / ".gitignore").write_text("data\n")
    git(tree, "init", "-q", "-b", "main")
    git(tree, "remote", "add", "origin", "https://me:secret@github.com/o/n.git")
    commit(tree, "v1")
    (tree / "pkg" / "model.py").write_text(MODEL.replace("* 2.0", "* 2.5"))
    commit(tree, "v2")
    return tree


def read(path):
    return json.loads(path.read_text())


def page_data(path):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text(), re.S).group(1))


def test_every_format_names_the_revision(opguard, repo, tmp_path):
    out = {name: tmp_path / f"out.{name}" for name in ("json", "html", "sarif", "perfetto")}
    options = [word for name, path in out.items() for word in (f"--{name}", path)]
    done = opguard("diff", "--git", "v1..v2", "--no-prove", *options, *COMMAND, cwd=repo)
    assert done.returncode == 1, done.stdout + done.stderr
    place = "pkg/model.py:6:12"
    assert f"  a {place} (v1): in loss_of" in done.stdout and f"  b {place} (v2): in loss_of" in done.stdout
    # No folder of ours is left, and nothing names one.
    for text in (done.stdout, *(path.read_bytes().decode(errors="replace") for path in out.values())):
        assert "tree_a/" not in text and "tree_b/" not in text and "secret" not in text

    commits = [git(repo, "rev-parse", tag) for tag in ("v1", "v2")]
    answer = read(out["json"])
    assert answer["opguard"]["version"] and answer["schema"] == 1 and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", answer["date"])
    assert answer["command"].startswith("opguard diff --git v1..v2 ") and answer["command"].endswith("-- python train.py")
    for side, tag, hash in zip("ab", ("v1", "v2"), commits):
        assert answer["pivot"][side]["place"] == f"{place} ({tag})"
        assert answer["pivot"][side]["path"] == str(repo / "pkg/model.py")
        known = answer["revisions"][side]
        assert (known["revision"], known["commit"], known["repository"]) == (tag, hash, str(repo))
        assert (known["tree"], known["command"], known["remote"]) == (str(repo), "python train.py", "https://github.com/o/n.git")
        assert known["title"] == f"{tag} ({hash[:12]})" and known["started"]

    head = page_data(out["html"])["head"]
    assert head["runs"] == [f"v1 ({commits[0][:12]})", f"v2 ({commits[1][:12]})"] and head["identity"]["command"] == answer["command"]
    sites = page_data(out["html"])["sites"]
    [site] = [s for s in sites[0] if s["id"] == answer["pivot"]["a"]["boundary"]]
    assert site["label"] == " (v1)" and site["link"] == f"https://github.com/o/n/blob/{commits[0]}/pkg/model.py#L6"

    [run] = read(out["sarif"])["runs"]
    driver = run["tool"]["driver"]
    assert driver["semanticVersion"] == answer["opguard"]["version"] and driver["version"].startswith(driver["semanticVersion"])
    assert run["invocations"][0]["commandLine"] == answer["command"] and run["properties"]["revisions"]["b"]["revision"] == "v2"
    assert [c["revisionId"] for c in run["versionControlProvenance"]] == commits
    main = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert main == {"uri": "pkg/model.py", "uriBaseId": "REPOSITORY"}
    base = run["originalUriBaseIds"]["REPOSITORY"]["uri"]
    assert Path(unquote(urlsplit(base + main["uri"]).path)) == repo / "pkg/model.py"
    assert run["results"][0]["relatedLocations"][0]["message"]["text"] == "the same in run a (v1)"

    trace = out["perfetto"].read_bytes()
    assert b"pkg/model.py:6:12 (v1)" in trace and b"opguard-command" in trace and answer["command"].encode() in trace


def test_the_working_tree_is_the_other_side(opguard, repo, tmp_path):
    git(repo, "checkout", "-q", "v1")
    (repo / "pkg" / "model.py").write_text(MODEL.replace("* 2.0", "* 3.0"))
    done = opguard("diff", "--git", "v1..", "--no-prove", "--json", tmp_path / "o.json", *COMMAND, cwd=repo)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "pkg/model.py:6:12 (v1)" in done.stdout and "pkg/model.py:6:12 (working tree)" in done.stdout and "* 3.0" in done.stdout
    assert "uncommitted" not in done.stderr
    answer = read(tmp_path / "o.json")
    assert answer["revisions"]["b"]["commit"] == git(repo, "rev-parse", "HEAD") + "+"
    assert answer["pivot"]["b"]["path"] == str(repo / "pkg/model.py")


def test_uncommitted_changes_are_said(opguard, repo):
    (repo / "pkg" / "model.py").write_text(MODEL.replace("* 2.0", "* 3.0"))
    (repo / "train.py").write_text(TRAIN + "\n")
    done = opguard("diff", "--git", "v1..v2", "--no-prove", *COMMAND, cwd=repo)
    assert done.returncode == 1, done.stderr
    notes = [line for line in done.stderr.splitlines() if "uncommitted" in line]
    assert notes == ["opguard: note: uncommitted changes of pkg/model.py and 1 more file are in neither side; --git v1.. compares with them"]
    assert "* 3.0" not in done.stdout


READS = "scale = float(open('data/scale.txt').read())\n"


def test_data_that_git_does_not_keep(opguard, repo):
    (repo / "train.py").write_text(TRAIN.replace("\nfor step", f"\n{READS}for step"))
    git(repo, "commit", "-qam", "reads")
    git(repo, "tag", "-f", "v1")
    (repo / "pkg" / "model.py").write_text(MODEL.replace("* 2.0", "* 2.25"))
    commit(repo, "v3")
    (repo / "data").mkdir()
    (repo / "data" / "scale.txt").write_text("2")
    lacking = opguard("diff", "--git", "v1..v3", "--no-prove", *COMMAND, cwd=repo)
    assert lacking.returncode == 2
    assert f"hint: v1 has no data, and {repo} has: --link data links it into both trees" in lacking.stderr
    linked = opguard("diff", "--git", "v1..v3", "--no-prove", "--link", "data", *COMMAND, cwd=repo)
    assert linked.returncode == 1 and "hint" not in linked.stderr, linked.stderr
    for path, why in (("nothing", "has no such file or folder"), ("../x", "not a file or folder below"), (".git", "not a file or folder below")):
        refused = opguard("diff", "--git", "v1..v3", "--link", path, *COMMAND, cwd=repo)
        assert refused.returncode == 2 and refused.stderr.count("\n") == 1 and f"--link {path}: " in refused.stderr and why in refused.stderr


def test_a_link_of_the_revision_leads_nowhere(opguard, repo, tmp_path):
    """--link makes nothing outside the exported tree, whatever the revision's own links say."""
    (tmp_path / "elsewhere").mkdir()
    (repo / "out").symlink_to(tmp_path / "elsewhere")
    commit(repo, "v3")
    (repo / "out").unlink()
    (repo / "out").mkdir()
    (repo / "out" / "file").write_text("x")
    done = opguard("diff", "--git", "v1..v3", "--link", "out/file", *COMMAND, cwd=repo)
    assert done.returncode == 2 and "link to elsewhere" in done.stderr
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_trees_of_a_repository(opguard, repo, tmp_path):
    """Without --git too a report says which commit a tree is of, and whether it was changed since."""
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", repo, other)
    (other / "pkg" / "model.py").write_text(MODEL)
    done = opguard("diff", repo, other, "--no-prove", "--json", tmp_path / "o.json", *COMMAND)
    assert done.returncode == 1, done.stderr
    known = read(tmp_path / "o.json")["revisions"]
    head = git(repo, "rev-parse", "HEAD")
    assert (known["a"]["commit"], known["b"]["commit"]) == (head, head + "+")
    assert known["b"]["title"] == f"{other} ({head[:12]}+)"
    assert f"  b {other}/pkg/model.py:6:12: in loss_of" in done.stdout


def test_a_folder_that_git_keeps_in_part(opguard, repo):
    """The revision's own files stay; what its folder lacks is linked, and the hint names that alone."""
    (repo / "data").mkdir()
    (repo / "data" / "scale.txt").write_text("2")
    (repo / "data" / "own.txt").write_text("1")
    (repo / "train.py").write_text(TRAIN.replace("\nfor step", f"\n{READS}assert open('data/own.txt').read() == '1'\nfor step"))
    git(repo, "add", "-f", "data/own.txt")
    commit(repo, "v3")
    (repo / "data" / "own.txt").write_text("2")
    lacking = opguard("diff", "--git", "v3..v3", "--no-prove", *COMMAND, cwd=repo)
    assert lacking.returncode == 2 and f"hint: v3 has no data/scale.txt, and {repo} has: --link data/scale.txt" in lacking.stderr
    linked = opguard("diff", "--git", "v3..v3", "--no-prove", "--link", "data", *COMMAND, cwd=repo)
    assert linked.returncode == 0, linked.stderr


def test_logs_of_opguard_run_know_their_commit(opguard, repo, tmp_path):
    assert opguard(repo, "--all-sites", "--apply", program="opguard-instrument").returncode == 0
    commit(repo, "probes")
    for name in ("a", "b"):
        done = opguard("run", "--log", tmp_path / name, *COMMAND, cwd=repo)
        assert done.returncode == 0, done.stderr
        (repo / "train.py").write_text((repo / "train.py").read_text() + "\n")
    assert opguard("align", tmp_path / "a", tmp_path / "b", "--json", tmp_path / "o.json").returncode == 0
    known = read(tmp_path / "o.json")["revisions"]
    head = git(repo, "rev-parse", "HEAD")
    assert (known["a"]["commit"], known["b"]["commit"]) == (head, head + "+")
    assert known["a"]["command"] == "python train.py" and known["a"]["tree"] == str(repo)
