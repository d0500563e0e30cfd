"""Shared by the Python tests: where the build is, and running the commands of the tool.

OPGUARD_BUILD names another build folder than build/release.
"""
import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import sizes

ROOT = Path(__file__).resolve().parents[2]


def pytest_addoption(parser):
    sizes.add_options(parser)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    sizes.deselect(config, items)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    before = sizes.seconds_so_far()
    yield
    sizes.note(item.config, item, sizes.seconds_so_far() - before)


def build_dir():
    return Path(os.environ.get("OPGUARD_BUILD", ROOT / "build" / "release")).resolve()


def binary(name):
    """The program `name` in the build folder, or None."""
    for folder in ("src/cli", "bin", "."):
        path = build_dir() / folder / name
        if path.is_file():
            return path
    return None


def clean_environment():
    """The caller's environment without our variables; `python` and `torchrun` are this interpreter's."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("OPGUARD_")}
    env["PATH"] = os.path.dirname(sys.executable) + os.pathsep + env["PATH"]
    env["OMP_NUM_THREADS"] = "1"
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # users' machines do not have it
    if os.environ.get("OPGUARD_TEST_DEVICE"):  # every tensor is read by the example plugin: docs/design/device-runtime.md
        env["OPGUARD_DEVICE_PLUGIN"] = str(build_dir() / "tests" / "device" / "opguard_example_values.so")
    return env


def static_plan(opguard, tree, folder):
    """The plan of every operator site of a tree, in `folder`."""
    path = folder / "plan.json"
    assert opguard("plan", "--static", tree, "-o", path).returncode == 0
    return path


def tree_digest(root):
    """One digest over the names and bytes of everything below `root`, byte code caches among it."""
    total = hashlib.sha256()
    for path in sorted(Path(root).rglob("*")):
        total.update(f"{path.relative_to(root)}\0{path.is_dir()}\0".encode())
        if path.is_file():
            total.update(path.read_bytes())
    return total.hexdigest()


def until(condition, seconds=40):
    """Waits until it holds; False if it does not within so many seconds."""
    for _ in range(int(seconds / 0.05)):
        if condition():
            return True
        time.sleep(0.05)
    return False


def runs(pid):
    """A process that was killed may stay in the table until its parent has asked for it."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


@pytest.fixture(scope="session")
def opguard():
    """opguard(*args, program="opguard", cwd=, env=, timeout=) -> CompletedProcess with text in stdout and stderr."""
    if binary("opguard") is None:
        pytest.fail(f"no opguard in {build_dir()}: build it first (scripts/setup.sh), or set OPGUARD_BUILD")

    def run(*args, program="opguard", cwd=None, env=None, timeout=900):
        return subprocess.run([str(binary(program)), *map(str, args)], cwd=cwd,
                              env={**clean_environment(), **(env or {})}, capture_output=True, text=True, timeout=timeout)

    return run


@pytest.fixture(scope="session")
def minitrain():
    """The good tree of the example program; never written to."""
    return ROOT / "examples" / "minitrain"


@pytest.fixture
def edited(minitrain, tmp_path):
    """edited(file, old, new, ...) -> a copy of minitrain in which each `old`, found once, became `new`."""

    def make(*edits, name="edited"):
        out = tmp_path / name
        shutil.copytree(minitrain, out, ignore=shutil.ignore_patterns("__pycache__"))
        for file, old, new in edits:
            text = (out / file).read_text()
            assert text.count(old) == 1, f"{file}: {old!r} occurs {text.count(old)} times"
            (out / file).write_text(text.replace(old, new))
        return out

    return make


@pytest.fixture(scope="session")
def shared_cases():
    """../shared/cases, where this checkout has it."""
    path = ROOT.parent / "shared" / "cases"
    if not (path / "INDEX.md").is_file():
        pytest.skip("the shared cases are not beside this checkout")
    return path
