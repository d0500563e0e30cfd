"""Several causes, each proven within the runs allowed by default; what does not repeat itself (docs/design/proof.md)."""

import pytest
from test_proof import TRAIN, line_of, prove  # noqa: F401

# What the two sides have of different versions, beside test_proof's library. The programs' own texts are equal.
MORE = """
import os, threading, time, torch
FAULTY = os.environ["SIDE"] == "b"
def jitter(x):
    return x + (int.from_bytes(os.urandom(2), "big") / 65536 if FAULTY else 0.5)
def tilt(x):
    return x * (1.25 if FAULTY else 1)
def cut(x):
    return torch.clamp(x, max=0.4 if FAULTY else 0.5)
def scale(x):
    return x * (3 if FAULTY else 2)
def mask(x):
    return x * (0 if FAULTY else 1)
def disturb(array, value=None):
    def write():
        time.sleep(0.001)
        array[0, 0] = time.perf_counter_ns() % 9973 / 9973 if value is None else value
    if FAULTY:
        thread = threading.Thread(target=write)
        thread.start()
        thread.join()
"""

MODULES = """
import torch, more
torch.manual_seed(0)
class Left(torch.nn.Module):
    def forward(self, h):
        return more.tilt(h).sin()
class Right(torch.nn.Module):
    def forward(self, h):
        return more.cut(h).tanh()
model, left, right = torch.nn.Linear(6, 5), Left(), Right()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(2):
    h = model(torch.randn(4, 6))
    {body}
    loss = (left(h) + right(h)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(loss.item())
"""


@pytest.fixture
def causes(prove, tmp_path):  # noqa: F811
    """causes(body, *options) -> (the proof, its causes as (line, need), the finished process)."""

    def run(body, *options, train=TRAIN.replace("import library", "import library, more")):
        (tmp_path / "lib").mkdir(exist_ok=True)
        (tmp_path / "lib" / "more.py").write_text(MORE)
        answer, done = prove(body, None, *options, train=train)
        proof = answer["proof"]
        assert proof["state"] == "proven", (proof, done.stdout, done.stderr)
        assert all(cause["state"] == "proven" for cause in proof["causes"])
        return proof, [(int(cause["place"].split(":")[1]), cause["need"]) for cause in proof["causes"]], done

    return run


def test_two_causes_in_different_modules(causes, tmp_path):
    proof, found, done = causes("pass", train=MODULES)
    assert found == [(line_of(tmp_path, "more.tilt"), "acts"), (line_of(tmp_path, "more.cut"), "left out")]
    assert proof["runs"] == 3 and proof["asked"]["other"] >= 2 and proof["asked"]["same"] > 0
    assert "proven, one of 2 causes" in done.stdout and "needed: with everything else as in run a" in done.stdout
    assert "  asked: of " in done.stdout


def test_three_causes_one_behind_the_other(causes, tmp_path):
    """What lies between them, sin and tanh, differs in both passes and only follows."""
    proof, found, done = causes("h = more.tilt(h)\nh = h.sin()\nh = more.cut(h)\nh = h.tanh()\nh = more.scale(h)\nh = h.cos()")
    lines = [line_of(tmp_path, text) for text in ("more.tilt", "more.cut", "more.scale")]
    assert found == list(zip(lines, ("acts", "together", "together"))) and proof["runs"] == 3
    assert proof["asked"]["other"] >= 3 and proof["asked"]["same"] > 0


def test_one_cause_masks_the_other(causes, tmp_path):
    """Made good alone the first changes nothing, as b multiplies it by 0. It is a cause all the same: a does not."""
    proof, found, done = causes("h = more.tilt(h)\nh = more.mask(h) + model.bias", "--prove-runs", "4")
    lines = [line_of(tmp_path, text) for text in ("more.tilt", "more.mask")]
    assert found == list(zip(lines, ("left out", "left out"))) and proof["runs"] == 4
    assert "of b in place, to leave train.py:" in done.stderr


def test_what_is_masked_in_both_runs_is_no_cause(causes, tmp_path):
    proof, found, done = causes("k = more.tilt(h)\nh = k * 0.0 + h\nh = more.cut(h)", "--prove-runs", "4")
    assert found == [(line_of(tmp_path, "more.cut"), "only")]


def test_what_does_not_repeat_itself_is_proven_where_it_is(causes, tmp_path):
    proof, found, done = causes("h = more.jitter(h)")
    assert found == [(line_of(tmp_path, "more.jitter"), "only")] and proof["runs"] == 2
    repetition = proof["repetition"]
    assert repetition["run"] == "b" and repetition["repeats"] is False and repetition["cause"] is True
    assert repetition["place"] == f"train.py:{found[0][0]}" and "of the same inputs" in repetition["why"]
    assert "run b does not repeat itself: " in done.stdout


def test_what_repeats_itself_is_not_said_to_be_chance(causes):
    proof, _, done = causes("h = more.scale(h)")
    assert proof["repetition"] is None and proof["runs"] == 2 and "repeat itself" not in done.stdout


RACE = "mask = torch.ones(4, 5)\nh = h * mask\nmore.disturb(mask.numpy(){value})\nh = h * mask"


def test_a_race_is_seen_by_running_again(causes):
    proof, _, done = causes(RACE.replace("{value}", ""))
    assert proof["repetition"]["repeats"] is False and proof["runs"] <= 3
    assert "run b does not repeat itself: " in done.stdout


def test_a_thread_that_writes_the_same_each_time_repeats_itself(causes):
    """The pivot is a race by what is recorded: one more run of b tells that it comes out the same."""
    proof, _, done = causes(RACE.replace("{value}", ", 0.25"))
    assert proof["repetition"] == {"run": "b", "repeats": True, "boundary": None, "place": None, "cause": False, "why": proof["repetition"]["why"]}
    assert "repeats itself to the end of the step" in done.stdout and proof["runs"] == 3
