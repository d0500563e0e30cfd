"""Which steps of a long job are recorded (`--steps`, `--from-step`, `--every`), and the ring of the last ones (`--ring`)."""

import os
import signal
import subprocess
import sys

import pytest

import runtime_log
from conftest import clean_environment, until
from runtime_log import record

pytest.importorskip("torch")

# Probes of most kinds, an iterator that lasts for the whole run, an operator around all of it, micro-batches, a buffer.
PROGRAM = """
import random, sys, numpy, torch
from torch import nn
torch.manual_seed(0)
random.seed(0)
numpy.random.seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
data = [torch.randn(4, 8) for _ in range(STEPS)]
def train():
    for step, x in enumerate(og("train.iter:aaaa", data)):
        x = og.name("train.iadd:bbbb", x).iadd(0.5)
        for _ in range(2):
            h = og("train.model:cccc", model)(x)
            loss = og("train.mean:dddd", (og("train.mul:eeee", h) * h).mean)()
            EDIT
            og("train.backward:ffff", loss.backward)()
        og("train.step:gggg", optimizer.step)()
        optimizer.zero_grad()
og("train.train:hhhh", train)()
"""


def program(steps=8, edit="pass"):
    return PROGRAM.replace("STEPS", str(steps)).replace("EDIT", edit)


def windowed(tmp_path, window, **options):
    return record(program(**options), tmp_path / window.replace("/", "e"), env={"OPGUARD_RECORD_STEPS": window})


def seen(log, steps):
    """What an event is, and all that it read and left, but for what is counted since the log's beginning."""
    events = []
    for e in log.events:
        if e.step in steps and e.boundary != "<buffers>":
            slots = [(s.kind, s.name, s.dtype, s.shape, s.value) for s in e.slots]
            events.append((e.boundary, e.kind, e.phase, e.step, e.micro_batch, e.node, e.scalars, slots))
    return events


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return record(program(), tmp_path_factory.mktemp("whole"))


@pytest.mark.parametrize("window, steps", [("3..4", {3, 4}), ("1../3", {1, 4, 7}), ("6..", {6, 7, 8})])
def test_a_window_has_what_the_whole_log_has_of_its_steps(tmp_path, whole, window, steps):
    log = windowed(tmp_path, window)
    assert {e.step for e in log.events} == steps
    assert log.settings["steps"] == window and "steps" not in whole.settings
    # The operator around all steps began in none of them.
    assert seen(log, steps) == [e for e in seen(whole, steps) if e[0] != "train.train:hhhh"]
    first = next(e for e in log.events if e.boundary == "<buffers>")
    assert first.names("in") == ["1.running_mean", "1.running_var", "1.num_batches_tracked"], "all of them, at the window's beginning"


def test_the_log_is_whole_while_the_program_goes_on(tmp_path):
    ended = program(6).replace("        optimizer.zero_grad()", """        optimizer.zero_grad()
        if step == 4:
            import os
            print(sorted(n.rsplit(".", 1)[1] for n in os.listdir(os.environ["OPGUARD_LOG"])))""")
    ran = runtime_log.run_program(ended, tmp_path / "log", env={"OPGUARD_RECORD_STEPS": "1..2"})
    assert "['groups', 'log', 'steps']" in ran.stdout


def test_marks_and_processes_that_fork_between_steps(tmp_path):
    marked = """
import os, torch, opguard
x = torch.ones(4)
for step in range(6):
    y = og("a:1", torch.mul)(x, step)
    if step == 1 and os.fork() == 0:
        tracked = True
    opguard.step()
"""
    runtime_log.run_program(marked, tmp_path / "log", env={"OPGUARD_RECORD_STEPS": "3..4"})
    logs = runtime_log.logs_in(tmp_path / "log")
    assert len(logs) == 2 and logs[0].pid != logs[1].pid
    for log in logs:
        assert log.closed and [e.step for e in log.of("a:1")] == [3, 4]


def test_what_is_no_window(opguard, tmp_path):
    for words, said in (
        (["--steps", "9..2"], "--steps: the last step is before the first: 9..2"),
        (["--steps", "2"], ""),
        (["--steps", "1..2", "--from-step", "1"], "--steps and --from-step both say where to begin: leave one out"),
        (["--every", "0"], "--every"),
        (["--ring", "3", "--on", "loss"], "--on takes nan, spike and signal=NAME, separated by commas, not loss"),
        (["--on", "nan"], "--ring"),
    ):
        ran = opguard("run", "--log", tmp_path / "log", *words, "--", sys.executable, "-c", "print('ran')")
        assert (ran.returncode == 0) == (not said) and ("ran" in ran.stdout) == (not said)
        assert said in ran.stderr


