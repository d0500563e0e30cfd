"""Several threads train in one process, and the package lies in the program's own tree."""

import shutil
import subprocess
import sys

import pytest
from conftest import build_dir, clean_environment
from runtime_log import logs_in
from test_training_observations import observe, rows

TRAINING = """
import threading, torch, torch.nn as nn
torch.set_num_threads(1)
def with_optimizer(net):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(50):
        optimizer.zero_grad()
        net(torch.ones(5, 6)).sum().backward()
        optimizer.step()
def by_hand(net):
    for _ in range(100):
        for p in net.parameters(): p.grad = None
        net(torch.ones(5, 6)).sum().backward()
        with torch.no_grad():
            for p in net.parameters(): p -= 0.1 * p.grad
for _ in range(4):
    nets = [nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 2)) for _ in range(4)]
    works = [with_optimizer, by_hand if BY_HAND else with_optimizer, with_optimizer, by_hand]
    threads = [threading.Thread(target=work, args=(net,)) for work, net in zip(works, nets)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
"""


@pytest.mark.parametrize("by_hand, steps", [(False, 600), (True, 400)])
def test_gradients_that_another_threads_backward_writes_are_left_alone(tmp_path, by_hand, steps):
    """A look at one ended most runs of this program with a segmentation fault."""
    log = observe(TRAINING.replace("BY_HAND", str(by_hand)), tmp_path)
    assert "opguard_faults" not in log.settings
    found = rows(log, "optimizer", "held", "changed", "gradient_norm")
    assert len(found) == steps and {tuple(row[:2]) for row in found} == {(4, 4)}
    assert all(row[2] > 0 for row in found)
    # Each was cleared by its own thread: no backward pass found a used gradient.
    assert {row[0] for row in rows(log, "api", "result", name="backward")} == {0.0}


def test_our_own_frames_are_nobodys_place(tmp_path):
    """The package lies beside the program's main script."""
    shutil.copytree(build_dir() / "python", tmp_path / "package")
    (tmp_path / "train.py").write_text(
        "import torch\nnet = torch.nn.Linear(2, 2).train()\nnet(torch.ones(1, 2)).sum().backward()\n"
        "torch.optim.SGD(net.parameters(), 0.1).step()\n"
    )
    environment = {
        **clean_environment(), "PYTHONPATH": str(tmp_path / "package" / "opguard" / "boot"), "OPGUARD_TREE": str(tmp_path),
        "OPGUARD_LOG": str(tmp_path / "log"), "OPGUARD_MODE": "model", "OPGUARD_OBSERVATIONS": "1",
    }  # fmt: skip
    subprocess.run([sys.executable, "train.py"], cwd=tmp_path, env=environment, check=True, timeout=300)
    (log,) = logs_in(tmp_path / "log")
    places = [o.row["place"] for o in log.observations if o.row.get("place")]
    assert {place.partition(":")[0] for place in places} == {str(tmp_path / "train.py")} and len(places) > 4
