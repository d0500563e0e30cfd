"""A program that is observed does what it does bare: values, random numbers, files, errors, warnings, memory, what its own hooks and modes
see. observed_sections.py has the programs; each section's line is the same in both runs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import build_dir, clean_environment
from runtime_log import logs_in

pytest.importorskip("torch")
PROGRAM = Path(__file__).with_name("observed_sections.py")
SECTIONS = [words.split("(")[0][4:] for at, words in enumerate(PROGRAM.read_text().split("\n")) if words.startswith("def ") and words.endswith("():")]


def run(folder=None):
    environment = clean_environment()
    package = str(build_dir() / "python")
    boot = os.pathsep.join(filter(None, [os.path.join(package, "opguard", "boot"), environment.get("PYTHONPATH")]))
    if folder is not None:
        environment.update(OPGUARD_LOG=str(folder), OPGUARD_OBSERVATIONS="1", OPGUARD_MODE="model", OPGUARD_TREE=str(PROGRAM.parent))
    done = subprocess.run([sys.executable, PROGRAM], env={**environment, "PYTHONPATH": boot}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return dict(line.split(": ", 1) for line in done.stdout.splitlines()), done.stderr


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    folder = tmp_path_factory.mktemp("log")
    return run(), run(folder), logs_in(folder)


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_leaves_the_same(both, name):
    (bare, _), (observed, _), _ = both
    assert observed[name] == bare[name]


def test_nothing_is_said_on_standard_error(both):
    (_, bare), (_, observed), _ = both
    assert observed == bare


def test_no_error_of_ours_was_swallowed(both):
    _, _, logs = both
    assert len(logs) == 2  # the forked child's
    assert all("opguard_faults" not in log.settings and log.closed for log in logs)
    kinds = {o.kind for o in logs[0].observations}
    assert kinds == {
        "api", "batch", "call", "form", "load", "loader", "module", "optimizer", "parameter", "pass", "random", "save", "update",
    }  # fmt: skip