def compare(opguard, a, b):
    ran = opguard("align", a, b, "--color", "never")
    return ran.returncode, ran.stdout


def test_align_compares_the_steps_that_both_have(opguard, tmp_path, whole):
    windowed(tmp_path, "2..4")
    windowed(tmp_path, "4..6")
    windowed(tmp_path, "7..9")
    status, text = compare(opguard, tmp_path / "2..4", tmp_path / "4..6")
    assert status == 0 and text.startswith("identical"), text
    assert "steps: compared are step 4 of run a with the same ones of run b, 1 step in all" in text
    assert "of run a steps 2 to 4 are recorded: nothing is said of other steps" in text
    status, text = compare(opguard, os.path.dirname(whole.path), tmp_path / "2..4")
    assert status == 0 and text.startswith("identical") and "pairs differ" not in text, text
    status, text = compare(opguard, tmp_path / "2..4", tmp_path / "7..9")
    assert status == 2 and "no step is recorded in both runs: run a has steps 2 to 4, run b has steps 7 to 9" in text


def test_align_names_an_operator_of_the_window_and_none_of_an_earlier_step(opguard, tmp_path):
    windowed(tmp_path, "3..5")
    inside = record(program(edit="if step == 4: loss = og('train.times:iiii', loss) * 2"), tmp_path / "inside", env={"OPGUARD_RECORD_STEPS": "3..5"})
    before = record(program(edit="if step == 1: loss = og('train.times:iiii', loss) * 2"), tmp_path / "before", env={"OPGUARD_RECORD_STEPS": "2..5"})
    assert inside.closed and before.closed
    status, text = compare(opguard, tmp_path / "3..5", tmp_path / "inside")
    assert status == 1 and "step 4" in text and "train.times:iiii" in text, text
    status, text = compare(opguard, tmp_path / "3..5", tmp_path / "before")
    assert status == 1 and "the runs already differed as step 3 began" in text, text
    assert "the cause is in a step that was not recorded" in text and "pivot" not in text, text


def ringed(tmp_path, source, on="nan,spike", steps=2, status=0, env=()):
    """The logs that were kept, by their folder's name."""
    folder = tmp_path / "ring"
    folder.mkdir()
    runtime_log.run_program(source, folder, status=status, env={"OPGUARD_RING": str(steps), "OPGUARD_RING_ON": on, **dict(env)})
    kept = {}
    for place in sorted(folder.iterdir()):
        (kept[place.name],) = [runtime_log.Log(p) for p in place.iterdir() if p.name.endswith((".log", ".log.incomplete"))]
    return kept


def test_a_ring_is_written_when_the_loss_is_no_number(opguard, tmp_path, whole):
    kept = ringed(tmp_path, program(edit="loss = loss * (float('nan') if step >= 5 else 1)"))
    assert list(kept) == ["kept-step5"], "what goes on is kept once"
    log = kept["kept-step5"]
    assert log.closed and log.lost == 0 and {e.step for e in log.events} == {4, 5}
    assert log.settings["steps"] == "4..5" and log.settings["steps.kept"] == "nan: the loss is nan at step 5"
    healthy = [e for e in seen(whole, {4}) if not e[0].startswith("<state>")]
    assert [e for e in seen(log, {4}) if not e[0].startswith("<state>") and e[0] != "train.times:iiii"] == healthy
    assert all(e.begin <= i and e.forward in (None, *range(i)) for i, e in enumerate(log.events))
    status, text = compare(opguard, os.path.dirname(whole.path), tmp_path / "ring" / "kept-step5")
    assert status == 1 and "step 5" in text and "compared are steps 4 to 5" in text, text


def test_a_healthy_run_keeps_nothing_and_its_end_is_said(opguard, tmp_path):
    assert ringed(tmp_path, program()) == {}
    ran = opguard("run", "--log", tmp_path / "log", "--ring", "2", "--", sys.executable, "-c", "import torch; torch.ones(2, requires_grad=True).sum().backward()")
    assert ran.returncode == 0 and "no watcher said anything: nothing was kept" in ran.stderr


def test_a_program_says_keep_and_then_fails(tmp_path):
    kept = ringed(tmp_path, program(edit="""
            if step == 3:
                import opguard
                opguard.keep("reward collapsed")
                raise SystemExit(3)"""), status=3)
    log = kept["kept-step3"]
    assert log.closed and log.settings["steps.kept"] == "reward collapsed" and {e.step for e in log.events} == {2, 3}


