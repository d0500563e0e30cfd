"""Recording from inside a program: the context manager, trainers' callbacks with their real libraries, and the launcher."""

import os
import subprocess
import sys

import pytest

import runtime_log
from conftest import ROOT, build_dir, clean_environment

pytest.importorskip("torch")

TRAIN = """
import random, sys, numpy, torch
random.seed(0); numpy.random.seed(0); torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def train(steps):
    for _ in range(steps):
        loss = model(torch.ones(2, 4)).square().mean()
        optimizer.zero_grad(); loss.backward(); optimizer.step()
"""


def run(source, *words, python=sys.executable, status=0, env=(), cwd=None):
    environment = {**clean_environment(), "PYTHONPATH": str(build_dir() / "python"), **dict(env)}
    ran = subprocess.run([str(python), *(["-c", source] if source else []), *map(str, words)], env=environment, cwd=cwd, capture_output=True, text=True, timeout=300)
    assert ran.returncode == status, ran.stderr
    return ran


def steps_of(log):
    return [e.step for e in log.events if e.kind == "optimizer"]


def test_a_block_is_recorded_and_then_another(tmp_path):
    ran = run(TRAIN + """
import opguard
train(2)
with opguard.recording(sys.argv[1], steps=(1, 2)) as first:
    train(5)
with opguard.recording(sys.argv[2], steps="0..", mode="full", first_step=7):
    train(2)
    with opguard.recording(sys.argv[2] + "-inner"):
        train(1)
train(1)
for words, said in (((sys.argv[1],), "already holds a log of rank 0"),):
    try:
        with opguard.recording(*words):
            pass
    except FileExistsError as error:
        assert said in str(error), error
    else:
        raise AssertionError(words)
""", tmp_path / "one", tmp_path / "two")
    assert ran.stderr == "opguard: this process is recorded already; %s is not written\n" % (tmp_path / "two-inner")
    (one,), (two,) = runtime_log.logs_in(tmp_path / "one"), runtime_log.logs_in(tmp_path / "two")
    assert one.closed and two.closed and not (tmp_path / "two-inner").exists()
    assert steps_of(one) == [1, 2] and steps_of(two) == [7, 8, 9]
    assert one.settings["steps"] == "1..2" and (one.settings["mode"], two.settings["mode"]) == ("default", "full")
    assert [e.boundary for e in two.events if e.kind == "loss"] and two.settings["torch"]
    # The second log stands alone: its places are told again, its counts begin again.
    assert [e.occurrence for e in two.events if e.kind == "optimizer"] == [0, 1, 2]


@pytest.mark.parametrize("words, said", [
    ("steps=(5, 2)", "steps are the first and the last"), ("steps=(-1, 2)", "steps are"), ("mode='fast'", "mode is default"),
    ("every=0", "every is a number"), ("ring=-1", "ring is a number"), ("ring=2, on='loss'", "a watcher is nan"), ("steps='2..1'", "the last step is before the first"),
])
def test_what_cannot_be_recorded_is_said_where_it_is_written(tmp_path, words, said):
    ran = run("import opguard, sys\nwith opguard.recording(sys.argv[1], %s): pass" % words, tmp_path / "log", status=1)
    assert "ValueError: " in ran.stderr and said in ran.stderr.splitlines()[-1] and not (tmp_path / "log").exists()


def test_names_of_runs_and_restarts():
    run("""
from opguard.recordings import of_restart, window_text
assert of_restart("/logs/run1", {}) == of_restart("/logs/run1", {"TORCHELASTIC_RESTART_COUNT": "0"}) == "/logs/run1"
assert of_restart("/logs/run1", {"TORCHELASTIC_RESTART_COUNT": "2"}) == "/logs/run1.restart2"
assert [window_text(*of) for of in ((None,), (None, 3), (4,), ((4, None), 2), ("1..5", 2))] == ["", "0../3", "4..4", "4../2", "1..5/2"]
""")


HF = """
import sys, torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed
from opguard.integrations.hf import OpguardCallback
log, out, resume = sys.argv[1:]
set_seed(0)
model = GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=2, n_embd=16, vocab_size=32, n_positions=16))
rows = [(torch.arange(8) * (i + 1)) % 32 for i in range(64)]
arguments = TrainingArguments(out, max_steps=6, per_device_train_batch_size=2, gradient_accumulation_steps=2, save_steps=3, report_to=[], disable_tqdm=True, use_cpu=True, dataloader_pin_memory=False)
trainer = Trainer(model, arguments, train_dataset=[{"input_ids": row, "labels": row} for row in rows], callbacks=[OpguardCallback(log, steps=(3, 4))])
trainer.train(resume_from_checkpoint=resume or None)
"""


