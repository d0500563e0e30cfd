"""Bad input: one clear message, exit code 2, and no file of the user's changed."""
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from conftest import tree_digest

PROGRAM = """\
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(2):
    optimizer.zero_grad()
    loss = (model(torch.ones(2, 4)) ** 2).mean()
    loss.backward()
    optimizer.step()
    print("step", step, "loss", loss.item())
"""


@pytest.fixture
def tree(tmp_path):
    """A small training program in a tree of its own."""
    path = tmp_path / "tree"
    path.mkdir()
    (path / "train.py").write_text(PROGRAM)
    return path


def refuse(opguard, *args, words=(), trees=(), **kwargs):
    """Runs a command that must be refused, and returns its stderr."""
    before = [tree_digest(t) for t in trees]
    done = opguard(*args, **kwargs)
    assert done.returncode == 2, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert [tree_digest(t) for t in trees] == before, "a file of the user's changed"
    for word in words:
        assert word in done.stderr, done.stderr
    return done.stderr


def one_message(stderr):
    """One complaint: a diagnostic at a position, a sentence, or the one closed by the other."""
    located = re.findall(r"^\S+:\d+:\d+: error: ", stderr, re.M)
    sentences = re.findall(r"^opguard: error: ", stderr, re.M)
    return len(located) <= 1 and len(sentences) <= 1 and located + sentences


def test_a_tree_that_is_not_python(opguard, tmp_path, tree):
    prose = tmp_path / "prose"
    prose.mkdir()
    (prose / "README.txt").write_text("no program here\n")
    err = refuse(opguard, "diff", tree, prose, "--", "python", "train.py", trees=[tree, prose], words=[str(prose)])
    assert one_message(err), err


def test_a_tree_that_is_not_there(opguard, tmp_path, tree):
    gone = tmp_path / "gone"
    err = refuse(opguard, "diff", tree, gone, "--", "python", "train.py", trees=[tree], words=[str(gone)])
    assert one_message(err), err


def test_a_file_that_does_not_parse(opguard, tmp_path, tree):
    (tree / "broken.py").write_text("x = 1\ndef f(:\n    pass\n")
    plan = tmp_path / "plan.json"
    done = opguard("plan", "--static", tree, "-o", plan)
    assert done.returncode == 0 and done.stderr.count("the file is skipped") == 1
    assert all(word in done.stderr for word in ("broken.py:2:", "def f(:", "^", "1 skipped"))
    # A plan without its sites says so.
    (skipped,) = [u for u in json.loads(plan.read_text())["unwrapped"] if u["file"] == "broken.py"]
    assert skipped["line"] == 2 and "skipped" in skipped["what"]
    # A tree of nothing else is refused.
    (tree / "train.py").unlink()
    plan.unlink()
    refuse(opguard, "plan", "--static", tree, "-o", plan, trees=[tree], words=["broken.py:2:", "no plan was written"])
    assert not plan.exists()


def test_files_left_out(opguard, tmp_path, tree):
    (tree / "old" / "deep").mkdir(parents=True)
    (tree / "old" / "deep" / "broken.py").write_text("def f(:\n")
    (tree / "other.py").write_text("import torch\nprint(torch.ones(2) * 2)\n")
    plan = tmp_path / "plan.json"
    done = opguard("plan", "--static", tree, "--exclude", "old/", "--exclude", "oth*.py", "-o", plan)
    assert done.returncode == 0 and "2 files left out by --exclude" in done.stderr and "skipped" not in done.stderr, done.stderr
    assert {b["site"]["file"] if "site" in b else b["file"] for b in json.loads(plan.read_text())["boundaries"]} == {"train.py"}
    done = opguard("instrument", tree, "--all-sites", "--exclude", "old", "--exclude", "*.pyx")
    assert done.returncode == 0 and "broken.py" not in done.stdout + done.stderr and "other.py" in done.stdout
    assert "note: --exclude *.pyx matches no file" in done.stderr
    done = opguard("match", "--plan", plan, tree, "--exclude", "old")
    assert done.returncode == 0 and "broken.py" not in done.stderr, done.stderr