SIGNALLED = "import os, signal\nsignal.signal(signal.SIGUSR1, lambda *_: print('own handler', signal.getsignal(signal.SIGUSR1).__name__, flush=True))\n"


@pytest.mark.parametrize("times, whole_step", [(1, True), (2, False)])
def test_a_signal_keeps_the_ring_and_reaches_the_programs_own_handler(tmp_path, times, whole_step):
    sent = "for _ in range(%d * (step == 4 and loss.requires_grad and not done.append(1) and len(done) == 1)): os.kill(os.getpid(), signal.SIGUSR1)" % times
    source = SIGNALLED + "done = []\n" + program(edit=sent) + "\nprint(signal.getsignal(signal.SIGUSR1).__name__)"
    kept = ringed(tmp_path, source, on="signal=USR1")
    log = kept["kept-step4"]
    assert log.closed == whole_step and {e.step for e in log.events} == {3, 4}
    assert log.settings["steps.kept"].startswith("signal: SIGUSR1") and ("in the middle of step 4" in log.settings["steps.kept"]) != whole_step


def test_a_signal_that_ends_the_program_still_does(tmp_path):
    folder = tmp_path / "log"
    endless = program().replace("[torch.randn(4, 8) for _ in range(8)]", "(torch.randn(4, 8) for _ in range(10**9))")
    source = runtime_log.PROLOGUE.format(package=str(runtime_log.build_dir() / "python")) + endless
    env = {**clean_environment(), "OPGUARD_LOG": str(folder), "OPGUARD_RING": "2", "OPGUARD_RING_ON": "signal=TERM", "OPGUARD_PROGRESS": str(tmp_path / "steps")}
    running = subprocess.Popen([sys.executable, "-c", source], env=env, stderr=subprocess.PIPE, text=True)
    try:
        assert until(lambda: (tmp_path / "steps").exists() and int((tmp_path / "steps").read_text() or 0) > 5)
        running.send_signal(signal.SIGTERM)
        assert running.wait(30) == -signal.SIGTERM
    finally:
        running.kill()
        running.stderr.close()
        running.wait()
    (place,) = folder.iterdir()
    (log,) = [runtime_log.Log(p) for p in place.iterdir() if ".log" in p.name]
    # At once, unless the recorder was at work just then: as the step ended.
    assert len({e.step for e in log.events}) == 2 and log.closed == ("in the middle" not in log.settings["steps.kept"])


def test_what_ends_the_program_waits_until_the_ring_is_written(tmp_path):
    edit = """
            if step == 5 and loss.requires_grad:
                import os, signal, time, opguard
                from opguard.load import messages
                from opguard.record import ring
                ring._folders = lambda log: os.kill(os.getpid(), signal.SIGTERM) or []
                messages.complain = lambda said: time.sleep(0.1)  # between the folder and its log
                opguard.keep("for a test")"""
    log = ringed(tmp_path, program(edit=edit), on="signal=TERM", status=-signal.SIGTERM)["kept-step5"]
    assert log.closed and {e.step for e in log.events} == {4, 5} and log.settings["steps.kept"] == "for a test"


def test_what_a_spike_is():
    runtime_log.run_program("""
from opguard.record.ring import is_spike, parse
usual = [2.0 + 0.1 * (i % 5) for i in range(64)]
assert not is_spike(50.0, usual[:15]), "too few to know"
assert is_spike(3.1, usual) and not is_spike(2.9, usual)
falling = [10.0 - 0.1 * i for i in range(64)]
assert not is_spike(4.0, falling) and not is_spike(10.0, falling) and is_spike(25.0, falling)
assert not is_spike(1.05, [1.0] * 64) and is_spike(1.2, [1.0] * 64), "losses that do not move have a floor"
assert not is_spike(-5.0, usual), "a fall is none"
assert parse("nan, signal=SIGUSR2") == {"nan": "", "signal": "USR2"} and parse("signal") == {"signal": "USR1"}
for wrong in ("loss", "nan=3", "signal=NONE"):
    try:
        parse(wrong)
    except ValueError:
        continue
    raise AssertionError(wrong)
""")


def test_a_window_that_is_not_reached_leaves_no_file(opguard, tmp_path):
    ran = opguard("run", "--log", tmp_path / "log", "--from-step", "100", "--", sys.executable, "-c", "import torch; torch.ones(2, requires_grad=True).sum().backward()")
    assert ran.returncode == 0 and "none of the steps was reached that are to be recorded" in ran.stderr
    assert list((tmp_path / "log").iterdir()) == []
