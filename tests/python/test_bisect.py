"""`opguard bisect`: the first commit, or release of a package, whose run differs."""
import fcntl
import json
import os
import signal
import subprocess
import zipfile

import pytest

from conftest import binary, clean_environment, tree_digest, until

MODEL = """import torch


def loss_of(model, x):
    return model(x).square().mean() * 2.0
"""
TRAIN = """import os

with open(os.environ["RUNS"], "a") as file:
    file.write("run\\n")
import torch
from model import loss_of

torch.manual_seed(0)
net = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
for step in range(4):
    optimizer.zero_grad()
    loss = loss_of(net, torch.randn(4, 8))
    loss.backward()
    if step >= 1:
        optimizer.step()
    else:
        optimizer.step()
"""
COMMAND = ["--", "python", "train.py"]


def git(tree, *words):
    words = ["git", "-c", "user.name=Ann", "-c", "user.email=ann@example.org", *words]
    return subprocess.run(words, cwd=tree, check=True, capture_output=True, text=True).stdout.strip()


class Repository:
    def __init__(self, tree):
        self.tree = tree
        tree.mkdir()
        git(tree, "init", "-q", "-b", "main")
        self.write("model.py", MODEL)
        self.write("train.py", TRAIN)
        self.commit("good")

    def write(self, name, text):
        (self.tree / name).write_text(text)

    def edit(self, name, old, new):
        text = (self.tree / name).read_text()
        assert old in text
        self.write(name, text.replace(old, new))

    def commit(self, title):
        git(self.tree, "add", "-A")
        git(self.tree, "commit", "-q", "-m", title)
        git(self.tree, "tag", title)
        return git(self.tree, "rev-parse", "HEAD")


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """How often the program was started."""
    path = tmp_path / "runs.txt"
    monkeypatch.setenv("RUNS", str(path))
    return lambda: len(path.read_text().split()) if path.exists() else 0


@pytest.fixture
def repo(tmp_path):
    return Repository(tmp_path / "a repo")


def long_history(repo):
    """Seven commits behind `good`: a merge and one that does not run among them; `fault` is the bad one."""
    repo.edit("model.py", "model, x", "net, x")
    repo.edit("model.py", "model(x)", "net(x)")
    repo.commit("rename")
    git(repo.tree, "checkout", "-q", "-b", "side", "good")
    repo.write("README", "A program.\n")
    repo.commit("side-readme")
    git(repo.tree, "checkout", "-q", "main")
    git(repo.tree, "merge", "-q", "--no-ff", "-m", "merge", "side")
    git(repo.tree, "tag", "merge")
    repo.edit("train.py", "    if step >= 1:\n        optimizer.step()", "    if step >= 1:\n        optimizer.param_groups[0]['lr'] = 0.25\n        optimizer.step()")
    fault = repo.commit("fault")
    repo.edit("train.py", "import torch\n", "import torch\nimport missing\n")
    repo.commit("broken")
    repo.edit("train.py", "import missing\n", "# mended\n")
    repo.commit("mended")
    repo.edit("model.py", "* 2.0", "* 2.5")  # a second fault, seen earlier in the run
    repo.edit("model.py", "* 2.5", "* 2.0  # two")
    repo.commit("last")
    return fault


@pytest.mark.parametrize("jobs", ["1", "3"])
def test_the_first_bad_commit(opguard, repo, runs, tmp_path, jobs):
    pytest.importorskip("torch")
    fault = long_history(repo)
    repo.write("train.py", "a dirty tree")
    before = tree_digest(repo.tree)
    words = ["bisect", "good", "main", "--no-name", "--jobs", jobs, "--work", tmp_path / "my work", "--json", tmp_path / "r.json", *COMMAND]
    done = opguard(*words, cwd=repo.tree)
    assert done.returncode == 0, done.stderr
    assert f"first bad commit: {fault[:12]} fault\n  author: Ann <ann@example.org>\n" in done.stdout
    assert tree_digest(repo.tree) == before
    result = json.loads((tmp_path / "r.json").read_text())
    assert result["outcome"] == "found" and result["first_bad"]["commit"] == fault and result["naming"] is None
    assert runs() == 2 + result["runs"]["judged"]  # the reference, its preflight, and those that judged
    if jobs == "1":
        assert result["runs"]["judged"] <= 4
    bad = [t for t in result["tried"] if t["mark"] == "bad"]
    assert bad and all(t["step"] == 1 for t in bad)
    # Behind the step in which a bad one differs no later run goes.
    if jobs == "1":
        order = [t["mark"] for t in result["tried"]]
        assert all(t["until"] == 1 for t in result["tried"][order.index("bad") + 1 :] if t["mark"] == "good")
    for tried in result["tried"]:
        folder = tmp_path / "my work" / tried["folder"]
        assert (folder / "result.json").is_file()
        if tried["mark"] != "skip":
            assert {"report.txt", "report.json", "report.html"} <= set(os.listdir(folder))
        else:
            assert "missing" in tried["why"] and tried["title"] == "broken"

    # The same again: everything is known. Another search is not mixed with it.
    count = runs()
    again = opguard(*words, cwd=repo.tree)
    assert again.returncode == 0 and runs() == count and "now 0, the others were kept" in again.stdout
    other = opguard("bisect", "good", "last~1", "--work", tmp_path / "my work", *COMMAND, cwd=repo.tree)
    assert other.returncode == 2 and "holds another bisection: its 'bad' is not the same" in other.stderr and runs() == count