def test_a_transformers_trainer_and_one_that_resumes(opguard, tmp_path):
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    run(HF, tmp_path / "whole", tmp_path / "out", "")
    run(HF, tmp_path / "resumed", tmp_path / "out2", tmp_path / "out" / "checkpoint-3")
    for name in ("whole", "resumed"):
        (log,) = runtime_log.logs_in(tmp_path / name)
        assert log.closed and steps_of(log) == [3, 4]
        assert [e.step for e in log.events if e.kind == "loss"] == [3, 3, 4, 4], "a step of the trainer has two micro-batches"
    ran = opguard("align", tmp_path / "whole", tmp_path / "resumed", "--color", "never")
    assert ran.returncode == 0 and ran.stdout.startswith("identical"), ran.stdout


LIGHTNING = """
import logging, sys, warnings, torch
warnings.filterwarnings("ignore")
import lightning
from opguard.integrations.lightning import OpguardCallback
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
    def training_step(self, batch, index):
        if sys.argv[2] == "fails" and index == 7:
            raise RuntimeError("boom")
        return self.layer(batch).square().mean()
    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-2)
lightning.seed_everything(0, verbose=False)
data = torch.utils.data.DataLoader(torch.randn(64, 4), batch_size=2)
lightning.Trainer(max_steps=6, accumulate_grad_batches=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                  enable_model_summary=False, callbacks=[OpguardCallback(sys.argv[1], steps=(2, 4))]).fit(Model(), data)
"""


def lightning_python():
    """An interpreter that has Lightning: this one, or that of docs/guide/longjobs.md's environment."""
    for python in (sys.executable, ROOT / "build" / "venv-lightning" / "bin" / "python"):
        if os.path.exists(python) and subprocess.run([str(python), "-c", "import lightning"], capture_output=True).returncode == 0:
            return python
    pytest.skip("lightning is not installed: scripts/lightning_env.sh makes build/venv-lightning")


def test_a_lightning_trainer(tmp_path):
    python = lightning_python()
    run(LIGHTNING, tmp_path / "log", "ends", python=python)
    (log,) = runtime_log.logs_in(tmp_path / "log")
    assert log.closed and steps_of(log) == [2, 3, 4]
    assert [e.step for e in log.events if e.kind == "loss"] == [2, 2, 3, 3, 4, 4]
    run(LIGHTNING, tmp_path / "failed", "fails", python=python, status=1)
    (log,) = runtime_log.logs_in(tmp_path / "failed")
    assert log.closed and steps_of(log) == [2]


SCRIPT = """
import os, sys
from torch import nn
print(sys.argv, __name__, os.environ.get("PYTHONPATH"), sys.path[0] == os.getcwd() or sys.path[0])
count = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
exec(open(os.path.join(os.path.dirname(__file__), "train.txt")).read())
train(6)
sys.exit(3 if "fail" in sys.argv and count == 0 else 0)
"""


@pytest.fixture
def script(tmp_path):
    folder = tmp_path / "my code"
    folder.mkdir()
    (folder / "train.py").write_text(SCRIPT)
    (folder / "train.txt").write_text(TRAIN)
    return folder


def test_the_launcher_runs_the_script_as_python_would(tmp_path, script):
    bare = run("", "train.py", "a b", "--steps", "9", cwd=script)
    launched = run("", "-m", "opguard.launch", "--record", tmp_path / "log", "--steps", "2..3", "train.py", "a b", "--steps", "9", cwd=script)
    assert launched.stdout == bare.stdout and launched.stderr == bare.stderr
    (log,) = runtime_log.logs_in(tmp_path / "log")
    assert log.closed and steps_of(log) == [2, 3]
    for words, said in ((["--record", "x"], "no script to run"), (["train.py"], "--record"), (["--record", "x", "--steps", "1..2", "--from-step", "1", "train.py"], "leave one out")):
        assert said in run("", "-m", "opguard.launch", *words, cwd=script, status=2).stderr
    module = run("", "-m", "opguard.launch", "--record", tmp_path / "module", "--from-step", "5", "-m", "train", "x", cwd=script)
    assert "'x'" in module.stdout and "__main__" in module.stdout
    (log,) = runtime_log.logs_in(tmp_path / "module")
    assert steps_of(log) == [5]


def test_torchrun_starts_the_launcher_and_starts_it_again(tmp_path, script):
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--max-restarts", "1"]
    run("", *torchrun, "-m", "opguard.launch", "--record", tmp_path / "run1", "--steps", "1..2", "train.py", "fail", cwd=script)
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith("run1")) == ["run1", "run1.restart1"]
    again = runtime_log.logs_in(tmp_path / "run1.restart1")
    assert [log.rank for log in again] == [0, 1] and all(log.closed and steps_of(log) == [1, 2] for log in again)
    assert len(runtime_log.logs_in(tmp_path / "run1")) == 2
