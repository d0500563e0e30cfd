"""Programs on several ranks: bare, recorded on all, or recorded on some of them."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from conftest import build_dir, clean_environment
from runtime_log import COLLECTIVE, PROLOGUE, Log

# `say(...)` writes a line of this rank's answer; the ranks meet at a file, so that no port is taken.
RANK = """
import os, sys, torch, torch.distributed as dist
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
def say(*values):
    with open(os.environ["ANSWER"], "a") as out:
        print(*values, file=out)
dist.init_process_group("gloo", init_method="file://" + os.environ["MEETING"], rank=rank, world_size=world)
"""
# Bare torch 2.13 ends about one in ten FSDP programs with "terminate called without an active exception" when a rank
# destroys its group while the other still holds work of it: the ranks drop theirs and meet before, by no collective.
END = """
import gc, time
gc.collect()
store = dist.distributed_c10d._get_default_store()
store.add("ended", 1)
while store.add("ended", 0) < world:
    time.sleep(.01)
dist.destroy_process_group()
"""


def run_ranks(source, world, folder=None, recording=None, python=sys.executable, env=None):
    """Every rank's answer: a list of lines. With a folder the ranks `recording` (all) write their logs there."""
    program = PROLOGUE.format(package=str(build_dir() / "python")) + RANK + source + END
    with tempfile.TemporaryDirectory() as scratch:
        answers = [Path(scratch) / f"answer{r}" for r in range(world)]
        running = []
        for r in range(world):
            given = {**clean_environment(), **(env or {}), "RANK": str(r), "WORLD_SIZE": str(world), "LOCAL_RANK": str(r),
                   "ANSWER": str(answers[r]), "MEETING": str(Path(scratch) / "meeting"), "GLOO_SOCKET_IFNAME": "lo"}  # fmt: skip
            if folder is not None and (recording is None or r in recording):
                given["OPGUARD_LOG"] = str(folder)
            running.append(subprocess.Popen([python, "-W", "ignore", "-c", program], env=given, text=True, cwd=scratch,
                                            stdout=subprocess.PIPE, stderr=subprocess.PIPE))  # fmt: skip
        try:
            ended = [p.communicate(timeout=120) for p in running]
        finally:
            for p in running:
                p.kill()
        assert [p.returncode for p in running] == [0] * world, "\n".join(err for _, err in ended)
        assert not any("opguard: " in err for _, err in ended), ended
        return [a.read_text().splitlines() if a.exists() else [] for a in answers]


def rank_logs(folder, world):
    logs = sorted((Log(p) for p in Path(folder).glob("*.log")), key=lambda log: log.rank)
    assert [log.rank for log in logs] == list(range(world))
    assert all(log.closed and log.lost == 0 and "opguard_faults" not in log.settings for log in logs)
    return logs


def record_ranks(source, world, folder):
    """Runs it bare and recorded, expects the same answers, and gives the logs by rank."""
    assert run_ranks(source, world) == run_ranks(source, world, folder)
    return rank_logs(folder, world)


def collectives(log, group=None):
    """Those that have a number, without the completions of those that a site launched."""
    return [e for e in log.events if e.flags & COLLECTIVE and e.sequence and e.forward is None
            and (group is None or e.group == group)]  # fmt: skip


def assert_matched(logs):
    """Every rank has made the same collectives under the same numbers, each number once."""
    seen = []
    for log in logs:
        found = {}
        for e in collectives(log):
            if ">" in e.group:
                continue  # a message
            assert (e.group, e.sequence) not in found, e
            found[e.group, e.sequence] = e.boundary
        seen.append(found)
    groups = {key[0] for found in seen for key in found}
    for group in groups:
        parts = [{k: v for k, v in found.items() if k[0] == group} for found in seen]
        members = [p for p in parts if p]
        assert all(p == members[0] for p in members), members
    return groups