def test_the_operator_is_named_against_the_parent(opguard, repo, runs, tmp_path):
    pytest.importorskip("torch")
    repo.edit("model.py", "* 2.0", "* 2.5")
    fault = repo.commit("fault")
    done = opguard("bisect", "good..fault", "--prove-runs", "0", "--setup", "echo made >setup.txt; test -f model.py", "--json", tmp_path / "r.json", *COMMAND, cwd=repo.tree)
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "r.json").read_text())
    assert result["first_bad"]["commit"] == fault and result["naming"]["parent"] and result["naming"]["verdict"] == "diverged"
    assert result["naming"]["pivot"]["b"]["line"] == 5 and "model.py:5" in done.stdout and "net(x)" not in done.stdout
    assert runs() == 2 + 1 + 4 and result["runs"]["naming"] == 4
    assert not (repo.tree / "setup.txt").exists()


def test_killed_and_started_again_repeats_no_run(opguard, repo, runs, tmp_path):
    pytest.importorskip("torch")
    fault = long_history(repo)
    words = ["bisect", "good", "main", "--no-name", "--work", tmp_path / "w", *COMMAND]
    process = subprocess.Popen(
        [str(binary("opguard")), *map(str, words)], cwd=repo.tree, env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert until(lambda: list((tmp_path / "w").glob("commits/*/result.json")), 120)
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 2 and "stopped by signal 15" in said and "the same command goes on" in said
    kept = {p: p.read_text() for p in (tmp_path / "w").glob("commits/*/result.json")}
    before = runs()
    done = opguard(*words, cwd=repo.tree)
    assert done.returncode == 0 and f"first bad commit: {fault[:12]}" in done.stdout
    assert all(p.read_text() == text for p, text in kept.items())
    assert runs() - before == len(list((tmp_path / "w").glob("commits/*/result.json"))) - len(kept)


def test_only_commits_that_do_not_run_are_left(opguard, repo, runs):
    pytest.importorskip("torch")
    repo.edit("model.py", "* 2.0", "* 2.5")
    repo.commit("fault")
    repo.write("README", "A program.\n")
    repo.commit("last")
    done = opguard("bisect", "good", "last", "--no-name", "--setup", "test -f README", *COMMAND, cwd=repo.tree)
    assert done.returncode == 2 and "the good commit: --setup ended with exit code 1" in done.stderr and runs() == 0
    done = opguard("bisect", "good", "last", "--no-name", "--setup", "grep -q 2.0 model.py || test -f README", *COMMAND, cwd=repo.tree)
    assert done.returncode == 2 and "one of 2 commits" in done.stdout and "fault\n" in done.stdout and "last\n" in done.stdout, done.stdout + done.stderr


def test_the_same_files_need_no_run(opguard, repo, runs):
    repo.write("README", "A program.\n")
    repo.commit("more")
    (repo.tree / "README").unlink()
    repo.commit("less")
    done = opguard("bisect", "good", "less", *COMMAND, cwd=repo.tree)
    assert done.returncode == 1 and "no first bad commit" in done.stdout and runs() == 0


@pytest.mark.parametrize("words, said", [
    (["good"], "give a good and a bad one"),
    (["good.."], "give a good and a bad one"),
    (["good", "nowhere"], "no revision 'nowhere'"),
    (["last", "good"], "'good' is older than 'last': give the good revision first"),
    (["good", "good"], "'good' is 'good': give the good revision first"),
    (["good", "last", "--repo", "/"], "no git repository holds '/'"),
    (["good", "last", "--ignore", "nonsense"], "the rules cannot be read"),
    (["good", "last", "--work", "full"], "'full' is not empty"),
    (["--package", "no-such", "--releases", "1.0,1.1", "1.0", "1.2"], "no-such has no release 1.2; its last is 1.1"),
])
def test_bad_input_is_named(opguard, repo, words, said):
    repo.write("README", "A program.\n")
    repo.commit("last")
    (repo.tree / "full").mkdir()
    (repo.tree / "full" / "file").write_text("mine")
    done = opguard("bisect", *words, *COMMAND, cwd=repo.tree)
    assert done.returncode == 2 and said in done.stderr, done.stderr
    assert (repo.tree / "full" / "file").read_text() == "mine"


def test_diff_as_git_bisect_run_wants_it(opguard, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "train.py").write_text("raise SystemExit(3)\n")
    words = ["a", "a", "--", "python", "train.py"]
    assert opguard("diff", *words, cwd=tmp_path).returncode == 2
    assert opguard("diff", "--bisect-exit", *words, cwd=tmp_path).returncode == 125


def wheel(folder, version, text, needs=()):
    """A release of the package `tiny-scale`, imported as tiny_scale."""
    info = f"tiny_scale-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: tiny-scale\nVersion: {version}\n" + "".join(f"Requires-Dist: {n}\n" for n in needs)
    with zipfile.ZipFile(folder / f"tiny_scale-{version}-py3-none-any.whl", "w") as file:
        file.writestr("tiny_scale/__init__.py", text)
        file.writestr(f"{info}/METADATA", metadata)
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", f"tiny_scale/__init__.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")


def test_two_searches_share_environments(opguard, tmp_path, monkeypatch):
    """What another search is installing is waited for, and used: nothing is taken from under its hands."""
    index, shared = tmp_path / "index", tmp_path / "shared"
    index.mkdir()
    shared.mkdir()
    for version in ("0.1.0", "0.2.0"):
        wheel(index, version, "")
    (tmp_path / "train.py").write_text("import tiny_scale\nraise SystemExit(tiny_scale.whose)\n")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    half = shared / "tiny-scale-0.1.0"
    (half / "tiny_scale").mkdir(parents=True)
    (half / "tiny_scale/__init__.py").write_text("whose = 41\n")
    with open(shared / "tiny-scale-0.1.0.lock", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        words = ["bisect", "--package", "tiny-scale", "--releases", "0.1.0,0.2.0", "0.1", "0.2", "--environments", shared]
        with subprocess.Popen([str(binary("opguard")), *map(str, words), *COMMAND], cwd=tmp_path, env=clean_environment(),
                              text=True, stderr=subprocess.PIPE) as second:
            said = next(line for line in second.stderr if "waiting" in line)
            assert "waiting for another search, which installs tiny-scale==0.1.0" in said
            assert (half / "tiny_scale").exists() and second.poll() is None
            (shared / "tiny-scale-0.1.0.ready").touch()
            fcntl.flock(held, fcntl.LOCK_UN)
            said = second.stderr.read()
    # The other's release ran, as it was left.
    assert "exit code 41" in said, said


def test_the_first_bad_release(opguard, tmp_path, monkeypatch, runs):
    pytest.importorskip("torch")
    index, tree = tmp_path / "index", tmp_path / "tree"
    index.mkdir()
    tree.mkdir()
    good = "def scale(x):\n    return x * 2.0\n"
    wheel(index, "0.1.0", good)
    wheel(index, "0.2.0", "def scale(y):\n    return y * 2.0\n")
    wheel(index, "0.3.0", good, needs=["torch==1.0"])
    wheel(index, "0.4.0", "def scale(x):\n    return x * 2.5\n")
    wheel(index, "0.5.0", "def scale(x):\n    # more\n    return x * 2.5\n")
    (tree / "train.py").write_text(TRAIN.replace("from model import loss_of", "from tiny_scale import scale").replace(
        "loss_of(net, torch.randn(4, 8))", "scale(net(torch.randn(4, 8)).square().mean())"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    done = opguard("bisect", "--package", "tiny-scale", "0.1..0.5", "--no-name", "--json", tmp_path / "r.json", *COMMAND, cwd=tree)
    result = json.loads((tmp_path / "r.json").read_text())
    marks = {t["release"]: t["mark"] for t in result["tried"]}
    assert marks["0.3.0"] == "skip" and marks["0.4.0"] == "bad" and marks["0.2.0"] == "good", result
    assert "asks for torch" in done.stdout + done.stderr or any("cannot be installed" in t["why"] for t in result["tried"])
    # 0.3.0 cannot be told from 0.4.0.
    assert done.returncode == 2 and result["suspects"] == ["0.3.0", "0.4.0"], done.stdout
    done = opguard("bisect", "--package", "tiny-scale", "--releases", "0.1.0,0.2.0,0.4.0,0.5.0", "0.1", "0.5", "--prove-runs", "0", *COMMAND, cwd=tree)
    assert done.returncode == 0 and "first bad release: tiny-scale 0.4.0" in done.stdout and "tiny_scale/__init__.py:2" in done.stdout, done.stdout + done.stderr
