"""--quiet, --verbose, and the line that tells who waits how far a run is: never in the program's own output."""
import os
import pty
import re
import select
import subprocess

import pytest

from conftest import binary, clean_environment

PROGRAM = """\
import time
import torch

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(40):
    optimizer.zero_grad()
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    time.sleep(0.1)
print("the program's own words")
"""


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "train.py").write_text("import torch\ntorch.manual_seed(0)\n" + PROGRAM)
    return tmp_path / "tree"


def at_a_terminal(*args):
    """(exit code, stdout, what a terminal got as stderr)."""
    reader, writer = pty.openpty()
    process = subprocess.Popen([str(binary("opguard")), *map(str, args)], env=clean_environment(), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=writer, text=True)
    os.close(writer)
    text = b""
    while process.poll() is None or select.select([reader], [], [], 0.2)[0]:
        if select.select([reader], [], [], 0.2)[0]:
            try:
                text += os.read(reader, 65536)
            except OSError:
                break
    return process.wait(), process.stdout.read(), text.decode()


def test_steps_and_time_left(tree):
    code, out, shown = at_a_terminal("diff", tree, tree, "--no-prove", "--", "python", "train.py")
    assert code == 0, out + shown
    for side in "ab":
        assert re.search(rf"\rrun of {side}, step \d+ of 40, \d+ s left", shown), shown
    assert "step 4" not in out and "\r" not in out
    code, out, shown = at_a_terminal("diff", tree, tree, "--no-prove", "-q", "--", "python", "train.py")
    assert code == 0 and out.startswith("identical") and shown == "", shown


def test_quiet_and_verbose(opguard, tree):
    (tree / "train.py").write_text((tree / "train.py").read_text().replace("time.sleep(0.1)", ""))
    words = "the program's own words"
    for options, times in ((["-q"], 0), ([], 2), (["-v"], 4)):
        done = opguard("diff", tree, tree, "--no-prove", *options, "--", "python", "train.py")
        assert done.returncode == 0 and done.stderr.count(words) == times, done.stderr
        assert words not in done.stdout and done.stdout.startswith("identical")
    done = opguard("diff", tree, tree, "-q", "-v", "--", "python", "train.py")
    assert done.returncode == 2 and "excludes" in done.stderr
    # Warnings and errors are never left out.
    (tree / "train.py").write_text("import torch, sys\nsys.exit(7)\n")
    done = opguard("diff", tree, tree, "-q", "--", "python", "train.py")
    assert done.returncode == 2 and "exit code 7" in done.stderr
