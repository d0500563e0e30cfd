"""What a call reads and writes behind arguments that are no tensors: models, optimizers, lists and generators of
parameters, schedulers, checkpoints."""

import pytest

from runtime_log import logs_in, record, run_program

torch = pytest.importorskip("torch")

NET = """
import torch
from torch import nn
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(2)])
        self.register_buffer("count", torch.ones(1))
    def forward(self, x):
        for layer in self.layers: x = layer(x)
        return x
model = Net()
def backward(): model(torch.ones(2, 3)).sum().backward()
"""
# A function with no probe in its file.
FOREIGN = """
import types
def foreign(text):
    module = types.ModuleType("library")
    exec("import torch\\n" + text, vars(module))
    return module
"""
NAMES = ["layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias"]
GRADS = ["grad:" + n for n in NAMES]


def test_clipping_sees_gradients_and_no_generator_is_spent(tmp_path):
    source = NET + """
from torch.nn.utils import clip_grad_norm_, clip_grad_value_, parameters_to_vector, vector_to_parameters
import warnings
warnings.simplefilter("always")
backward()
print(og("norm", clip_grad_norm_)(model.parameters(), 0.01).item().hex())
og("keyword", clip_grad_norm_)(parameters=(p for p in model.parameters() if p.dim() > 1), max_norm=1e9)
og("value", clip_grad_value_)(list(model.parameters()), 1e-4)
og("one", clip_grad_norm_)(model.layers[0].weight, 1e-5)
og("none", clip_grad_norm_)(iter(()), 1.0)
og("empty", clip_grad_norm_)((p for p in ()), 1.0)
flat = og("flat", parameters_to_vector)(model.parameters())
og("back", vector_to_parameters)(flat * 2, model.parameters())
def broken():
    yield model.layers[0].weight
    raise KeyError("mine")
try: og("broken", clip_grad_norm_)(broken(), 1.0)
except KeyError as e: print(e)
held = iter(list(model.parameters()))
og("held", clip_grad_value_)(held, 1.0)
print(list(held), sum(p.double().sum() for p in model.parameters()).item().hex())
"""
    bare = run_program(source)
    result = run_program(source, tmp_path)
    assert bare.stdout == result.stdout and bare.stderr == result.stderr and "empty generator" in bare.stderr
    (log,) = logs_in(tmp_path)
    (norm,) = log.of("norm")
    assert norm.names("in") == norm.names("written") == GRADS and norm.scalars == "arg0=<4 parameters>, arg1=0.01"
    assert all(norm.get("in", g).value != norm.get("written", g).value for g in GRADS)
    assert log.of("keyword")[0].names("in") == GRADS[::2] and log.of("value")[0].names("in") == GRADS
    assert log.of("value")[0].get("in", GRADS[1]).value == norm.get("written", GRADS[1]).value
    assert log.of("one")[0].names("written") == GRADS[:1]
    assert log.of("flat")[0].names("in") == [f"arg0[{i}]" for i in range(4)]
    (back,) = log.of("back")
    assert back.names("written") == [f"arg1[{i}]" for i in range(4)]
    assert log.of("broken")[0].flags & 1


def test_models_optimizers_and_lists_given_to_code_without_probes(tmp_path):
    log = record(NET + FOREIGN + """
library = foreign('''
def update(ema, model):
    with torch.no_grad():
        for e, p in zip(ema.parameters(), model.parameters()): e.mul_(0.9).add_(p, alpha=0.1)
def halve(parameters):
    for p in parameters: p.grad.mul_(0.5)
def look(model): return model.layers[0].weight.sum()
def clip(optimizer):
    for g in optimizer.param_groups:
        for p in g["params"]: p.grad.clamp_(-0.25, 0.25)
''')
average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
ema = Net()
backward()
og("halve", library.halve)(list(model.parameters()))
og("clip", library.clip)(optimizer)
og("step", optimizer.step)()
og("update", library.update)(ema, model=model)
og("first", average.update_parameters)(model)
og("again", average.update_parameters)(model)
og("look", library.look)(model)
def mine(model): return og("inner", model.layers[0].weight.sum)()
og("mine", mine)(model)
og("copy", __import__("copy").deepcopy)(model)
og("move", model.to)(torch.float64)
""", tmp_path)  # fmt: skip
    params = ["param:" + n for n in NAMES]
    (halve,) = log.of("halve")
    assert halve.names("written") == [f"arg0[{i}].grad" for i in range(4)]
    (clip,) = log.of("clip")
    assert clip.names("written") == ["arg0." + g for g in GRADS]
    assert clip.get("in", "arg0." + GRADS[0]).value == halve.get("written", "arg0[0].grad").value
    (update,) = log.of("update")
    assert update.names("written") == ["arg0." + p for p in params]
    after = next(e for e in log.events if e.kind == "optimizer").get("out", params[0]).value
    assert update.get("in", "model." + params[0]).value == after
    for call in log.of("first") + log.of("again"):
        averaged = [n for n in call.names("written") if n.startswith("self.param:module.layers")]
        assert len(averaged) == 4 and "self.param:n_averaged" in call.names("written")
        assert "arg0." + params[0] in call.names("in")
    (look,) = log.of("look")
    assert "arg0.param:count" in look.names("in") and not look.names("written")
    assert not log.of("mine")[0].names("in")  # its own operators are recorded
    moved = log.of("move")[0]
    assert {"self." + p for p in params} <= set(moved.names("written"))
    assert moved.get("written", "self." + params[0]).dtype == "float64"


