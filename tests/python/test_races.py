"""Programs whose threads work at once: what they compute is unharmed, and each event holds what belongs together."""

import collections
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT, clean_environment
from runtime_log import logs_in, record

pytest.importorskip("torch")


def test_backward_passes_over_one_leaf_at_once(tmp_path):
    """While one thread stands between a gradient's two hooks another passes there: one event was lost, the other mixed."""
    log = record(
        r"""
import sys, threading, torch
from opguard import og
leaf, passes = torch.ones(4, requires_grad=True), 50
both = threading.Barrier(2)
# A hook of the program's on the node itself stands between ours: both threads are in it at once.
node = (leaf * 1).grad_fn.next_functions[0][0]
def meet(_):
    try: both.wait(5)
    except threading.BrokenBarrierError: pass
def work(k):
    for _ in range(passes):
        (og("mul%d" % k, torch.mul)(leaf, float(k))).sum().backward()
handle = None
first = og("first", torch.mul)(leaf, 1.0).sum()
handle = node.register_prehook(meet)
threads = [threading.Thread(target=work, args=(k,)) for k in (1, 2)]
[t.start() for t in threads]; [t.join() for t in threads]
handle.remove()
print(leaf.grad.tolist())
""",
        tmp_path,
    )
    added = [e for e in log.events if e.kind == "accumulate"]
    assert len(added) == 100
    for event in added:
        assert [s.name.split(":")[0] for s in event.slots if s.kind == "in"][0] == "grad0"
        assert [s.kind for s in event.slots].count("out") == 1, event
    assert sorted(collections.Counter(e.thread for e in added).values()) == [50, 50]


@pytest.mark.parametrize("mode", ["full", "default"])
def test_threads_under_any_switch_interval(opguard, tmp_path, mode):
    tree = tmp_path / "tree"
    shutil.copytree(ROOT / "tests" / "fixtures" / "races", tree, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "stress.py", "1", "40"]
    bare = subprocess.run(command, cwd=tree, env=clean_environment(), capture_output=True, text=True, timeout=300)
    assert bare.returncode == 0 and bare.stdout.count("\n") == 5, bare.stderr
    assert opguard(tree, "--all-sites", "--apply", program="opguard-instrument").returncode == 0
    probed = opguard("run", "--mode", mode, "--log", tmp_path / "log", "--", *command, cwd=tree)
    assert (probed.returncode, probed.stdout) == (0, bare.stdout), probed.stderr
    (log,) = logs_in(tmp_path / "log")
    assert log.closed and log.lost == 0 and "opguard_faults" not in log.settings
    assert {e.thread for e in log.events} >= {1, 2, 3, 4}
