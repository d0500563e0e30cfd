"""The rank of programs that start their ranks by themselves, and messages whose sender nobody names."""

import json
import sys

import pytest

from conftest import build_dir
from distributed import collectives
from runtime_log import Log, run_program

pytest.importorskip("torch.distributed")

# Two ranks by fork, and no variable says which is which. In the second run the parent is rank 1.
RANKS = """
import os, signal, sys, time
pid = os.fork()
rank = {parent} if pid else 1 - {parent}
import torch, torch.distributed as dist
x = torch.arange(4.) + rank
y = og("train.mul:aaaa", torch.mul)(x, 2)
dist.init_process_group("gloo", init_method="file://" + {store!r}, rank=rank, world_size=2)
{body}
if pid: os.wait()
"""
MESSAGES = """
for i in range(2):
    if rank == 0:
        og("site.send:bbbb", dist.send)(x + i, 1); dist.send(x * 3, 1, tag=7); dist.recv(x)
    else:
        og("site.recv:bbbb", dist.recv)(x); dist.recv(y, tag=7); dist.send(x, 0)
dist.barrier()
dist.destroy_process_group()
"""


def run(folder, body, parent=0):
    source = RANKS.format(parent=parent, store=str(folder / "store"), body=body)
    folder.mkdir()
    run_program(source, folder / "log", env={"GLOO_SOCKET_IFNAME": "lo"})
    return folder / "log"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    return [run(folder / name, MESSAGES, parent) for parent, name in enumerate("ab")]


def test_the_log_tells_the_rank_after_the_group_is_gone(runs, opguard):
    sys.path.insert(0, str(build_dir() / "python"))
    try:
        from opguard import read_log
    finally:
        sys.path.pop(0)
    log = read_log(runs[0])
    assert [(p.rank, p.world, p.settings["rank"]) for p in log.processes] == [(0, 2, "0"), (1, 2, "1")]
    pytest.importorskip("numpy")
    assert sorted(set(log.events["rank"].tolist())) == [0, 1]
    dumped = opguard("dump", runs[0], "--format", "json", "--events", "--rank", "1").stdout.splitlines()[1:]
    assert {json.loads(line)["rank"] for line in dumped} == {1} and len(dumped) == log.processes[1].events
    assert "log rank 1 of 2" in opguard("dump", runs[0]).stdout


def test_ranks_are_paired_by_it(runs, opguard):
    found = opguard("align", *runs)
    assert found.returncode == 0 and found.stdout.startswith("identical: "), found.stdout + found.stderr
    assert "rank 0: 9 pairs" in found.stdout and "rank 1: 9 pairs" in found.stdout


def test_one_that_is_killed_has_told_it(tmp_path):
    log = run(tmp_path / "run", """
if not pid:
    time.sleep(1)
    os.kill(os.getpid(), signal.SIGKILL)
""")
    (killed,) = log.glob("*.log.incomplete")
    assert Log(killed).settings["rank"] == "1"


def test_a_message_from_any_source_has_its_channel_and_number(runs):
    logs = [Log(path) for path in runs[0].glob("*.log")]
    for log in logs:
        log.rank = int(log.settings["rank"])
    first, second = sorted(logs, key=lambda log: log.rank)
    channels = lambda log: sorted((e.group, e.sequence) for e in collectives(log) if ">" in e.group)
    wanted = [(f"0-1:{channel}", n) for channel in ("0>1", "0>1/7", "1>0") for n in (1, 2)]
    assert channels(first) == channels(second) == wanted
    sent = {(e.group, e.sequence): next(s.value for s in e.slots if s.kind == "in") for e in collectives(first) if "0>1" in e.group}
    got = {(e.group, e.sequence): next(s.value for s in e.slots if s.kind != "in") for e in collectives(second) if "0>1" in e.group}
    assert sent == got and len(sent) == 4
