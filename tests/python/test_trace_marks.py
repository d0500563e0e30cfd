"""Pseudo activities: calls that are boundaries whatever they dispatch, and that they still do what they did."""

import json

import pytest

from tracing import program, text_of, trace  # noqa: F401  (program is a fixture)

pytest.importorskip("torch")

PROGRAM = """
import io, random, torch
from torch.optim import swa_utils
torch.manual_seed(3)
random.seed(4)
torch.random.set_rng_state(torch.random.get_rng_state())
model = torch.nn.Linear(2, 2)
ema = swa_utils.AveragedModel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
scaler = torch.amp.GradScaler("cpu") if hasattr(torch, "amp") and hasattr(torch.amp, "GradScaler") else None
loss = model(torch.ones(1, 2)).sum()
loss.backward()
norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
optimizer.step()
scheduler.step()
plateau.step(1.0)
ema.update_parameters(model)
file = io.BytesIO()
torch.save(model.state_dict(), file)
file.seek(0)
state = torch.load(file)
model.load_state_dict(state)
optimizer.load_state_dict(optimizer.state_dict())
print(repr(norm.item()), optimizer.param_groups[0]["lr"], random.random(), torch.rand(1).item(), torch.save.__name__, torch.nn.Module.load_state_dict.__qualname__)
"""

EXPECTED = {
    "torch.manual_seed(3)": "seed",
    "random.seed(4)": "seed",
    "torch.random.set_rng_state(torch.random.get_rng_state())": "seed",
    "loss.backward()": "backward",
    "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)": "clip_gradients",
    "optimizer.step()": "optimizer_step",
    "scheduler.step()": "scheduler_step",
    "plateau.step(1.0)": "scheduler_step",
    "ema.update_parameters(model)": "average_update",
    "torch.save(model.state_dict(), file)": "checkpoint_save",
    "torch.load(file)": "checkpoint_load",
    "model.load_state_dict(state)": "load_state_dict",
    "optimizer.load_state_dict(optimizer.state_dict())": "load_state_dict",
}


def marks(program, document):
    found = {}
    for use in document["uses"]:
        for name, count in use["activities"].items():
            if name.startswith("opguard::"):
                assert count == 1
                found[text_of(program, use)] = name[len("opguard::") :]
    return found


def test_calls_of_a_training_loop(program):
    program.write("train.py", PROGRAM)
    bare = program.run("train.py", python=program.python, environment={"OPGUARD_TRACE": ""})
    document = trace(program, "train.py")
    assert document["errors"] == 0
    found = marks(program, document)
    if program.has_columns:
        assert EXPECTED.items() <= found.items(), {t: m for t, m in EXPECTED.items() if found.get(t) != m}
    else:
        assert sorted(set(EXPECTED.values())) == sorted(set(found.values()))
    traced = program.run("train.py", python=program.python)
    assert traced.stdout == bare.stdout != "" and traced.stderr == bare.stderr


def test_what_a_library_does_for_itself_is_no_boundary(program):
    # A worker seeds its generators with no source of the user's above it.
    program.write(
        "train.py",
        "import torch\nfrom torch.utils.data import DataLoader\n"
        "for batch in DataLoader(list(range(8)), batch_size=4, num_workers=1):\n    batch + 1\n",
    )
    ran = program.run("train.py", python=program.python)
    assert ran.returncode == 0, ran.stderr
    for path in program.traces.glob("trace-*.json"):
        document = json.loads(path.read_text())
        assert document["errors"] == 0
        assert not any(name.startswith("opguard::") for names in document["foreign_compute"].values() for name in names)


def test_collectives_and_waits(program):
    program.write(
        "train.py",
        "import torch, torch.distributed as dist\ndist.init_process_group('gloo',"
        " store=dist.HashStore(), rank=0, world_size=1)\n"
        "x = torch.ones(2)\ndist.broadcast(x, 0)\nwork = dist.all_reduce(x, async_op=True)\nwork.wait()\nprint(x)\ndist.destroy_process_group()\n",
    )
    document = trace(program, "train.py")
    if program.has_columns:
        found = marks(program, document)
        assert found["dist.broadcast(x, 0)"] == "collective" and found["dist.all_reduce(x, async_op=True)"] == "collective"
        assert found["work.wait()"] == "wait"


def test_scripted_functions_find_torch_s_own(program):
    program.write(
        "train.py",
        "import torch\n@torch.jit.script\ndef f(x: torch.Tensor):\n    y = (x * x).sum()\n    g = torch.autograd.grad([y], [x])[0]\n"
        "    assert g is not None\n    return g\nprint(f(torch.ones(2, requires_grad=True)))\n",
    )
    bare = program.run("train.py", python=program.python, environment={"OPGUARD_TRACE": ""})
    traced = program.run("train.py", python=program.python)
    assert (traced.returncode, traced.stdout) == (bare.returncode, bare.stdout), traced.stderr
