"""opguard-instrument in trees that nobody wrote with it in mind: nothing outside the tree is written, nothing of the tree runs, bytes stay."""
import json
import os
import subprocess
import sys

import pytest

from conftest import binary, clean_environment, tree_digest, static_plan

CODE = "import torch\n\n\ndef f(x):\n    return torch.softmax(x, -1)\n"


def git(tree, *words, text=True, **options):
    words = ["git", "-c", "user.name=T", "-c", "user.email=t@example.org", *words]
    return subprocess.run(words, cwd=tree, check=True, capture_output=True, text=text, **options).stdout


@pytest.fixture
def instrument(opguard):
    return lambda *words, **options: opguard(*words, program="opguard-instrument", **options)


def diff_of(tree):
    """What the tool prints, byte for byte: a diff has the encodings of its files."""
    done = subprocess.run([str(binary("opguard-instrument")), str(tree), "--all-sites"], capture_output=True, env=clean_environment())
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def repo(tmp_path):
    """A committed tree of one file, below a folder that can be watched."""
    tree = tmp_path / "around" / "repo"
    tree.mkdir(parents=True)
    (tree / "model.py").write_text(CODE)
    git(tree, "init", "-q", "-b", "main")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "first")
    return tree


@pytest.fixture
def plan(opguard, repo, tmp_path):
    return static_plan(opguard, repo, tmp_path)


def rewrite(plan, change):
    document = json.loads(plan.read_text())
    for boundary in document["boundaries"]:
        change(boundary)
    plan.write_text(json.dumps(document))


@pytest.mark.parametrize(
    "name", ["../victim.py", "/VICTIM", ".git/hooks/x.py", "model.py\0.py", "mod\nel.py", "link.py", "folder/victim.py", "", ".", "a/" * 3000]
)
def test_a_plans_file_names_lead_nowhere(instrument, repo, plan, name):
    victim = repo.parent / "victim.py"
    victim.write_text(CODE)
    (repo / ".git" / "hooks" / "x.py").write_text(CODE)
    (repo / "link.py").symlink_to(victim)
    (repo / "folder").symlink_to(repo.parent)
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "links")
    rewrite(plan, lambda b: b.update(file=str(victim) if name == "/VICTIM" else name, scope="f"))
    (repo / "model.py").write_text("x = 1\n")
    git(repo, "commit", "-qam", "gone")
    before = tree_digest(repo.parent)
    for mode in (["--apply"], ["--branch", "b"], []):
        done = instrument(repo, "--plan", plan, *mode)
        assert done.returncode in (0, 2), done.stderr
        assert "victim.py" not in done.stdout and ".git/" not in done.stdout
        digest = tree_digest(repo.parent / "victim.py"), victim.read_text(), (repo / ".git" / "hooks" / "x.py").read_text()
        assert digest[1:] == (CODE, CODE)
    git(repo, "status")
    assert not git(repo, "branch", "--list", "b") and before == tree_digest(repo.parent)


@pytest.mark.parametrize("identifier", ['a", __import__("os").system("touch canary")) #', "a\nb", "a\\", "\x00", "\x1b[2J", ""])
def test_an_id_cannot_leave_its_quotes(instrument, repo, plan, identifier):
    rewrite(plan, lambda b: b.update(id=identifier))
    before = tree_digest(repo)
    done = instrument(repo, "--plan", plan, "--apply")
    assert done.returncode == 2 and "\x1b" not in done.stderr
    assert tree_digest(repo) == before


