"""A run held against an earlier one as it goes on: `run --against`, docs/formats/steps.md."""

import json
import re
import shutil
import sys

import pytest

import runtime_log
from runtime_log import record

pytest.importorskip("torch")

PROGRAM = """
import sys, torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = [torch.randn(4, 8) for _ in range(40)]
for step, x in enumerate(data):
    h = og("train.model:cccc", model)(x)
    y = og("train.mul:eeee", h) * (SCALE if step == 17 else 1.0)
    squares = og("train.pow:hhhh", y.pow)(2)
    loss = og("train.mean:dddd", squares.mean)()
    optimizer.zero_grad()
    og("train.backward:ffff", loss.backward)()
    og("train.step:gggg", optimizer.step)()
    print("step", step, "done", flush=True)
"""


def program(scale="1.0"):
    return runtime_log.PROLOGUE.format(package=str(runtime_log.build_dir() / "python")) + PROGRAM.replace("SCALE", scale)


@pytest.fixture(scope="module")
def earlier(tmp_path_factory):
    folder = tmp_path_factory.mktemp("earlier") / "log"
    record(PROGRAM.replace("SCALE", "1.0"), folder)
    return folder


def against(opguard, tmp_path, earlier, source, *words):
    (tmp_path / "train.py").write_text(source)
    return opguard("run", "--log", tmp_path / "log", "--against", earlier, *words, "--", sys.executable, tmp_path / "train.py")


def test_a_log_has_an_index_of_its_steps(earlier):
    (log,), (index,) = earlier.glob("*.log"), earlier.glob("*.steps")
    entries, rest = divmod(index.stat().st_size - 20, 64)
    # 40 steps, what is behind the last, a few stretches of texts, the end.
    assert index.stem == log.stem and rest == 0 and 43 <= entries <= 50


def test_the_same_run_goes_on_to_its_end(opguard, tmp_path, earlier):
    ran = against(opguard, tmp_path, earlier, program())
    assert ran.returncode == 0 and "step 39 done" in ran.stdout, ran.stderr
    assert "identical: " in ran.stdout


def test_it_ends_in_the_step_in_which_it_parts(opguard, tmp_path, earlier):
    ran = against(opguard, tmp_path, earlier, program("2.0"))
    assert ran.returncode == 1, ran.stderr
    assert "step 16 done" in ran.stdout and "step 18 done" not in ran.stdout
    assert "rank 0 parts from the earlier run in step 17" in ran.stderr
    assert "diverged: " in ran.stdout and "train.mul:eeee" in ran.stdout and "step 17" in ran.stdout
    aligned = opguard("align", earlier, tmp_path / "log", "--json", tmp_path / "v.json")
    assert aligned.returncode == 1
    pivot = json.loads((tmp_path / "v.json").read_text())["pivot"]
    assert (pivot["boundary"], pivot["step"]) == ("train.mul:eeee", 17)


def test_it_is_said_and_goes_on(opguard, tmp_path, earlier):
    ran = against(opguard, tmp_path, earlier, program("2.0"), "--on-parting", "report")
    assert ran.returncode == 1 and "step 39 done" in ran.stdout
    assert ran.stderr.count("parts from the earlier run in step 17") == 1


def test_the_program_is_called_once_as_it_parts(opguard, tmp_path, earlier):
    source = program("2.0").replace("for step, x in", """
import opguard
@opguard.when_parted
def dump(step):
    torch.save(model.state_dict(), "parted.pt")
    print("parted in", step, flush=True)
@opguard.when_parted
def wrong(step):
    raise ValueError("of its own")
for step, x in""", 1)
    for words, last in ((), "step 16 done"), (("--on-parting", "report"), "step 39 done"):
        folder = tmp_path / f"run{len(words)}"
        folder.mkdir()
        (folder / "train.py").write_text(source)
        ran = opguard("run", "--log", folder / "log", "--against", earlier, *words, "--", sys.executable, folder / "train.py", cwd=folder)
        assert ran.returncode == 1 and last in ran.stdout, ran.stderr
        assert ran.stdout.count("parted in 17") == 1 and (folder / "parted.pt").exists()
        assert ran.stderr.count("wrong of opguard.when_parted: ValueError: of its own") == 1


def test_what_cannot_be_compared_is_refused_before_the_program_runs(opguard, tmp_path, earlier):
    ran = against(opguard, tmp_path, earlier, program(), "--ring", "2")
    assert ran.returncode == 2 and "--against compares every step: not with --ring" in ran.stderr
    bare = tmp_path / "bare"
    shutil.copytree(earlier, bare)
    for index in bare.glob("*.steps"):
        index.unlink()
    ran = against(opguard, tmp_path, bare, program())
    assert ran.returncode == 2 and ".steps: No such file" in ran.stderr and "step 0" not in ran.stdout
    (tmp_path / "empty").mkdir()
    ran = against(opguard, tmp_path, tmp_path / "empty", program())
    assert ran.returncode == 2 and "holds no log" in ran.stderr