def test_scaler_scheduler_and_optimizers_of_the_programs_own(tmp_path):
    log = record(NET + FOREIGN + """
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
og("backward", scaler.scale(model(torch.ones(2, 3)).sum()).backward)()
og("unscale", scaler.unscale_)(optimizer)
og("scaled", scaler.step)(optimizer)
og("schedule", scheduler.step)()
library = foreign('''
class Sign:
    def __init__(self, params): self.params, self.state = list(params), {}
    def step(self):
        with torch.no_grad():
            for p in self.params: p.sub_(p.grad.sign(), alpha=0.1)
class Wrapper:
    def __init__(self, inner): self.inner, self.params = inner, inner.param_groups[0]["params"]
    def step(self): self.inner.step()
class Nothing(Sign):
    def step(self): pass
''')
og("sign", library.Sign(model.parameters()).step)()
og("wrapped", library.Wrapper(optimizer).step)()
og("nothing", library.Nothing(model.parameters()).step)()
og("last", torch.ones(2).sum)()
""", tmp_path)  # fmt: skip
    (unscale,) = log.of("unscale")
    assert unscale.names("written")[:4] == ["arg0." + g for g in GRADS]
    assert "self._scale" in unscale.names("in")
    (scaled,) = log.of("scaled")
    assert [n for n in scaled.names("written") if "param" in n] == ["arg0.param:" + n for n in NAMES]
    (schedule,) = log.of("schedule")
    assert schedule.scalars.endswith("self.lr=[1.0]") and schedule.results.endswith("lr=[0.5]")
    steps = [e for e in log.events if e.kind == "optimizer"]
    assert [(e.boundary, e.step) for e in steps] == [("scaled", 0), ("sign", 1), ("wrapped", 2)]
    assert "group0.lr=0.5" in steps[2].scalars
    sign = steps[1]
    assert sign.names("out") == ["param:" + n for n in NAMES] and sign.get("in", GRADS[0]).value
    assert sign.get("in", "param:" + NAMES[0]).value != sign.get("out", "param:" + NAMES[0]).value
    assert log.of("last")[0].step == 3
    assert len(log.states()) == 4  # at the first event and after each step


def test_groups_of_an_optimizer(tmp_path):
    """Which parameters a group's settings are for is a setting too."""
    log = record(NET + """
for decayed in (1, 2, 4):
    groups = [list(model.parameters())[:decayed], list(model.parameters())[decayed:]]
    groups = [{"params": g, "weight_decay": d} for g, d in zip(groups, (0.1, 0.0)) if g]
    backward()
    og("step", torch.optim.SGD(groups, lr=1.0).step)()
""", tmp_path)  # fmt: skip
    one, two, all_of_them = [e.scalars for e in log.events if e.kind == "optimizer"]
    assert one.startswith("group0.params=1, group0.weight_decay=0.1") and "group1.params=3, group1.weight_decay=0.0" in one
    assert one.replace("params=1", "params=2").replace("params=3", "params=2") == two
    assert "params" not in all_of_them


