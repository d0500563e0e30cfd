"""`opguard replay`: of several ranks the one whose hardware flipped a bit is named, by the job's log and a checkpoint."""
import json

import pytest

pytest.importorskip("torch")

# FLIP=STEP: a bit of rank 1's gradient flips in that step, before it is averaged.
TRAIN = """
import os
import sys
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
ddp = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.AdamW(ddp.parameters(), lr=1e-2)
start = 0
if len(sys.argv) > 1:
    state = torch.load(sys.argv[1])
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    start = 2


def flip(gradient):
    gradient.view(torch.int32)[3, 5].bitwise_xor_(1 << 20)
    return gradient


for step in range(start, 5):
    x = torch.randn(8, 16, generator=torch.Generator().manual_seed(step * 10 + rank))
    hook = model[0].weight.register_hook(flip) if os.environ.get("FLIP") == str(step) and rank == 1 else None
    optimizer.zero_grad()
    ddp(x).square().mean().backward()
    optimizer.step()
    if hook:
        hook.remove()
    if step == 1 and rank == 0 and start == 0:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "state.pt")
dist.destroy_process_group()
"""
RANKS = ["--", "torchrun", "--nproc-per-node", "2", "train.py"]


@pytest.fixture(scope="module")
def job(opguard, tmp_path_factory):
    """A folder with train.py and the log of a job in which rank 1 went wrong in step 3; recorded without probes."""
    folder = tmp_path_factory.mktemp("job")
    (folder / "train.py").write_text(TRAIN)
    done = opguard("run", "--mode", "sdc", "--log", "log", *RANKS, cwd=folder, env={"FLIP": "3"})
    assert done.returncode == 0, done.stderr
    return folder


def test_the_rank_is_named(opguard, job):
    done = opguard("replay", "log", "--first-step", 2, "--work", "again", "--json", "result.json", *RANKS, "state.pt", cwd=job)
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.startswith("differs: 1 rank computed otherwise, in steps 2 to 4\n")
    result = json.loads((job / "result.json").read_text())
    assert [rank["role"] for rank in result["ranks"]] == ["received", "origin"]
    assert (result["ranks"][1]["step"], result["ranks"][1]["tensor"]) == (3, "grad:0.weight")
    assert "rank 1 on " in done.stdout and "did not compute what its replay computes: step 3, grad:0.weight" in done.stdout
    # A second replay agrees with the first: the fault does not come again.
    again = opguard("replay", "again/replay", "--replayed", "again/replay", cwd=job)
    assert again.returncode == 0 and again.stdout.startswith("same: every rank"), again.stdout


def test_another_checkpoint_is_no_fault_of_a_rank(opguard, job):
    done = opguard("replay", "log", "--first-step", 2, *RANKS, cwd=job)  # without the checkpoint
    assert done.returncode == 1
    assert "every rank does from step 2 on; that is another version, machine or checkpoint" in done.stdout


def test_what_cannot_be_compared_is_said(opguard, job):
    assert "give the program after --, or --replayed DIR" in opguard("replay", "log", cwd=job).stderr
    assert "none" in opguard("replay", "none", "--replayed", "log", cwd=job).stderr
    failed = opguard("replay", "log", "--", "python", "-c", "raise SystemExit(3)", cwd=job)
    assert failed.returncode == 2 and "the replay ended with exit code 3" in failed.stderr
