"""`opguard-instrument --check-stripped`, and the pre-commit hook that is made of it."""
import os
import shutil
import subprocess

import pytest

from conftest import ROOT, build_dir, clean_environment

CLEAN = "x = 1\n"
PROBED = '''"""A model."""
from opguard import og  # opguard: probes, isort: skip


def f(x, w):
    return og("model.gelu:q7k2", gelu)(og("model.mul:a2b4", x) * w)
'''
# The words stand in a string: an example of a document.
QUOTED = "TEXT = '''\nfrom opguard import og  # opguard: probes, isort: skip\n'''\n"
TORN = "from opguard import og  # opguard: probes, isort: skip\n<<<<<<< ours\nx = 1\n"


@pytest.fixture
def check(opguard, tmp_path):
    def run(*paths):
        return opguard("--check-stripped", *paths, program="opguard-instrument", cwd=tmp_path)

    return run


def test_what_is_left_is_named(check, tmp_path):
    (tmp_path / "a b").mkdir()
    for name, text in {"a b/probed.py": PROBED, "clean.py": CLEAN, "quoted.py": QUOTED, "torn.py": TORN}.items():
        (tmp_path / name).write_text(text)
    done = check("a b/probed.py", "clean.py", "quoted.py", "torn.py")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "a b/probed.py:2:1: error: the import line of probes",
        "a b/probed.py:6:12: error: a probe: model.gelu:q7k2",
        "a b/probed.py:6:40: error: a probe: model.mul:a2b4",
        "torn.py:1:25: error: the import line of probes, in a file that cannot be parsed",
    ]
    assert done.stderr == "opguard: 2 files carry probes: opguard-instrument TREE --strip --apply takes them out\n"
    assert check("clean.py", "quoted.py").returncode == 0
    # The tree, and a folder of it.
    whole = check()
    assert whole.returncode == 1 and whole.stdout == done.stdout
    assert check("a b").stdout.splitlines() == done.stdout.splitlines()[:3]


def test_a_tree_in_and_out_again(check, opguard, tmp_path, minitrain):
    tree = tmp_path / "tree"
    shutil.copytree(minitrain, tree)
    for options, code in ((["--all-sites", "--comments", "--apply"], 1), (["--strip", "--apply"], 0)):
        assert opguard("instrument", tree, *options).returncode == 0
        done = check("tree")
        assert done.returncode == code and (done.stdout != "") == (code == 1), done.stdout


def test_what_cannot_be_read_is_named(check, tmp_path):
    (tmp_path / "clean.py").write_text(CLEAN)
    (tmp_path / "probed.py").write_text(PROBED)
    done = check("gone\x1b[31m.py", "clean.py")
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == "gone\\x1b[31m.py: error: it cannot be read: No such file or directory\n"
    assert check("gone.py", "probed.py").returncode == 1  # what is known counts
    done = check("--strip")
    assert done.returncode == 2 and "excludes" in done.stderr


def test_the_hook(tmp_path):
    pre_commit = ROOT / "build" / "venv-ci" / "bin" / "pre-commit"
    if not pre_commit.exists():
        pytest.skip("no pre-commit here: scripts/ci_tools.sh makes build/venv-ci")
    environment = {**clean_environment(), "PRE_COMMIT_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path),
                   "GIT_CONFIG_GLOBAL": str(tmp_path / "gitconfig"), "PIP_NO_INDEX": "1"}  # fmt: skip
    environment["PATH"] = f"{build_dir() / 'src' / 'cli'}{os.pathsep}{environment['PATH']}"
    (tmp_path / "gitconfig").write_text("[user]\nname = a\nemail = a@b\n")

    def run(*words, cwd):
        return subprocess.run(list(map(str, words)), cwd=cwd, env=environment, capture_output=True, text=True, timeout=120)

    hooks, tree = tmp_path / "hooks", tmp_path / "tree"
    for folder in (hooks, tree):
        folder.mkdir()
        run("git", "init", "-q", cwd=folder)
    shutil.copy(ROOT / ".pre-commit-hooks.yaml", hooks)
    assert run(pre_commit, "validate-manifest", ".pre-commit-hooks.yaml", cwd=hooks).returncode == 0
    run("git", "add", ".", cwd=hooks)
    run("git", "commit", "-qm", "hooks", cwd=hooks)
    revision = run("git", "rev-parse", "HEAD", cwd=hooks).stdout.strip()
    (tree / ".pre-commit-config.yaml").write_text(f"repos:\n- repo: {hooks}\n  rev: {revision}\n  hooks: [{{id: opguard-check-stripped}}]\n")
    (tree / "model.py").write_text(PROBED)
    (tree / "notes.txt").write_text(PROBED)  # no Python
    assert run(pre_commit, "install", cwd=tree).returncode == 0
    run("git", "add", ".", cwd=tree)
    refused = run("git", "commit", "-qm", "probes", cwd=tree)
    told = refused.stdout + refused.stderr
    assert refused.returncode == 1 and "model.py:6:12: error: a probe: model.gelu:q7k2" in told and "notes.txt" not in told, told
    (tree / "model.py").write_text(CLEAN)
    run("git", "add", ".", cwd=tree)
    taken = run("git", "commit", "-qm", "none", cwd=tree)
    assert taken.returncode == 0, taken.stdout + taken.stderr
