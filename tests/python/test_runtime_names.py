"""Parameters, gradients and optimizer state go by the names the program's modules have for them."""

import pytest

from runtime_log import record

torch = pytest.importorskip("torch")

TORCH = "import torch\nfrom torch import nn\ntorch.manual_seed(0)\n"
STEP = """
for _ in range(2):
    og("back", model(torch.ones(2, 3)).sum().backward)()
    og("step", optimizer.step)()
    optimizer.zero_grad()
"""
NET = TORCH + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(2)])
    def forward(self, x):
        for layer in self.layers: x = og("lin", layer)(x)
        return x
model = Net()
"""
NAMES = ["layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias"]


def steps(log):
    return [e for e in log.events if e.kind == "optimizer"]


def named(event, kind, what):
    return [n[len(what) + 1 :] for n in event.names(kind) if n.startswith(what + ":")]


@pytest.mark.parametrize("options", ["foreach=False", "foreach=True", "fused=True"])
def test_every_implementation_of_a_step(tmp_path, options):
    log = record(NET + f"optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, {options})" + STEP, tmp_path)
    first, second = steps(log)
    assert named(first, "in", "param") == named(first, "in", "grad") == named(first, "out", "param") == NAMES
    assert not named(first, "in", "state")
    assert named(second, "in", "state") == [f"{n}.{k}" for n in NAMES for k in ("step", "exp_avg", "exp_avg_sq")]
    for name in NAMES:
        assert first.get("in", "param:" + name).value != first.get("out", "param:" + name).value
        assert first.get("out", "param:" + name).value == second.get("in", "param:" + name).value
    grads = [e.names("out")[0] for e in log.events if e.kind == "accumulate" and e.step == 0]
    assert sorted(grads) == sorted("grad:" + n for n in NAMES)
    assert "group0.lr=0.1" in second.scalars


@pytest.mark.parametrize("wrap", [
    "nn.DataParallel(model)", "torch.compile(model, backend='eager')",
    "__import__('torch.distributed.algorithms._checkpoint.checkpoint_wrapper', fromlist=['_']).checkpoint_wrapper(model)",
])  # fmt: skip
def test_wrappers_leave_no_trace_in_names(tmp_path, wrap):
    source = NET + f"optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nmodel = {wrap}" + STEP
    assert named(steps(record(source, tmp_path))[0], "in", "param") == NAMES


def test_checkpoint_wrapped_layers(tmp_path):
    log = record(NET + """
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
model.layers[1] = checkpoint_wrapper(model.layers[1])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
""" + STEP, tmp_path)  # fmt: skip
    assert named(steps(log)[0], "in", "param") == NAMES


def test_two_models_tied_and_loose_parameters(tmp_path):
    log = record(NET + """
class Critic(Net): pass
critic = Critic()
critic.layers[1].weight = critic.layers[0].weight
loose = nn.Parameter(torch.ones(3))
plain = torch.ones(3, requires_grad=True)
optimizer = torch.optim.SGD([loose, *critic.parameters(), plain, *model.parameters()], lr=0.1)
(critic(model(torch.ones(2, 3))) * loose * plain).sum().backward()
og("step", optimizer.step)()
""", tmp_path)  # fmt: skip
    (step,) = steps(log)
    critic = ["Critic." + n for n in NAMES if n != "layers.1.weight"]
    assert [n for n in step.names("out")] == ["param0", *("param:" + n for n in critic), "param4", *("param:" + n for n in NAMES)]


def test_modules_made_later_are_found(tmp_path):
    log = record(NET + """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.ones(2, 3)).sum().backward()
optimizer.step()
model.head = nn.Linear(3, 1)
optimizer.add_param_group({"params": model.head.parameters(), "lr": 0.5})
model.head(model(torch.ones(2, 3))).sum().backward()
optimizer.step()
""", tmp_path)  # fmt: skip
    first, second = steps(log)
    assert named(first, "out", "param") == NAMES
    assert named(second, "out", "param") == NAMES + ["head.weight", "head.bias"]
    assert "group1.lr=0.5" in second.scalars


def test_closure_is_the_programs_own(tmp_path):
    log = record(NET + """
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3)
def closure():
    optimizer.zero_grad()
    loss = og("square", model(torch.ones(2, 3)).square)().sum()
    loss.backward()
    return loss
og("step", optimizer.step)(closure)
og("step", optimizer.step)(closure=closure)
""", tmp_path)  # fmt: skip
    first, second = steps(log)
    evaluations = log.of("square")
    assert len(evaluations) >= 4 and {e.phase for e in evaluations} == {"forward"}
    assert {e.step for e in evaluations} == {0, 1}
    inside = [e for e in evaluations if first.begin <= e.index < first.index]
    assert len(inside) >= 2
    assert named(first, "out", "param") == NAMES
    assert {e.phase for e in log.events if e.kind == "node"} == {"backward"}


def test_several_optimizers_and_a_skipped_step(tmp_path):
    log = record(NET + """
class Scaled(torch.optim.SGD): pass
one = torch.optim.SGD(model.layers[0].parameters(), lr=0.1)
two = Scaled(model.layers[1].parameters(), lr=0.2, momentum=0.9)
scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
for value in (1.0, float("inf")):
    scaler.scale(model(torch.full((2, 3), value)).sum()).backward()
    for optimizer in (one, two):
        og("scaled", scaler.step)(optimizer)
    scaler.update()
""", tmp_path)  # fmt: skip
    assert [named(e, "out", "param") for e in steps(log)] == [NAMES[:2], NAMES[2:]]
    assert [e.step for e in steps(log)] == [0, 1]  # each is a step; the second pair was skipped for inf
