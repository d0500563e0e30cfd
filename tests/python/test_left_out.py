"""Which files of a tree are no source: --exclude, what git ignores, builds and code of others."""
import json
import re
import shutil
import subprocess

import pytest


def traced(opguard, tree, *words, command=("python", "train.py")):
    """The files in which a traced plan has boundaries, and what was said."""
    plan = tree.parent / "plan.json"
    plan.unlink(missing_ok=True)
    done = opguard("preflight", "-o", plan, "--tree", tree, *words, "--", *command)
    assert done.returncode == 0, done.stderr
    return {b["file"] for b in json.loads(plan.read_text())["boundaries"]}, done.stderr


@pytest.fixture
def parts(tmp_path):
    """A program whose operators stand in its own file and in files below five folders."""
    tree = tmp_path / "parts"
    names = ("third_party.kernels", "build.made", "legacy.old", "scratch.tried", "src.own")
    for name in names:
        path = tree / (name.replace(".", "/") + ".py")
        path.parent.mkdir(parents=True)
        path.write_text("def act(x):\n    return x * 2\n")
    calls = "".join(f"    x = {name}.act(x)\n" for name in names)
    (tree / "train.py").write_text("import torch\n" + "".join(f"import {name}\n" for name in names) +
                                   f"def main(x):\n{calls}    return x.sum()\nmain(torch.ones(3))\n")
    return tree


def test_of_a_traced_program_what_others_made_is_no_source(opguard, parts):
    files, said = traced(opguard, parts)
    assert files == {"train.py", "legacy/old.py", "scratch/tried.py", "src/own.py"}
    assert "opguard: 2 files left out as built or of others (build/, third_party/); --include NAME takes them in" in said
    # Its operators are the caller's: the calls are boundaries, as those of a package are.
    plan = json.loads((parts.parent / "plan.json").read_text())
    callees = {b["callee"] for b in plan["boundaries"] if b["file"] == "train.py"}
    assert {"third_party.kernels.act", "build.made.act"} <= callees and "src.own.act" not in callees
    files, said = traced(opguard, parts, "--include", "third_party/", "--exclude", "legacy", "--extend-exclude", "src/o*.py")
    assert files == {"train.py", "third_party/kernels.py", "scratch/tried.py"}
    assert "2 files left out by --exclude" in said and "1 file left out as built or of others (build/)" in said
    assert "note: --exclude nothing matches no file" in traced(opguard, parts, "--exclude", "nothing")[1]


def test_of_a_traced_program_what_git_keeps_is_source_and_what_it_ignores_is_not(opguard, parts):
    (parts / ".gitignore").write_text("scratch/\n")
    for words in (["init", "-q"], ["add", "train.py", "src", "build", "legacy"]):
        subprocess.run(["git", "-C", str(parts), *words], check=True, capture_output=True)
    files, said = traced(opguard, parts)
    assert files == {"train.py", "legacy/old.py", "build/made.py", "src/own.py"}
    assert "1 file left out, which git ignores (scratch/); --include NAME takes them in" in said
    # A file that is not added yet is the user's work all the same.
    (parts / "legacy" / "new.py").write_text("def more(x):\n    return x + 1\n")
    (parts / "train.py").write_text((parts / "train.py").read_text() + "import legacy.new\nlegacy.new.more(torch.ones(2))\n")
    assert "legacy/new.py" in traced(opguard, parts)[0]


def test_a_folder_that_the_command_names_is_source(opguard, parts):
    (parts / "build" / "start.py").write_text("import sys\nsys.path.insert(0, '.')\nimport train\n")
    files, _ = traced(opguard, parts, command=("python", "build/start.py"))
    assert "build/made.py" in files and "third_party/kernels.py" not in files
    files, _ = traced(opguard, parts, command=("python", "-m", "build.start"))
    assert "build/made.py" in files


@pytest.mark.parametrize("name", ["build", "site-packages", "third_party"])
def test_a_tree_in_a_folder_of_such_a_name_is_source(opguard, parts, name):
    tree = parts.parent / name / "project"
    tree.mkdir(parents=True)
    (tree / "train.py").write_text("import torch\nprint(torch.ones(3) * 2)\n")
    files, said = traced(opguard, tree)
    assert files == {"train.py"} and "left out" not in said
    # A tree that has nothing else is source as a whole.
    (tree / "vendor").mkdir()
    (tree / "train.py").rename(tree / "vendor" / "train.py")
    files, said = traced(opguard, tree, command=("sh", "-c", "cd vendor; exec python train.py"))
    assert files == {"vendor/train.py"} and "left out" not in said


def test_a_side_leaves_out_what_the_other_does(opguard, parts, tmp_path):
    """One git keeps build/, in the other nothing is kept: both have the same boundaries."""
    other = tmp_path / "other"
    shutil.copytree(parts, other)
    for words in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", "-C", str(other), *words], check=True, capture_output=True)
    done = opguard("diff", parts, other, "--no-prove", "--", "python", "train.py")
    assert done.returncode == 0 and "2 files left out as built or of others" in done.stderr, done.stdout + done.stderr
    assert done.stderr.count("left out") == 1
    # Vendored code that differs shows at the call that leads there.
    (other / "third_party" / "kernels.py").write_text("def act(x):\n    return x * 3\n")
    done = opguard("diff", parts, other, "--no-prove", "--", "python", "train.py")
    assert done.returncode == 1 and "third_party.kernels.act(x)" in done.stdout, done.stdout
    done = opguard("diff", parts, other, "--no-prove", "--include", "third_party", "--", "python", "train.py")
    assert "third_party/kernels.py:2" in done.stdout, done.stdout


def test_instrument_of_a_traced_program_leaves_out_too(opguard, parts):
    done = opguard("instrument", parts, "--exclude", "legacy", "--", "python", "train.py")
    assert done.returncode == 0, done.stderr
    assert set(re.findall(r"^\+\+\+ b/(.*)$", done.stdout, re.M)) == {"train.py", "scratch/tried.py", "src/own.py"}
    done = opguard("instrument", parts, "--all-sites", "--include", "build")
    assert set(re.findall(r"^\+\+\+ b/(.*)$", done.stdout, re.M)) == {
        "train.py", "scratch/tried.py", "src/own.py", "legacy/old.py", "build/made.py"}
