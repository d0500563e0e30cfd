"""opguard killed with SIGKILL, which nobody can catch: what it ran does not run on, and what it made for itself is gone."""
import os
import signal
import subprocess
import sys
import time

import pytest
from conftest import binary, clean_environment, runs, until

# Says who it is, starts a child of its own, and trains for ever.
TRAINS = """
import os, subprocess, sys, time
import torch
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
with open({pids!r}, "w") as file:
    file.write(f"{{os.getpid()}} {{child.pid}}\\n")
w = torch.ones(3, requires_grad=True)
while True:
    (w * 2).sum().backward()
    time.sleep(0.01)
"""


@pytest.fixture
def started(tmp_path):
    """started(*ARGUMENTS) -> opguard at work on a program that never ends, the pids of that program, and the folder for temporary files."""
    processes = []

    def start(*arguments):
        tree, temporary, pids = tmp_path / "tree", tmp_path / "temporary", tmp_path / "pids"
        tree.mkdir()
        temporary.mkdir()
        (tree / "train.py").write_text(TRAINS.format(pids=str(pids)))
        subprocess.run(["git", "init", "-q", str(tree)], check=True)
        env = {**clean_environment(), "TMPDIR": str(temporary)}
        tool = subprocess.Popen([str(binary("opguard")), *arguments, "--", sys.executable, "train.py"], cwd=tree, env=env, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)  # fmt: skip
        processes.append(tool)
        assert until(lambda: pids.exists() and pids.read_text().endswith("\n")), tool.communicate(timeout=5)
        return tool, [int(pid) for pid in pids.read_text().split()], temporary

    yield start
    for tool in processes:
        if tool.poll() is None:
            os.killpg(tool.pid, signal.SIGKILL)


def commands(tmp_path):
    return {"diff": ("diff", "."), "preflight": ("preflight", "-o", str(tmp_path / "plan.json")), "noise": ("noise", ".")}


@pytest.mark.parametrize("command", ["diff", "preflight", "noise"])
def test_nothing_of_a_killed_opguard_stays(started, tmp_path, command):
    tool, pids, temporary = started(*commands(tmp_path)[command])
    assert list(temporary.glob("opguard-*"))
    os.kill(tool.pid, signal.SIGKILL)
    assert until(lambda: not any(runs(pid) for pid in pids)), [pid for pid in pids if runs(pid)]
    assert until(lambda: not list(temporary.iterdir())), list(temporary.iterdir())
    # Whoever waits for the end of its output gets it.
    tool.communicate(timeout=20)


def test_the_whole_group_killed(started, tmp_path):
    tool, pids, temporary = started(*commands(tmp_path)["preflight"])
    os.killpg(tool.pid, signal.SIGKILL)
    assert until(lambda: not any(runs(pid) for pid in pids))
    assert until(lambda: not list(temporary.iterdir()))


def test_a_folder_that_the_user_keeps_stays(started, tmp_path):
    kept = tmp_path / "kept"
    tool, pids, _ = started("preflight", "-o", str(tmp_path / "plan.json"), "--work", str(kept))
    os.kill(tool.pid, signal.SIGKILL)
    assert until(lambda: not any(runs(pid) for pid in pids))
    assert list(kept.iterdir())


def test_a_recorded_program_of_the_users_own_goes_on(started, tmp_path):
    tool, pids, _ = started("run", "--log", str(tmp_path / "log"))
    os.kill(tool.pid, signal.SIGKILL)
    time.sleep(1)
    try:
        assert all(runs(pid) for pid in pids)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
