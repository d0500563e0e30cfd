"""`instrument --comments`: the diff says what its probes record, the program is the same to Python, and all comes out again."""
import ast
import shutil
import subprocess
import sys

import pytest

from conftest import clean_environment, tree_digest

torch = pytest.importorskip("torch")
TOOL = "opguard-instrument"
PROGRAM = """import torch

x = torch.ones(2)
y = x + torch.nn.functional.relu(
    x * 2,  # twice
)
print(f"{y.sum():.1f}", \\
      y[0].item())
"""
EXPECTED = """from opguard import og  # opguard: probes, comments, isort: skip
# opguard: og("<id>", x) stands in for x: it records what the one operator that
# opguard: is applied to it takes and returns, and changes nothing.
import torch

# opguard: records torch.ones(2)
x = og("s1", torch.ones)(2)
# opguard: records torch.nn, torch.nn.functional, torch.nn.functional.relu(...)
# opguard: records x + torch.nn.functional.relu(...)
y = og("s6", x) + og("s5", og("s3", og("s2", torch).nn).functional.relu)(
    # opguard: records x * 2
    og("s4", x) * 2,  # twice
)
# opguard: records y.sum(), the text of y.sum(), y[0], .item(), print(...)
og("s11", print)(f"{og('s8', og('s7', y.sum)()):.1f}", \\
      og("s10", og("s9", y)[0].item)())
"""


@pytest.fixture
def tree(tmp_path):
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "train.py").write_text(PROGRAM)
    return folder


def test_the_diff_explains_each_hunk(opguard, tree):
    done = opguard(tree, "--all-sites", "--comments", "--apply", program=TOOL)
    assert done.returncode == 0, done.stderr
    assert (tree / "train.py").read_text() == EXPECTED
    ran = subprocess.run([sys.executable, "train.py"], cwd=tree, env=clean_environment(), capture_output=True, text=True)
    assert ran.stderr == "" or "opguard" in ran.stderr


def test_git_and_strip_take_it_out_to_the_byte(opguard, tree):
    subprocess.run(["git", "init", "-q"], cwd=tree, check=True)
    plain = tree_digest(tree)
    diff = opguard(tree, "--all-sites", "--comments", program=TOOL).stdout
    subprocess.run(["git", "apply", "-"], cwd=tree, input=diff, text=True, check=True)
    assert (tree / "train.py").read_text() == EXPECTED
    assert opguard(tree, "--all-sites", "--comments", program=TOOL).stdout == ""
    less = opguard(tree, "--all-sites", program=TOOL).stdout
    assert "-# opguard: records torch.ones(2)" in less and "+# opguard: records" not in less
    assert opguard(tree, "--strip", "--apply", program=TOOL).returncode == 0
    assert tree_digest(tree) == plain


@pytest.mark.parametrize("other", [["--strip"], ["--verify"]])
def test_nothing_is_explained_where_no_diff_is_written(opguard, tree, other):
    done = opguard(tree, "--comments", *other, program=TOOL)
    assert done.returncode == 2 and "--comments" in done.stderr


def without_comments(path):
    return ast.dump(ast.parse(path.read_bytes()))


def test_no_comment_changes_what_python_reads_in_torch(opguard, tmp_path):
    """Torch's own files have every layout there is: each still compiles to the same program, and is restored."""
    source = shutil.copytree(f"{torch.__path__[0]}/nn", tmp_path / "with", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(f"{torch.__path__[0]}/_inductor/codegen", source / "codegen", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(source, tmp_path / "without")
    plain = tree_digest(source)
    for folder, option in (("with", ["--comments"]), ("without", [])):
        done = opguard(tmp_path / folder, "--all-sites", *option, "--apply", program=TOOL, timeout=600)
        assert done.returncode == 0, done.stderr
    files = sorted(source.rglob("*.py"))
    explained = 0
    for path in files:
        assert without_comments(path) == without_comments(tmp_path / "without" / path.relative_to(source)), path
        explained += path.read_text().count("# opguard: records ")
    assert len(files) > 100 and explained > 10_000
    assert opguard(source, "--strip", "--apply", program=TOOL, timeout=600).returncode == 0
    assert tree_digest(source) == plain