def test_checkpoints(tmp_path):
    log = record(NET + f"""
path = {str(tmp_path / "checkpoint.pt")!r}
optimizer = torch.optim.Adam(model.parameters())
backward(); optimizer.step()
deep = {{"a": {{"b": {{"c": {{"d": {{"e": torch.arange(3.0)}}}}}}}}, "many": [torch.tensor(i) for i in range(5000)]}}
og("save", torch.save)({{"model": model.state_dict(), "optimizer": optimizer.state_dict(), "deep": deep, "epoch": 3}}, path)
state = og("load", torch.load)(path)
other, fresh = Net(), Net()
og("fill", other.load_state_dict)(state["model"])
og("assign", fresh.load_state_dict)(state["model"], assign=True)
again = torch.optim.Adam(other.parameters(), lr=0.5)
og("resume", again.load_state_dict)(state["optimizer"])
og("dict", again.state_dict)()
""", tmp_path / "log")  # fmt: skip
    (save,), (load,) = log.of("save"), log.of("load")
    assert "arg0.model.layers.0.weight" in save.names("in") and len(save.names("in")) > 5000
    assert load.get("out", "out0.deep.a.b.c.d.e").value == save.get("in", "arg0.deep.a.b.c.d.e").value
    assert load.get("out", "out0.optimizer.state.0.exp_avg").value
    value = save.get("in", "arg0.model.layers.0.weight").value
    (fill,) = log.of("fill")
    assert fill.get("written", "self.param:layers.0.weight").value == value
    assert fill.get("in", "self.param:layers.0.weight").value != value
    assert log.of("assign")[0].get("written", "self.param:layers.0.weight").value == value
    resumed = log.of("resume")[0].names("written")
    assert "self.state:Net.layers.0.weight.exp_avg" in resumed or "self.state:layers.0.weight.exp_avg" in resumed
    # Random states once more after each load.
    follows = [log.events[e.index - 1].boundary for e in log.states()[1:]]
    assert follows.count("load") == follows.count("fill") == follows.count("resume") == 1


def test_random_states_at_step_boundaries(tmp_path):
    log = record(NET + """
import random, numpy
random.seed(1); numpy.random.seed(2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for draw in (lambda: None, lambda: torch.rand(1), random.random, numpy.random.rand):
    draw()
    backward()
    og("step", optimizer.step)()
og("last", torch.ones(2).sum)()
torch.manual_seed(0); random.seed(1); numpy.random.seed(2)
""", tmp_path)  # fmt: skip
    states = log.states()
    assert log.events[0] is states[0] and [e.step for e in states] == [0, 1, 2, 3, 4]
    assert {e.boundary for e in states} == {"<state>"}

    def changed(name):
        values = [e.get("in", name).value for e in states]
        return [x != y for x, y in zip(values, values[1:])]

    assert changed("torch.cpu") == [False, True, False, False]
    assert changed("python") == [False, False, True, False]
    assert changed("numpy") == [False, False, False, True]


def test_marks(tmp_path):
    log = record(NET + """
import opguard, numpy
optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for _ in range(2)]
for step in range(3):
    for micro in range(2):
        og("work", torch.ones(2).sum)()
        backward(); backward()
        opguard.micro_batch()
    for optimizer in optimizers: optimizer.step()
    og("end", torch.ones(2).sum)()
    opguard.step()
hidden = torch.zeros(3)
alias = hidden.numpy()
def unseen(x, y): alias[0] += 1
og("plain", unseen)(hidden, torch.ones(2))
og.writes("writes", unseen)(hidden, torch.ones(2))
""", tmp_path)  # fmt: skip
    assert [(e.step, e.micro_batch) for e in log.of("work")] == [(0, 0), (0, 2), (2, 0), (2, 1), (3, 0), (3, 1)]
    assert [e.step for e in log.of("end")] == [2, 2, 3]
    assert not log.of("plain")[0].names("written")
    assert log.of("writes")[0].names("written") == ["arg0"]


def test_marked_operators(tmp_path):
    log = record(NET + """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def batch(): pass
for step in range(2):
    for micro in range(2):
        og("work", torch.ones(2).sum)()
        backward(); backward()
        og.micro_batch("micro", batch)()
    optimizer.step()
    og.step("step", optimizer.step)()
og("last", torch.ones(2).sum)()
""", tmp_path)  # fmt: skip
    assert [(e.step, e.micro_batch) for e in log.of("work")] == [(0, 0), (0, 2), (2, 0), (2, 1)]
    assert log.of("last")[0].step == 3
