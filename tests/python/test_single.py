"""`opguard align --single`: memory overwritten behind torch's version counters, found in one run."""

import json

import pytest

from runtime_log import record

torch = pytest.importorskip("torch")

# `write(k, value)` fills row k of a buffer on another thread, or at once.
HEAD = """
import ctypes, threading
import torch
from torch import nn
ring = torch.empty(3, 64)
memory = ring.numpy()
def fill(row, value): memory[row] = torch.arange(64).numpy() + value
def write(row, value):
    thread = threading.Thread(target=fill, args=(row, value))
    thread.start()
    thread.join()
def take(row): return og("loader.getitem", ring)[row]
"""

# A consumer of what was already read once; one that is the first to read; an operator's own result.
RACES = {
    "in_use": ("model.add", """
write(0, 1)
x = take(0)
y = og("model.mul", x) * 2
write(0, 50)
og("model.add", x) + y
"""),
    "first_reader": ("model.mul", """
for step in range(4):
    write(step % 3, step)
    x = take(step % 3)
    if step == 3: write(0, 50)
    y = og("model.mul", x) * 2
    og("model.add", x) + y
"""),
    "raw_pointer": ("model.add", """
y = og("model.mul", torch.ones(64)) * 2
ctypes.memset(y.data_ptr(), 1, 64)
og("model.add", y) + 1
"""),
}  # fmt: skip

LEGITIMATE = {
    "ring": """
for step in range(7):
    write(step % 3, step)
    x = take(step % 3)
    og("model.add", x) + (og("model.mul", x) * 2)
""",
    "filled_after_it_is_taken": """
for step in range(4):
    x = take(0)
    write(0, step)
    og("model.add", x) + (og("model.mul", x) * 2)
""",
    "static_input": """
x = og("setup.clone", torch.rand(64).clone)()
for step in range(4):
    x.numpy()[:] = step
    og("model.add", x) + (og("model.mul", x) * 2)
""",
    "unprobed_in_place": """
x = og("setup.mul", torch.ones(64)) * 2
for step in range(3):
    og("model.mul", x) * 2
    x.add_(1)
    og("model.add", x) + 1
""",
    "inference_mode": """
og("setup.add", torch.ones(64) + 1) + 1
with torch.inference_mode():
    x = og("setup.mul", torch.ones(64)) * 2
    og("model.mul", x) * 2
    x.add_(1)
    og("model.add", x) + 1
""",
    "parameters_through_data": """
lin = og("setup.linear", nn.Linear)(8, 8)
x = torch.ones(4, 8)
for step in range(3):
    og("model.linear", lin)(x)
    lin.weight.data.mul_(0.5)
    og("model.matmul", x) @ lin.weight
""",
    "running_statistics": """
F = nn.functional
mean, var = og("setup.rand", torch.rand)(8), og("setup.add", torch.rand(8)) + 1
for step in range(3):
    og("model.batch_norm", F.batch_norm)(torch.rand(4, 8), mean, var, training=True)
    og("model.mul", mean) * 2
""",
    "transposed_view": """
x = og("setup.mul", torch.rand(8, 8)) * 2
for step in range(3):
    og("model.mul", x) * 2
    og("model.add", x.t()) + 1
""",
    "data_loader": """
if __name__ == "__main__":
    data = torch.utils.data.TensorDataset(torch.rand(64, 8))
    model = nn.Linear(8, 1)
    optimizer = torch.optim.AdamW(model.parameters())
    for batch, in og("train.iter", torch.utils.data.DataLoader(data, 8, num_workers=2)):
        loss = og("train.mean", og("train.square", og("train.model", model)(batch).square)().mean)()
        og("train.backward", loss.backward)()
        og("train.step", optimizer.step)()
        optimizer.zero_grad()
""",
}


def single(opguard, folder, program):
    log = record(HEAD + program, folder / "log")
    assert any(s.storage for e in log.events for s in e.slots)
    result = opguard("align", "--single", folder / "log", "--json", folder / "out.json")
    assert result.stderr == "", result.stderr
    found = json.loads((folder / "out.json").read_text())
    assert result.returncode == (1 if found["findings"] else 0)
    return found, result.stdout


@pytest.mark.parametrize("race", RACES)
def test_overwritten_memory_is_found(opguard, tmp_path, race):
    consumer, program = RACES[race]
    found, text = single(opguard, tmp_path, program)
    (finding,) = found["findings"]
    assert (finding["check"], finding["kind"], finding["boundary"]) == ("overwritten", "race", consumer)
    assert finding["b"]["boundary"] == consumer and finding["b"]["line"] > finding["a"]["line"] > 0
    producer = "model.mul" if race == "raw_pointer" else "loader.getitem"
    assert finding["producer"]["boundary"] == finding["a"]["boundary"] == producer
    assert finding["window"]["start_ns"] < finding["window"]["end_ns"]
    assert f"finding: race in {consumer}, forward, step 0" in text and "the window: " in text


@pytest.mark.parametrize("program", LEGITIMATE)
def test_memory_written_by_design_is_clean(opguard, tmp_path, program):
    found, _ = single(opguard, tmp_path, LEGITIMATE[program])
    assert found["findings"] == [] and found["reads"] > 0


def test_a_log_that_cannot_show_it_is_no_clean_one(opguard, tmp_path):
    # Mode default does not read again what nobody says was written.
    record(HEAD + next(iter(LEGITIMATE.values())), tmp_path / "log", env={"OPGUARD_MODE": "default"})
    result = opguard("align", "--single", tmp_path / "log", "--json", tmp_path / "out.json")
    assert result.returncode == 2 and json.loads((tmp_path / "out.json").read_text())["verdict"] == "inconclusive"
    assert result.stdout.startswith("inconclusive: ") and "opguard run --mode full" in result.stdout


PERMUTED = 64  # of Slot::flags: docs/formats/record-format.md


def test_views_in_another_order_are_flagged(tmp_path):
    log = record('''
import torch
x = torch.rand(4, 6)
for y in (x, x[1:, 2:], x[0], x[:, :1], x.t(), x.t()[:1], x[:1].expand(4, 6), x.permute(1, 0)[:, None]):
    og("model.add", y) + 1
''', tmp_path)  # fmt: skip
    permuted = [bool(e.get("in", "self").flags & PERMUTED) for e in log.of("model.add")]
    assert permuted == [False] * 4 + [True, False, True, True]


def test_two_runs_of_which_one_races(opguard, tmp_path):
    loop = """
model = nn.Linear(64, 1)
for step in range(3):
    write(step, step)
    x = take(step)
    y = og("model.mul", x) * 2
    if step == {at}: write(step, 50)
    loss = og("model.mean", og("model.linear", model)(og("model.add", x) + y).mean)()
    og("model.backward", loss.backward)()
"""
    for side, at in (("a", -1), ("b", 1)):
        log = record("import torch; torch.manual_seed(0)\n" + HEAD + loop.format(at=at), tmp_path / side)
    assert any(s.storage for e in log.events for s in e.slots)
    result = opguard("align", tmp_path / "a", tmp_path / "b", "--json", tmp_path / "out.json")
    verdict = json.loads((tmp_path / "out.json").read_text())
    assert result.returncode == 1 and verdict["verdict"] == "diverged"
    assert (verdict["pivot"]["boundary"], verdict["pivot"]["kind"]) == ("model.add", "race")
    assert any(n.startswith("run b: memory that loader.getitem at ") for n in verdict["notes"])
