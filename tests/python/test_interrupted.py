"""Ctrl-C at every stage: SIGINT to the whole foreground group of a terminal, as a keyboard sends it, while the program runs for the N-th time."""

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
import time

import pytest
from conftest import binary, clean_environment, runs, tree_digest, until

pytest.importorskip("torch")


def at_a_terminal():
    """Standard input is the terminal; SIGINT ends, though whoever runs the tests may ignore it (a job in the background)."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


# The N-th run waits for ever, once it has done its work; the others end.
TRAINS = """
import os, time
import torch
w = torch.nn.Parameter(torch.ones(3))
opt = torch.optim.SGD([w], lr=.1)
for _ in range(2):
    (w * 2).sum().backward()
    opt.step()
with open({starts!r}, "a") as file:
    file.write(f"{{os.getpid()}}\\n")
if len(open({starts!r}).readlines()) == {stage}:
    time.sleep(600)
"""


def ours(temporary):
    """torch leaves a folder of its own there, bare as well."""
    return [path.name for path in temporary.iterdir() if not path.name.startswith("torchinductor")]


def interrupted(tmp_path, arguments, stage):
    """Exit status, what it said, and the program's process numbers; None where it ended before so many runs."""
    tree, temporary, starts = tmp_path / "tree", tmp_path / "temporary", tmp_path / "starts"
    tree.mkdir()
    temporary.mkdir()
    starts.write_text("")
    (tree / "train.py").write_text(TRAINS.format(starts=str(starts), stage=stage))
    subprocess.run(["git", "init", "-q", str(tree)], check=True)
    before = tree_digest(tree)
    keyboard, terminal = pty.openpty()
    said = open(tmp_path / "said", "w+")
    tool = subprocess.Popen([str(binary("opguard")), *arguments, "--", sys.executable, "train.py"], cwd=tree, stdin=terminal, stdout=said, stderr=said,
                            env={**clean_environment(), "TMPDIR": str(temporary)}, start_new_session=True,
                            preexec_fn=at_a_terminal)  # fmt: skip
    os.close(terminal)
    try:
        assert until(lambda: tool.poll() is not None or len(starts.read_text().splitlines()) >= stage, 60)
        if tool.poll() is not None:
            return None
        time.sleep(0.2)
        os.write(keyboard, b"\x03")
        tool.wait(timeout=20)
    finally:
        if tool.poll() is None:
            os.killpg(tool.pid, signal.SIGKILL)
        os.close(keyboard)
    pids = [int(pid) for pid in starts.read_text().split()]
    said.seek(0)
    text = said.read()
    assert until(lambda: not any(runs(pid) for pid in pids), 10), text
    assert until(lambda: not ours(temporary), 10), (ours(temporary), text)
    assert tree_digest(tree) == before
    return tool.returncode, text


@pytest.mark.parametrize("command, stage", [("run", 1), ("diff", 1), ("diff", 2), ("diff", 3), ("diff", 4), ("noise", 1), ("noise", 3), ("preflight", 1)])
def test_nothing_stays_behind_ctrl_c(tmp_path, command, stage):
    arguments = {"run": ("run", "--log", "../log"), "diff": ("diff", "."), "noise": ("noise", "."),
                 "preflight": ("preflight", "-o", "../plan.json")}[command]  # fmt: skip
    ended = interrupted(tmp_path, arguments, stage)
    assert ended is not None, "the program is not run so often"
    status, said = ended
    # As by the signal, or told as an end that is no answer: never "equal" or "different".
    assert status in (-signal.SIGINT, 128 + signal.SIGINT, 2), (status, said)
    assert command == "run" or "stopped by signal 2" in said, said