def test_what_git_ignores_is_no_source(opguard, tmp_path, tree):
    """An environment without pyvenv.cfg, a build: left out unasked. What git keeps all the same is source, and so is a tree ignored as a whole."""
    git = ["git", "-C", str(tree), "-c", "user.name=n", "-c", "user.email=e@e"]
    for name in ("venv/lib/mod.py", "build/made.py", "build/kept.py"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("import torch\nprint(torch.ones(2) * 2)\n")
    (tree / "build" / "broken.py").write_text("def f(:\n")
    (tree / ".gitignore").write_text("venv/\n/build/*\n")
    for words in (["init", "-q"], ["add", "-f", "train.py", "build/kept.py"], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    plan = tmp_path / "plan.json"

    def files():
        return {b["site"]["file"] if "site" in b else b["file"] for b in json.loads(plan.read_text())["boundaries"]}

    done = opguard("plan", "--static", tree, "-o", plan)
    assert done.returncode == 0 and "3 files left out, which git ignores" in done.stderr and "broken" not in done.stderr, done.stderr
    assert files() == {"train.py", "build/kept.py"}
    done = opguard("instrument", tree, "--all-sites")
    assert done.returncode == 0 and "venv/lib/mod.py" not in done.stdout and "build/kept.py" in done.stdout, done.stderr
    plan.unlink()
    done = opguard("plan", "--static", tree / "venv", "-o", plan)
    assert done.returncode == 0 and "left out" not in done.stderr and files() == {"lib/mod.py"}, done.stderr


def test_a_file_that_cannot_be_read(opguard, tmp_path, tree):
    # Not by permissions, which root has: of a size that no position can tell, and no bytes.
    with open(tree / "big.py", "wb") as big:
        big.truncate((1 << 31) + 1)
    plan = tmp_path / "plan.json"
    done = opguard("plan", "--static", tree, "-o", plan)
    assert done.returncode == 0 and "big.py: warning: cannot be read: larger than 2 GiB; the file is skipped" in done.stderr, done.stderr
    (skipped,) = [u for u in json.loads(plan.read_text())["unwrapped"] if u["file"] == "big.py"]
    assert skipped["what"] == "skipped: larger than 2 GiB"
    done = opguard(tree, "--plan", plan, "--check", program="opguard-instrument")
    assert done.returncode == 0 and "big.py" in done.stderr
    (tree / "train.py").unlink()
    refuse(opguard, "plan", "--static", tree, "-o", plan, words=["big.py", "larger than 2 GiB"])


def test_a_program_with_a_syntax_error(opguard, tmp_path, tree):
    bad = tmp_path / "bad"
    shutil.copytree(tree, bad)
    (bad / "train.py").write_text(PROGRAM + "if\n")
    # Python's own message reaches the user.
    err = refuse(opguard, "diff", tree, bad, "--", "python", "train.py", trees=[tree, bad], words=["SyntaxError"])
    assert one_message(err), err


def test_a_program_that_fails(opguard, tmp_path, tree):
    bad = tmp_path / "bad"
    shutil.copytree(tree, bad)
    (bad / "train.py").write_text("import torch, sys\nprint('out of luck', file=sys.stderr)\nsys.exit(7)\n" + PROGRAM)
    err = refuse(opguard, "diff", tree, bad, "--", "python", "train.py", trees=[tree, bad], words=["out of luck", "7"])
    assert one_message(err), err


def test_a_program_that_is_not_there(opguard, tree):
    err = refuse(opguard, "diff", tree, tree, "--", "no-such-program-here", "train.py", trees=[tree],
                 words=["no-such-program-here"])
    assert one_message(err), err


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory):
    """An interpreter that has no torch."""
    path = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", path], check=True)
    return path / "bin" / "python"


def test_an_interpreter_without_torch(opguard, tree, bare_python):
    err = refuse(opguard, "diff", tree, tree, "--", bare_python, "train.py", trees=[tree], words=["torch"])
    assert one_message(err), err


def test_a_program_that_never_imports_torch(opguard, tree, bare_python):
    (tree / "train.py").write_text("print('nothing to see')\n")
    err = refuse(opguard, "diff", tree, tree, "--", bare_python, "train.py", trees=[tree], words=["torch"])
    assert one_message(err), err


@pytest.fixture
def plan(opguard, tree, tmp_path):
    path = tmp_path / "plan.json"
    done = opguard("plan", "--static", tree, "-o", path)
    assert done.returncode == 0, done.stderr
    return path


def test_a_plan_of_another_version(opguard, tree, plan):
    data = json.loads(plan.read_text())
    data["opguard_plan"] += 1
    plan.write_text(json.dumps(data))
    err = refuse(opguard, "match", "--plan", plan, tree, trees=[tree], words=[str(plan), "version"])
    assert one_message(err), err


def test_a_folder_given_as_a_plan(opguard, tree):
    for words in (["match", "--plan", tree, tree], ["instrument", tree, "--plan", tree, "--check"]):
        err = refuse(opguard, *words, trees=[tree], words=[f"{tree} is a folder, not a file"])
        assert one_message(err), err


def test_a_check_tells_what_it_found(opguard, tree, plan):
    done = opguard("instrument", tree, "--plan", plan, "--check")
    assert done.returncode == 0 and done.stdout.endswith(" boundaries, 0 unmatched\n"), done.stdout


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_plan_cut_short(opguard, tree, plan, share):
    text = plan.read_bytes()
    plan.write_bytes(text[: int(len(text) * share)])
    err = refuse(opguard, "match", "--plan", plan, tree, trees=[tree], words=[str(plan)])
    assert one_message(err), err


@pytest.fixture(scope="module")
def logs(opguard, tmp_path_factory):
    """The logs of one program under two settings: (plain, deterministic)."""
    base = tmp_path_factory.mktemp("logs")
    (base / "tree").mkdir()
    (base / "tree" / "train.py").write_text(PROGRAM)
    diff = opguard("diff", base / "tree", base / "tree", "--work", base / "work", "--", "python", "train.py")
    assert diff.returncode == 0, diff.stdout + diff.stderr
    # The instrumented program, run again under the two settings.
    instrumented = base / "instrumented"
    shutil.copytree(base / "tree", instrumented)
    subprocess.run(["git", "init", "-q", instrumented], check=True)
    patch = opguard(instrumented, "--", "python", "train.py", program="opguard-instrument")
    assert patch.returncode == 0, patch.stderr
    subprocess.run(["git", "apply"], cwd=instrumented, input=patch.stdout, text=True, check=True)
    for name, options in (("plain", []), ("deterministic", ["--deterministic"])):
        done = opguard("run", *options, "--log", base / name, "--", "python", "train.py", cwd=instrumented)
        assert done.returncode == 0, done.stderr
    return base / "plain", base / "deterministic"


def only_log(folder):
    (path,) = [p for p in folder.iterdir() if ".log" in p.name]
    return path


def test_logs_of_one_program_agree(opguard, logs):
    done = opguard("align", logs[0], logs[0])
    assert done.returncode == 0, done.stdout + done.stderr


def test_logs_of_unlike_settings(opguard, logs):
    err = refuse(opguard, "align", *logs, words=["unlike settings"])
    assert one_message(err), err


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_log_cut_short(opguard, logs, tmp_path, share):
    cut = tmp_path / "cut"
    shutil.copytree(logs[0], cut)
    path = only_log(cut)
    os.truncate(path, int(path.stat().st_size * share))
    # What is left is read, but nothing is certified across the hole.
    done = opguard("align", logs[0], cut)
    assert done.returncode == 2, done.stdout + done.stderr
    assert path.name in done.stdout + done.stderr


def test_a_log_that_is_none(opguard, logs, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "rank0.log").write_text("step 1 loss 2.5\n" * 100)
    err = refuse(opguard, "align", logs[0], other, words=["rank0.log"])
    assert one_message(err), err


def test_a_folder_without_logs(opguard, logs, tmp_path):
    err = refuse(opguard, "align", logs[0], tmp_path, words=[str(tmp_path)])
    assert one_message(err), err
