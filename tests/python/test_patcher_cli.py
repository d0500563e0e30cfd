"""opguard-instrument as a user meets it: diff, --apply, --branch, --strip, and what it refuses."""
import subprocess

import pytest

from conftest import binary, build_dir, clean_environment, tree_digest

PROGRAM = "import torch\n\nx = torch.ones(2)\nx += x * 2\n"


@pytest.fixture
def instrument():
    program = binary("opguard-instrument")
    if program is None:
        pytest.fail(f"no opguard-instrument in {build_dir()}: build it first (scripts/setup.sh), or set OPGUARD_BUILD")

    def run(*args):
        return subprocess.run([str(program), *map(str, args)], capture_output=True, text=True, env=clean_environment(),
                              timeout=120)

    return run


def git(tree, *args, **kwargs):
    done = subprocess.run(["git", "-c", "user.name=T", "-c", "user.email=t@example.org", *args], cwd=tree, check=True,
                          capture_output=True, text=True, **kwargs)
    return done.stdout


@pytest.fixture
def repo(tmp_path):
    tree = tmp_path / "repo"
    (tree / "pkg").mkdir(parents=True)
    (tree / "train.py").write_text(PROGRAM)
    (tree / "pkg" / "layer.py").write_text("def f(x):\n    return -x\n")
    git(tree, "init", "-q", "-b", "main")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "first")
    return tree


def test_git_apply_takes_the_diff_and_its_reverse(instrument, repo):
    diff = instrument(repo, "--all-sites")
    assert diff.returncode == 0, diff.stderr
    git(repo, "apply", "-", input=diff.stdout)
    assert 'x = og.name("s4", x).iadd(og("s3", x) * 2)' in (repo / "train.py").read_text()
    assert instrument(repo, "--all-sites").stdout == ""
    git(repo, "apply", "-", input=instrument(repo, "--strip").stdout)
    assert git(repo, "status", "--porcelain") == ""


def test_the_diff_of_a_folder_of_a_repository_applies_there(instrument, repo):
    git(repo / "pkg", "apply", "-", input=instrument(repo / "pkg", "--all-sites").stdout)
    assert "og(" in (repo / "pkg" / "layer.py").read_text()


def test_apply_and_strip_write_what_the_diff_says(instrument, repo):
    diff = instrument(repo, "--all-sites").stdout
    assert instrument(repo, "--all-sites", "--apply").returncode == 0
    assert git(repo, "diff", "--full-index") == diff
    assert instrument(repo, "--strip", "--apply").returncode == 0
    assert git(repo, "status", "--porcelain") == ""


def test_a_branch_leaves_the_work_tree_alone(instrument, repo):
    diff = instrument(repo, "--all-sites").stdout
    before = tree_digest(repo / "pkg"), (repo / "train.py").read_text()
    done = instrument(repo, "--all-sites", "--branch", "probes")
    assert done.returncode == 0, done.stderr
    assert git(repo, "diff", "--full-index", "main", "probes") == diff
    assert (tree_digest(repo / "pkg"), (repo / "train.py").read_text()) == before
    assert instrument(repo, "--all-sites", "--branch", "probes").returncode == 2


def test_check_writes_nothing(instrument, repo):
    before = tree_digest(repo)
    done = instrument(repo, "--all-sites", "--check")
    assert (done.returncode, done.stdout) == (0, "")
    assert tree_digest(repo) == before


@pytest.mark.parametrize("mode", [["--apply"], ["--branch", "b"], []])
def test_a_file_that_does_not_parse_is_skipped_and_named(instrument, repo, mode):
    expected = instrument(repo, "--all-sites").stdout
    (repo / "broken.py").write_text("x = 1\n\tdef f(é:\n")
    done = instrument(repo, "--all-sites", *mode)
    assert done.returncode == 0, done.stderr
    path = repo / "broken.py"
    assert done.stderr.startswith(f"{path}:2:") and "the file is skipped" in done.stderr and "^" in done.stderr
    assert path.read_text() == "x = 1\n\tdef f(é:\n"
    written = {"--apply": ("diff", "--full-index"), "--branch": ("diff", "--full-index", "main", "b")}.get(mode[0]) if mode else None
    assert (git(repo, *written) if written else done.stdout) == expected


def test_probes_of_a_skipped_file_are_left_and_said(instrument, repo):
    before = git(repo, "diff")
    assert instrument(repo, "--all-sites", "--apply").returncode == 0
    broken = repo / "broken.py"
    broken.write_text('from opguard import og  # opguard: probes\ndef f(x:\n    og("a", x)\n')
    done = instrument(repo, "--strip", "--apply")
    assert done.returncode == 1 and str(broken) in done.stderr and "with the probes in it" in done.stderr
    assert "og(" in broken.read_text() and git(repo, "diff") == before
    # Broken without probes: nothing is left.
    broken.write_text("def f(x:\n")
    assert instrument(repo, "--all-sites", "--apply").returncode == 0
    assert instrument(repo, "--strip", "--apply").returncode == 0


def test_uncommitted_changes_are_not_written_over(instrument, repo):
    (repo / "train.py").write_text(PROGRAM + "x -= 1\n")
    before = tree_digest(repo)
    done = instrument(repo, "--all-sites", "--apply")
    assert done.returncode == 2 and "uncommitted changes" in done.stderr
    assert tree_digest(repo) == before


@pytest.mark.parametrize("words", [["--apply", "--check"], ["--strip", "--all-sites"], ["--apply", "--branch", "b"]])
def test_options_that_contradict_each_other(instrument, repo, words):
    assert instrument(repo, *words).returncode == 2


def test_trees_that_are_none(instrument, tmp_path):
    (tmp_path / "prose").mkdir()
    (tmp_path / "prose" / "a.txt").write_text("no program\n")
    done = instrument(tmp_path / "prose", "--all-sites")
    assert (done.returncode, done.stderr) == (2, f"opguard: error: no Python file in {tmp_path / 'prose'}\n")
    done = instrument(tmp_path / "gone", "--strip")
    assert (done.returncode, done.stderr) == (2, f"opguard: error: no such folder: {tmp_path / 'gone'}\n")
