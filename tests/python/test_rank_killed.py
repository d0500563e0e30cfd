"""One rank of two killed with SIGKILL in the middle of a run: both logs are read, and it is said which rank was killed and how far they are certified."""
import json
import os
import signal
import subprocess
import sys

import pytest

from conftest import build_dir, clean_environment
from distributed import RANK
from runtime_log import PROLOGUE, Log

pytest.importorskip("torch.distributed")

# Six steps of two ranks; `fatal`: the rank that is killed in its fourth, when what it made until then is on the disk.
STEPS = """
import signal, time
fatal, factor = %r
torch.manual_seed(3)
w = torch.nn.Parameter(torch.randn(6, 6))
optimizer = torch.optim.SGD([w], lr=.1)
x = torch.randn(4, 6) + rank
for i in range(6):
    y = og("model.weigh", torch.mul)(og("model.product", torch.matmul)(x, w), factor if i == 1 and rank == 0 else 1.0)
    loss = og("model.mean", torch.mean)(og("model.square", torch.square)(y))
    og("train.backward", loss.backward)()
    if i == 3 and rank == fatal:
        time.sleep(3)
        os.kill(os.getpid(), signal.SIGKILL)
    og("train.reduce", dist.all_reduce)(w.grad)
    og("train.step", optimizer.step)()
    optimizer.zero_grad()
dist.destroy_process_group()
"""


def run(folder, fatal=None, factor=1.0):
    """Both ranks' exit codes."""
    folder.mkdir()
    program = PROLOGUE.format(package=str(build_dir() / "python")) + RANK + STEPS % ((fatal, factor),)
    running = []
    for rank in range(2):
        env = {**clean_environment(), "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank), "OPGUARD_LOG": str(folder / "log"),
               "MEETING": str(folder / "meeting"), "GLOO_SOCKET_IFNAME": "lo"}  # fmt: skip
        running.append(subprocess.Popen([sys.executable, "-W", "ignore", "-c", program], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    try:
        return [p.wait(timeout=120) for p in running]
    finally:
        for p in running:
            p.kill()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks") / "whole"
    assert run(folder) == [0, 0]
    return folder / "log"


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """(rank that was killed, folder of logs), a pair for each rank."""
    made = {}
    for rank in range(2):
        folder = tmp_path_factory.mktemp("ranks") / "run"
        codes = run(folder, rank)
        # The other one meets a peer that is gone.
        assert codes[rank] == -signal.SIGKILL and codes[1 - rank] not in (0, -signal.SIGKILL)
        made[rank] = folder / "log"
    return made


def align(opguard, a, b, out):
    done = opguard("align", a, b, "--no-prove", "--json", out, "--color", "never")
    return done.returncode, done.stdout + done.stderr, json.loads(out.read_text())


@pytest.mark.parametrize("rank", [0, 1])
def test_both_logs_are_read(opguard, killed, rank):
    names = sorted(os.listdir(killed[rank]))
    assert [n for n in names if n.startswith("rank%d-" % rank)][0].endswith(".log.incomplete")
    assert [n for n in names if n.startswith("rank%d-" % (1 - rank))][0].endswith(".log")
    # What was on the disk when it was killed: three whole steps and the fourth's backward pass.
    log = Log(next(killed[rank].glob("rank%d-*.log*" % rank)))
    assert len(log.of("train.backward")) == 4 and len(log.of("train.step")) == 3
    done = opguard("dump", killed[rank], "--limit", "1")
    assert done.returncode == 2, done.stderr
    heads = [line for line in done.stdout.splitlines() if line.startswith("log rank")]
    assert len(heads) == 2 and "not closed" in heads[rank] and heads[1 - rank].endswith(", closed"), heads


@pytest.mark.parametrize("rank", [0, 1])
def test_align_says_which_rank_was_killed_and_how_far_it_is_certified(opguard, whole, killed, tmp_path, rank):
    code, text, answer = align(opguard, whole, killed[rank], tmp_path / "answer.json")
    # Until then every value is equal: no operator is to blame, and nothing is called identical.
    assert code == 2 and answer["verdict"] == "inconclusive" and answer["pivot"] is None and answer["origin_ranks"] == []
    assert answer["why"].startswith("what both logs hold agrees, but the log of b is not whole: rank %d, " % rank)
    cut = [note for note in answer["notes"] if "without having been closed" in note]
    assert len(cut) == 1 and cut[0].startswith("b, rank %d (" % rank)
    # Three steps of both ranks and the fourth's backward pass.
    assert answer["certified_prefix"] > 3 * 2 * 5 and "certified equal, up to step 3, " in text


def test_what_parted_before_it_is_named_all_the_same(opguard, killed, tmp_path):
    assert run(tmp_path / "other", 1, 1.5)[1] == -signal.SIGKILL
    code, text, answer = align(opguard, killed[1], tmp_path / "other" / "log", tmp_path / "answer.json")
    assert code == 1 and answer["verdict"] == "diverged"
    assert answer["pivot"]["boundary"] == "model.weigh" and answer["pivot"]["step"] == 1 and answer["origin_ranks"] == [0]