def test_nothing_of_a_repository_runs(instrument, repo, plan, tmp_path):
    """Hooks, fsmonitor, filters, textconv, an external diff, and modules that Python would find in its working directory."""
    canary = tmp_path / "canary"
    script = tmp_path / "canary.sh"
    script.write_text(f'#!/bin/sh\necho "$0 $*" >> {canary}\ncat\n')
    script.chmod(0o755)
    hooks = repo / ".git" / "hooks"
    for hook in ("post-checkout", "reference-transaction", "pre-commit", "commit-msg", "post-commit", "post-index-change", "prepare-commit-msg"):
        (hooks / hook).symlink_to(script)
    names = ["json", "sys", "types", "os", "re", "encodings", "site", "sitecustomize", "usercustomize", "importlib", "opguard", "torch", "pathlib"]
    for name in names:
        (repo / f"{name}.py").write_text(f"open({str(canary)!r}, 'a').write('{name}')\n")
    (repo / "canary.pth").write_text(f"import os; open({str(canary)!r}, 'a').write('pth')\n")
    (repo / ".gitattributes").write_text("*.py filter=canary diff=canary\n")
    git(repo, "-c", "core.hooksPath=/dev/null", "add", "-A")
    git(repo, "-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "canaries")
    for key, value in {"core.fsmonitor": script, "filter.canary.clean": script, "filter.canary.smudge": script, "filter.canary.process": script,
                       "diff.canary.textconv": script, "diff.external": script, "diff.canary.command": script, "core.pager": script,
                       "core.editor": script, "gpg.program": script, "commit.gpgSign": "true", "core.sshCommand": script}.items():  # fmt: skip
        git(repo, "config", key, str(value))
    document = json.loads(plan.read_text())
    for packages in ([], ["pytest"]):
        plan.write_text(json.dumps({**document, "packages": packages}))
        for mode in ([], ["--check"], ["--branch", f"b{len(packages)}"], ["--apply"], ["--strip", "--apply"]):
            words = mode if "--strip" in mode else ["--plan", plan, *mode]
            done = instrument(repo, *words, "--python", sys.executable, cwd=repo)
            assert done.returncode == 0, done.stderr
            assert not canary.exists(), (mode, packages, canary.read_text())


def test_links_stay_links(instrument, repo):
    outside = repo.parent / "outside.py"
    outside.write_text(CODE)
    (repo / "away.py").symlink_to(outside)
    (repo / "here.py").symlink_to("model.py")
    (repo / "nowhere.py").symlink_to("gone.py")
    (repo / "loop.py").symlink_to("loop.py")
    os.mkfifo(repo / "pipe.py")
    done = instrument(repo, "--all-sites", "--apply")
    assert done.returncode == 0 and "away.py" in done.stderr
    assert outside.read_text() == CODE and "og(" in (repo / "model.py").read_text()
    assert {p.name for p in repo.iterdir() if p.is_symlink()} == {"away.py", "here.py", "nowhere.py", "loop.py"}


UNUSUAL = {
    "a b.py": b"y = x.f(1)\n",
    "tab\there.py": b"y = x.f(1)\n",
    "line\nbreak.py": b"y = x.f(1)\n",
    'quo"te\\.py': b"y = x.f(1)\n",
    "\u00fcml\u00e4ut \U0001f600.py": b"y = x.f(1)\n",
    "d d/\u00fc.py": b"y = x.f(1)\n",
    "-n.py": b"y = x.f(1)\n",
    "crlf.py": b"import x\r\n\r\ny = x.f(1)\r\n",
    "cr.py": b"import x\ry = x.f(1)\r",
    "mixed.py": b"import x\r\nif x:\n\ty = x.f(1)\r\n",
    "tabs.py": b"if x:\n\ty = x.f(1)\n\n\tz = x.g(y,\n\t\t2)\n",
    "bom.py": b"\xef\xbb\xbfy = x.f(1)\n",
    "bom_crlf.py": b"\xef\xbb\xbf# -*- coding: utf-8 -*-\r\ny = x.f(1)\r\n",
    "latin.py": b"# -*- coding: latin-1 -*-\nname = '\xe9'\ny = x.f(name, '\xff')\n",
    "latin_second.py": b"#!/usr/bin/python\n# vim: set fileencoding=iso-8859-15 :\n\ny = x.f('\xa4')\n",
    "form_feed.py": b"import x\n\x0c\ny = x.f(1)\n\x0c\n",
    "open_end.py": b"import x\ny = x.f(1)",
    "open_comment.py": b"y = x.f(1)  # last",
    "blanks.py": b"y = x.f(1)   \n\n\n   \n",
    "continued.py": b"y = \\\n    x.f(1)\n",
    "empty.py": b"",
    "only_comment.py": b"# nothing",
}


@pytest.fixture
def unusual(tmp_path):
    tree = tmp_path / "unusual tree"
    for name, data in UNUSUAL.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (tree / "run.py").write_bytes(b"#!/usr/bin/python\ny = x.f(1)\n")
    (tree / "run.py").chmod(0o755)
    git(tree, "init", "-q", "-b", "main")
    git(tree, "config", "core.autocrlf", "false")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "first")
    return tree


def test_unusual_files_keep_every_byte(instrument, unusual):
    before = {p: (p.read_bytes(), p.stat().st_mode) for p in unusual.rglob("*.py")}
    diff = diff_of(unusual)
    assert instrument(unusual, "--all-sites", "--apply").returncode == 0
    changed = {p.relative_to(unusual).as_posix() for p, (data, mode) in before.items() if p.read_bytes() != data}
    assert changed == {*UNUSUAL, "run.py"} - {"empty.py", "only_comment.py"}
    assert git(unusual, "diff", "--full-index", text=False) == diff
    assert all(p.stat().st_mode == mode for p, (data, mode) in before.items())
    for path, (data, _) in before.items():
        compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    assert diff_of(unusual) == b""
    assert instrument(unusual, "--strip", "--apply").returncode == 0
    assert {p: (p.read_bytes(), p.stat().st_mode) for p in unusual.rglob("*.py")} == before
    assert git(unusual, "status", "--porcelain") == ""
    # What the diff says is what git makes of it.
    git(unusual, "apply", "-", input=diff, text=False)
    assert git(unusual, "diff", "--full-index", text=False) == diff


def test_a_branch_of_unusual_files_is_their_diff(instrument, unusual):
    diff = diff_of(unusual)
    digest = tree_digest(unusual), git(unusual, "rev-parse", "HEAD"), git(unusual, "status", "--porcelain")
    assert instrument(unusual, "--all-sites", "--branch", "with/probes").returncode == 0
    assert git(unusual, "diff", "--full-index", "main", "with/probes", text=False) == diff
    assert git(unusual, "rev-parse", "HEAD") == digest[1] and git(unusual, "status", "--porcelain") == digest[2]
    assert git(unusual, "rev-parse", "with/probes^") == digest[1]


@pytest.mark.parametrize("branch", ["", "-b", "a b", "../x", "x..y", "HEAD", "refs/heads/x.lock", "a\nb", "main"])
def test_branch_names_that_are_none(instrument, repo, branch):
    before = tree_digest(repo)
    assert instrument(repo, "--all-sites", f"--branch={branch}").returncode == 2
    assert (repo / "model.py").read_text() == CODE and git(repo, "for-each-ref", "--format=%(refname)") == "refs/heads/main\n"
    assert before == tree_digest(repo) or branch != "main"
