"""A run that was killed, or failed: the other is compared up to there, and what differs before is the pivot.

A log that ends is a true beginning of what there was to record. Its end is nobody's doing.
"""

import json
import os

import pytest

pytest.importorskip("torch")

TRAIN = """
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(12)), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for step in range(12):
    optimizer.zero_grad()
    for micro in range(6):
        loss = model(torch.randn(4, 8)).square().mean() * 30
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()
"""


@pytest.fixture(scope="module")
def recorded(opguard, tmp_path_factory):
    """The logs of the program above and of one whose clip moved into the loop."""
    work = tmp_path_factory.mktemp("ended")
    for name, indent in (("a", 4), ("b", 8)):
        (work / name).mkdir()
        (work / name / "train.py").write_text(TRAIN.replace("    torch.nn.utils", " " * indent + "torch.nn.utils"))
    done = opguard("diff", work / "a", work / "b", "--no-prove", "--work", work / "w", "--", "python", "train.py")
    assert done.returncode == 1, done.stderr
    return work / "w/run_a/log", work / "w/run_b/log"


@pytest.mark.parametrize("side", "ab")
def test_a_cut_is_no_pivot(opguard, recorded, tmp_path, side):
    cuts = set()
    for part in (0.2, 0.35, 0.5, 0.65, 0.8, 0.95):
        logs = list(recorded)
        source = recorded["ab".index(side)]
        logs["ab".index(side)] = cut = tmp_path / ("cut%s" % part)
        cut.mkdir()
        for file in source.iterdir():
            text = file.read_bytes()
            (cut / file.name).write_bytes(text[: int(len(text) * part)] if file.suffix == ".log" else text)
        done = opguard("align", *logs, "--json", tmp_path / "o.json")
        report = json.loads((tmp_path / "o.json").read_text())
        if report["pairs"] < 200:  # before anything differs
            assert report["pivot"] is None, done.stdout
            continue
        cuts.add(report["pairs"])
        assert done.returncode == 2 and report["verdict"] == "inconclusive", done.stdout
        assert "is not whole" in done.stdout
        assert "clip_grad_norm_" in report["pivot"]["b"]["operator"], done.stdout
        whole = "b" if side == "a" else "a"
        assert f"of run {whole} lie behind the end of the other run's log" in done.stdout
        assert "seed differs" not in done.stdout and "not set in" not in done.stdout
    assert len(cuts) >= 2


CRASH = """
import torch
torch.manual_seed(0)
embedding = torch.nn.Embedding(10, 4)
head = torch.nn.Linear(4, 10)
optimizer = torch.optim.SGD([*embedding.parameters(), *head.parameters()], lr=0.1)
for step in range(3):
    x = torch.randint(0, 10, (2, 6))
    y = x.clone()
    y[:, :2] = -100
    loss = torch.nn.functional.cross_entropy(head(embedding(x)).view(-1, 10), y.view(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_what_came_before_a_crash(opguard, tmp_path):
    for name, text in (("a", CRASH), ("b", CRASH.replace("x.clone()", "x"))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_text(text)
    done = opguard("diff", tmp_path / "a", tmp_path / "b", "--json", tmp_path / "o.json", "--", "python", "train.py")
    report = json.loads((tmp_path / "o.json").read_text())
    assert done.returncode == 2 and done.stdout.startswith("inconclusive: run b ended with exit code 1"), done.stdout
    # The write that reached the ids in b alone; the clone that kept them in a is the line before.
    lines = {candidate[side]["line"] for candidate in [report["pivot"], *report["candidates"]] for side in "ab" if candidate[side]}
    assert lines & {9, 10}, done.stdout


def test_an_early_end_of_equal_runs_has_no_pivot(opguard, recorded, tmp_path):
    cut = tmp_path / "cut"
    cut.mkdir()
    for file in recorded[0].iterdir():
        text = file.read_bytes()
        (cut / file.name).write_bytes(text[: int(len(text) * 0.7)] if file.suffix == ".log" else text)
    done = opguard("align", recorded[0], cut, "--json", tmp_path / "o.json")
    report = json.loads((tmp_path / "o.json").read_text())
    assert done.returncode == 2 and "what both logs hold agrees" in done.stdout
    assert report["pivot"] is None and report["certified_prefix"] > 0