def test_what_differs_is_read_alone(opguard, tmp_path, earlier):
    other = tmp_path / "other"
    record(PROGRAM.replace("SCALE", "2.0"), other)
    texts = {}
    for what in ("all", "differing"):
        ran = opguard("align", earlier, other, "--read", what, "--json", tmp_path / "v.json")
        assert ran.returncode == 1, ran.stderr
        told = json.loads((tmp_path / "v.json").read_text())
        texts[what] = (told["verdict"], told["pivot"]["boundary"], told["pivot"]["occurrence"], told["certified_prefix"])
        assert ("were not read" in ran.stdout) == (what == "differing")
    assert texts["all"] == texts["differing"]


def test_a_run_in_one_number(opguard, tmp_path, earlier):
    for name, scale in (("same", "1.0"), ("other", "2.0")):
        record(PROGRAM.replace("SCALE", scale), tmp_path / name)
    number = re.compile(r"([0-9a-f]{16}): 1 log, (\d+) steps?, [\d,]+ records\n  rank 0  [0-9a-f]{16}  ")

    def digest(folder, *words):
        ran = opguard("digest", folder, *words)
        assert ran.returncode == 0 and ran.stderr == "", ran.stderr
        return number.search(ran.stdout)[1]

    assert digest(earlier) == digest(tmp_path / "same") != digest(tmp_path / "other")
    parted = [digest(earlier, "--step", step) != digest(tmp_path / "other", "--step", step) for step in (0, 16, 17, 30)]
    assert parted == [False, False, True, True]


def test_where_two_runs_part_by_their_digests(opguard, tmp_path, earlier):
    for name, scale in (("same", "1.0"), ("other", "2.0")):
        record(PROGRAM.replace("SCALE", scale), tmp_path / name)
    same = opguard("digest", earlier, tmp_path / "same")
    assert same.returncode == 0 and same.stdout.startswith("equal  "), same.stdout + same.stderr
    other = opguard("digest", earlier, tmp_path / "other", "--json", tmp_path / "d.json")
    assert other.returncode == 1 and "The runs part in step 17, in 1 log; there in train forward, " in other.stdout, other.stdout + other.stderr
    told = json.loads((tmp_path / "d.json").read_text())
    assert told["step"] == 17 and told["logs_apart"] == 1 and " parts of the step differ" in told["parts"]
    assert [run["logs"][0]["rank"] for run in told["runs"]] == [0, 0] and told["runs"][0]["digest"] != told["runs"][1]["digest"]


def test_a_log_without_digests_has_no_number(opguard, tmp_path, earlier):
    shutil.copytree(earlier, tmp_path / "bare")
    for index in (tmp_path / "bare").glob("*.steps"):
        index.unlink()
    for words in ([tmp_path / "bare"], [earlier, tmp_path / "bare"]):
        ran = opguard("digest", *words)
        assert ran.returncode == 2 and ".steps: No such file" in ran.stderr and ran.stdout == "", ran.stderr


def test_a_run_that_goes_on_has_a_number_up_to_its_last_step(opguard, tmp_path, earlier):
    """The same number for the steps that are over, and nothing is said of two runs."""
    killed = tmp_path / "killed"
    ends = '    if step == 30:\n        time.sleep(3)\n        os.kill(os.getpid(), 9)\n    print("step"'
    runtime_log.run_program("import os, time\n" + PROGRAM.replace("SCALE", "1.0").replace('    print("step"', ends), killed, status=-9)
    assert [path.name.endswith(".log.incomplete") for path in killed.glob("*.log*")] == [True]
    ran = opguard("digest", killed, "--step", "20")
    assert ran.returncode == 0 and "; the log is not closed" in ran.stdout, ran.stdout + ran.stderr
    assert ran.stdout.splitlines()[0] == opguard("digest", earlier, "--step", "20").stdout.splitlines()[0]
    both = opguard("digest", earlier, killed)
    assert both.returncode == 2 and "rank 0 is not closed: give each run alone" in both.stderr and both.stdout == "", both.stderr


def test_of_a_shorter_run_and_of_other_ranks_it_is_said(opguard, tmp_path, earlier):
    """No step is named in which both would differ."""
    record(PROGRAM.replace("SCALE", "1.0").replace("enumerate(data)", "enumerate(data[:30])"), tmp_path / "short")
    ran = opguard("digest", earlier, tmp_path / "short")
    assert ran.returncode == 1 and "\nThe runs part in step 30, in 1 log" in ran.stdout, ran.stdout + ran.stderr
    shutil.copytree(earlier, tmp_path / "other")
    for path in (tmp_path / "other").glob("rank0-*"):
        path.rename(path.with_name(path.name.replace("rank0-", "rank1-")))
    ran = opguard("digest", earlier, tmp_path / "other")
    assert ran.returncode == 2 and "the runs have logs of other ranks" in ran.stderr and ran.stdout == "", ran.stdout + ran.stderr
