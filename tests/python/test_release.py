"""`make release` refuses what must not be released, before it compiles anything."""
import shutil
import subprocess

import pytest

from conftest import ROOT


@pytest.fixture
def tree(tmp_path):
    """A small checkout of version 1.2.3, tagged and with its section in the changelog."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "release.sh", tmp_path / "scripts")
    (tmp_path / "CMakeLists.txt").write_text("project(opguard VERSION 1.2.3 LANGUAGES C CXX)\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.3 - 2026-11-30\nFirst.\n")
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    git(tmp_path, "tag", "v1.2.3")
    return tmp_path


def git(tree, *arguments):
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments], cwd=tree, check=True, capture_output=True)


def commit(tree):
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "a commit")


def release(tree, *arguments):
    done = subprocess.run([tree / "scripts" / "release.sh", *arguments], capture_output=True, text=True,
                          env={"PATH": "/usr/bin:/bin", "OPGUARD_RELEASE_CHECK_ONLY": "1"})
    return done.returncode, (done.stdout + done.stderr).strip()


def test_a_tagged_clean_tree_passes(tree):
    assert release(tree) == (0, "release: v1.2.3 can be made")


def test_a_change_that_is_not_committed(tree):
    (tree / "new.txt").write_text("")
    assert release(tree) == (1, "release: error: the tree is not clean: ?? new.txt")


def test_no_tag(tree):
    git(tree, "tag", "-d", "v1.2.3")
    assert release(tree) == (1, "release: error: no tag on this commit: git tag v1.2.3")


def test_another_version(tree):
    assert release(tree, "--tag", "v1.2.4") == (1, "release: error: the tag is v1.2.4, and CMakeLists.txt says 1.2.3")


@pytest.mark.parametrize("text, said", [
    ("## 1.2.2 - 2026-11-01\n", "CHANGELOG.md has no section '## 1.2.3'"),
    ("## 1.2.3 - unreleased\n", "CHANGELOG.md still says '## 1.2.3 - unreleased'"),
])
def test_the_changelog(tree, text, said):
    (tree / "CHANGELOG.md").write_text(text)
    commit(tree)
    assert release(tree, "--tag", "v1.2.3") == (1, "release: error: " + said)
