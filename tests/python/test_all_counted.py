"""made = written + lost: operators with more nodes or tensors than one event holds, and a disk that does not keep up."""

import re
import shutil
import subprocess
import sys

import pytest

from conftest import build_dir, clean_environment
from runtime_log import PROLOGUE, logs_in

pytest.importorskip("torch")

TENSORS = 4096  # of one event: docs/formats/record-format.md


def run(body, log, **environment):
    program = PROLOGUE.format(package=str(build_dir() / "python")) + body
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300,
                          env={**clean_environment(), "OPGUARD_LOG": str(log), **environment})  # fmt: skip
    assert done.returncode == 0, done.stderr
    (found,) = logs_in(log)
    assert found.closed and "opguard_faults" not in found.settings
    return done, found


def records(log):
    return sum(max(1, len(e.slots)) for e in log.events)


def test_every_node_of_a_site_is_recorded_however_many(tmp_path):
    body = """
import torch
w = torch.nn.Parameter(torch.ones(2))
def deep(x):
    for _ in range(6000): x = x * 1.0
    return x
og("deep", deep)(w).sum().backward()
"""
    done, log = run(body, tmp_path)
    assert len(log.of("deep", "node")) == 6000 and log.lost == 0
    assert "opguard: " not in done.stderr


def test_tensors_beyond_what_an_event_holds_are_counted(tmp_path):
    # 5,000 inputs of an operator, 5,000 gradients of its node, 5,000 roots of a backward pass.
    body = """
import torch
parts = [torch.ones(1, requires_grad=True) for _ in range(5000)]
whole = og("stack", torch.stack)(parts)
whole.sum().backward()
og("roots", torch.autograd.backward)([p * 2 for p in parts])
"""
    done, log = run(body, tmp_path)
    beyond = 5000 - TENSORS
    (stack,) = log.of("stack")
    (node,) = log.of("stack", "node")
    assert len(stack.names("in")) == len(node.names("out")) == TENSORS
    losses = [e for e in log.events if e.kind == "loss"]
    assert [len(e.slots) for e in losses] == [1, TENSORS]
    (roots,) = log.of("roots")
    # The call `roots` reads its 5,000 as an operator's inputs too.
    assert len(roots.names("in")) == TENSORS
    assert log.lost == 4 * beyond
    lost, made = map(int, re.search(r"opguard: (\d+) of (\d+) records were lost\n", done.stderr).groups())
    assert lost == log.lost and made == records(log) + lost


def test_tensors_behind_all_that_is_looked_at_are_counted(tmp_path):
    # Of a container as long as this one not every item is described; its tensors are counted all the same.
    body = """
import torch
og("many", len)([0] * 70000 + [torch.ones(1)] * 10)
"""
    done, log = run(body, tmp_path)
    assert log.lost + len(log.of("many")[0].slots) == 10


def test_tensors_of_a_deep_nest_are_recorded_or_counted(tmp_path):
    body = """
import torch
from dataclasses import dataclass

@dataclass
class Box:
    inner: object

def nest(depth, value):
    for i in range(depth): value = ([value], (value,), {"k": value}, Box(value))[i % 4]
    return value

og("deep", len)([nest(40, torch.ones(2))])
og("deeper", len)([nest(63, torch.ones(2))])
og("deepest", len)([nest(64, torch.ones(2)), torch.ones(1)])
itself = [torch.ones(3)]
itself.append(itself)
og("itself", len)(itself)
og("key", len)({(((torch.ones(1),),),): 1})
"""
    done, log = run(body, tmp_path)
    counts = {name: len(log.of(name)[0].slots) for name in ("deep", "deeper", "deepest", "itself", "key")}
    assert counts == {"deep": 1, "deeper": 1, "deepest": 1, "itself": 1, "key": 0}
    assert log.lost == 1


# Writing to a log waits for as long as the file of the variable HOLD is there.
HOLD = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>
typedef ssize_t (*Write)(int, const void*, size_t, off_t);
static ssize_t held(const char* name, int fd, const void* bytes, size_t size, off_t at) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t n = readlink(link, path, sizeof path - 1);
  path[n > 0 ? n : 0] = 0;
  const char* hold = getenv("HOLD");
  while (hold && strstr(path, ".log.incomplete") && access(hold, F_OK) == 0) usleep(10000);
  return ((Write)dlsym(RTLD_NEXT, name))(fd, bytes, size, at);
}
ssize_t pwrite(int fd, const void* bytes, size_t size, off_t at) { return held("pwrite", fd, bytes, size, at); }
ssize_t pwrite64(int fd, const void* bytes, size_t size, off_t at) { return held("pwrite64", fd, bytes, size, at); }
"""

# The log is open; then the disk takes nothing until memory is full, goes on, and there is some more to record.
BUSY = """
import os, time, torch
x, parts = torch.ones(2), [torch.ones(1) for _ in range(1000)]
og("early", torch.relu)(x)
time.sleep(2)
open(os.environ["HOLD"], "w").close()
for i in range(1000):
    og("many", len)(parts)
os.unlink(os.environ["HOLD"])
time.sleep(3)
for i in range(5):
    og("late", torch.relu)(x)
"""


def test_what_a_full_queue_drops_is_counted(tmp_path):
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    source, library, hold = tmp_path / "hold.c", tmp_path / "hold.so", tmp_path / "hold"
    source.write_text(HOLD)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    done, log = run(BUSY, tmp_path / "log", LD_PRELOAD=str(library), HOLD=str(hold))
    made = 1000 * 1000 + 6 * 2
    kept = len(log.of("many"))
    assert 0 < kept < 1000 and len(log.of("late")) == 5
    states = sum(max(1, len(e.slots)) for e in log.events if e.kind == "state")
    assert log.lost == (1000 - kept) * 1000 and records(log) + log.lost == made + states
    lost, told = map(int, re.search(r"opguard: (\d+) of (\d+) records were lost\n", done.stderr).groups())
    assert (lost, told) == (log.lost, made + states)
