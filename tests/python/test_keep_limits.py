"""The end of each log alone stays: `run --keep 20GB,6h`, docs/guide/longjobs.md."""

import json
import sys

import pytest

import runtime_log

pytest.importorskip("torch")

STEPS = 240

# 160 operators a step, some 20 kB of log.
PROGRAM = """
import torch
torch.manual_seed(0)
weight = torch.nn.Parameter(torch.ones(8))
optimizer = torch.optim.SGD([weight], lr=0.01)
for step in range(STEPS):
    h = weight * 1.0
    for i in range(160):
        h = og("train.mul:aaaa", h) * (1.01 if step == CHANGED and i == 80 else 1.0)
    loss = og("train.sum:bbbb", h.sum)()
    optimizer.zero_grad()
    og("train.backward:cccc", loss.backward)()
    og("train.step:dddd", optimizer.step)()
"""


def run(opguard, folder, changed, *words):
    source = PROGRAM.replace("STEPS", str(STEPS)).replace("CHANGED", str(changed))
    program = folder.with_suffix(".py")
    program.write_text(runtime_log.PROLOGUE.format(package=str(runtime_log.build_dir() / "python")) + source)
    return opguard("run", "--log", folder, *words, "--", sys.executable, program)


@pytest.fixture(scope="module")
def kept(opguard, tmp_path_factory):
    """{step at which the program is another one, or -1: its log, of which 1 MB of events is kept}"""
    base = tmp_path_factory.mktemp("kept")
    logs = {}
    for name, changed in [("first", -1), ("same", -1), ("late", STEPS - 2), ("early", 5)]:
        logs[name] = base / name
        ran = run(opguard, logs[name], changed, "--keep", "1MB")
        assert ran.returncode == 0, ran.stderr
        assert " begins behind step " in ran.stderr and "records missing" not in ran.stderr, ran.stderr
    return logs


def test_the_end_alone_is_there(kept):
    (log,) = runtime_log.logs_in(kept["first"])
    segments = sorted(kept["first"].glob("*.segment"))
    assert log.closed and log.lost == 0 and log.removed > 2 and log.settings["steps.keep"] == "1MB"
    assert sum(s.stat().st_size for s in segments) <= 1_000_000
    assert len(segments) == len(log.segments) - log.removed > 3
    # A segment is of whole steps, and nothing is missing behind the first that was kept.
    assert all(a[5] + 1 == b[4] for a, b in zip(log.segments, log.segments[1:]))
    first = log.segments[log.removed][4]
    assert log.events[0].step == first
    # A call that began in the step before ends behind its optimizer's step.
    assert [e.boundary for e in log.events if e.step < first] in ([], ["train.step:dddd"])
    assert all(e.begin <= e.index for e in log.events)


def test_equal_runs_are_identical(opguard, kept):
    report = kept["first"].with_suffix(".json")
    ran = opguard("align", kept["first"], kept["same"], "--json", report)
    assert ran.returncode == 0 and "identical" in ran.stdout, ran.stdout + ran.stderr
    removed = json.loads(report.read_text())["removed_records"]
    assert removed["a"] == removed["b"] > 1000
    assert "equal by the steps' digests" in ran.stdout


def test_what_was_kept_is_told_operator_by_operator(opguard, kept):
    ran = opguard("align", kept["first"], kept["late"], "--no-prove")
    assert ran.returncode == 1 and "diverged" in ran.stdout, ran.stdout + ran.stderr
    assert f"step {STEPS - 2}" in ran.stdout and "train.mul" in ran.stdout


def test_of_what_was_removed_the_step_and_its_first_operator_are_told(opguard, kept, tmp_path):
    ran = opguard("align", kept["first"], kept["early"], "--json", tmp_path / "v.json")
    assert ran.returncode == 2 and "inconclusive" in ran.stdout, ran.stdout + ran.stderr
    assert "the steps' digests differ from step 5 on" in ran.stdout and "run --keep" in ran.stdout
    assert "there first at " in ran.stdout and " of micro-batch 0, rank 0: " in ran.stdout
    assert "pivot" not in ran.stdout
    parted = json.loads((tmp_path / "v.json").read_text())["parted_step"]
    assert parted["step"] == 5 and parted["kept_from"] > 5 and parted["rank"] == 0
    assert (parted["boundary"], parted["phase"], parted["micro_batch"]) == ("train.mul:aaaa", "forward", 0)
    # The 80 that come behind it, and what reads what they left.
    assert 80 <= parted["differing"] < parted["parts"] <= 340


def test_a_lost_segment_is_told(opguard, kept, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in kept["first"].iterdir():
        if file.is_file():
            (copy / file.name).write_bytes(file.read_bytes())
    sorted(copy.glob("*.segment"))[-2].unlink()
    ran = opguard("align", kept["first"], copy, "--read", "all")
    assert ran.returncode == 2 and "inconclusive" in ran.stdout, ran.stdout + ran.stderr
    dumped = opguard("dump", copy)
    assert "the segment is not there" in dumped.stdout + dumped.stderr


@pytest.mark.parametrize(
    "words, told",
    [
        (["--keep", "500"], "--keep: not a size or a time, as 20GB or 6h or 20GB,6h is: 500"),
        (["--keep", "1GB,2GB"], "not a size or a time"),
        (["--keep", "0h"], "not a size or a time"),
        (["--keep", "1GB,"], "not a size or a time"),
        (["--keep", "1h", "--mode", "sketch"], "not with --mode sketch"),
        (["--keep", "1h", "--ring", "3"], "--ring excludes --keep"),
    ],
)
def test_other_limits_are_refused_before_the_program_runs(opguard, tmp_path, words, told):
    ran = run(opguard, tmp_path / "log", -1, *words)
    assert ran.returncode == 2 and told in ran.stderr, ran.stderr
    assert not list(tmp_path.glob("log/*"))
