"""A training that is observed is the training it was: values, graphs, pickles, workers, hooks, and who is kept alive."""

import json

import pytest
from runtime_log import Log, logs_in, run_program
from test_training_observations import OBSERVED, rows

PROGRAM = """
import copy, hashlib, io, json, pickle, sys, threading, weakref
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.norm, self.drop, self.b = nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 3)
    def forward(self, x):
        return self.b(F.dropout(self.drop(F.relu(self.norm(self.a(x)))), 0.1, self.training))

torch.manual_seed(1)
net = Net()
def more(module, args, out): return out * 1.5
def nothing(module, args): return None
handles = [net.a.register_forward_hook(more).id, net.register_forward_pre_hook(nothing).id]
optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
handles.append(optimizer.register_step_post_hook(lambda *args: None).id)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4)
loader = DataLoader(TensorDataset(torch.randn(24, 4), torch.randint(0, 3, (24,))), batch_size=8, shuffle=True)
alive, losses = [], []
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        out = net(x)
        alive += [weakref.ref(out), weakref.ref(x)]
        loss = F.cross_entropy(out, y)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    scheduler.step()
del out, x, y, loss
told = {"losses": losses, "handles": handles, "alive": sum(ref() is not None for ref in alive), "errors": []}
twin = pickle.loads(pickle.dumps(copy.deepcopy(net)))
for given in ((torch.ones(2, 5),), ()):
    try: net(*given)
    except Exception as error: told["errors"].append([type(error).__name__, str(error)])
net.eval(), twin.eval()
told["twin"] = bool(torch.equal(net(torch.ones(2, 4)), twin(torch.ones(2, 4))))
file = io.BytesIO(); torch.save(net, file); file.seek(0)
told["saved"] = bool(torch.equal(torch.load(file, weights_only=False)(torch.ones(2, 4)), net(torch.ones(2, 4))))
told["state"] = sorted(vars(net)) + sorted(vars(net.a)) + sorted(vars(optimizer)) + sorted(vars(net.a.weight))
told["values"] = hashlib.sha1(b"".join(t.detach().numpy().tobytes() for t in net.state_dict().values())).hexdigest()
told["random"] = hashlib.sha1(torch.get_rng_state().numpy().tobytes()).hexdigest()
gone = weakref.ref(net), weakref.ref(optimizer), weakref.ref(net.a.weight)
del net, twin, optimizer, scheduler
import gc; gc.collect()
told["gone"] = [ref() is None for ref in gone]
for module in (nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5)), nn.MultiheadAttention(4, 2, dropout=0.5)):
    told[type(module).__name__] = torch.jit.script(module).code
traced = torch.jit.trace(nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5)).eval(), torch.ones(1, 2))
told["traced"] = traced.code
from torch.fx import symbolic_trace
told["symbolic"] = symbolic_trace(Net()).code
told["vmap"] = torch.func.vmap(nn.Linear(2, 1))(torch.ones(3, 2)).shape == (3, 1)
class Sub(torch.Tensor):
    seen = []
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.seen.append([func.__name__, func is F.dropout, func is F.scaled_dot_product_attention])
        return super().__torch_function__(func, types, args, kwargs or {})
F.dropout(torch.ones(2).as_subclass(Sub), 0.0)
q = torch.ones(1, 1, 2, 2).as_subclass(Sub)
F.scaled_dot_product_attention(q, q, q)
nn.Linear(2, 2)(q)
told["subclass"] = Sub.seen
sys.stdout.write(json.dumps(told))
"""


def test_a_training_is_the_same_bit_for_bit(tmp_path):
    bare = json.loads(run_program(PROGRAM).stdout)
    result = run_program(PROGRAM, tmp_path, env=OBSERVED)
    observed = json.loads(result.stdout)
    assert "opguard" not in result.stderr
    for name in bare:
        assert bare[name] == observed[name], name
    assert bare["alive"] == 0 and bare["gone"] == [True] * 3 and len(bare["errors"]) == 2
    (log,) = logs_in(tmp_path)
    assert len(log.observed("optimizer")) == 6 and "opguard_faults" not in log.settings


COMPILED = """
import hashlib, json, sys
import torch, torch.nn as nn, torch.nn.functional as F, torch._dynamo as dynamo
graphs = []
def backend(module, inputs):
    graphs.append([module.code, [[n.op, str(n.target), getattr(n.target, "__name__", "")] for n in module.graph.nodes if n.op != "call_function"]])
    return module.forward
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm, self.drop = nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.1)
        self.linear.register_forward_hook(lambda module, args, out: out * 1.5)
    def forward(self, x):
        x = F.dropout(self.drop(self.norm(self.linear(x))), 0.2, self.training)
        q = x.view(1, 1, *x.shape)
        return x + F.scaled_dot_product_attention(q, q, q, dropout_p=0.1 if self.training else 0.0)[0, 0]
torch.manual_seed(0)
net = nn.Sequential(Block(), nn.Sequential(nn.GELU(), nn.Linear(8, 4)))
def train(call, steps):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(steps):
        x = torch.randn(4 + step // 2, 8)
        optimizer.zero_grad()
        call(x).pow(2).sum().backward()
        optimizer.step()
BEGIN
train(torch.compile(net, backend=backend), 4)
net.eval()
with torch.no_grad(): torch.compile(net, backend=backend)(torch.ones(2, 8))
net.train()
net.compile(backend=backend)
train(net, 2)
@torch.compile(backend=backend)
def broken(x):
    y = net[0].drop(x)
    print("here", file=sys.stderr)
    return F.cross_entropy(net[0](y), torch.tensor([0, 1]))
broken(torch.ones(2, 8)).backward()
counters = {name: dict(found) for name, found in dynamo.utils.counters.items()}
values = hashlib.sha1(b"".join(t.detach().numpy().tobytes() for t in net.state_dict().values())).hexdigest()
sys.stdout.write(json.dumps([graphs, counters, values]))
"""
IN_THE_MIDDLE = "train(torch.compile(net, backend=backend), 1)\nimport opguard\nif len(sys.argv) > 1: opguard.recording(sys.argv[1], observe=True).start()"


@pytest.mark.parametrize("begin", ["first", "in the middle"])
def test_compiled_graphs_are_the_same(tmp_path, begin):
    """The recording's hooks of optimizers are there with and without observations; what they do is no matter of this test."""
    source = COMPILED.replace("BEGIN", IN_THE_MIDDLE if begin != "first" else "")
    bare = json.loads(run_program(source).stdout)
    if begin == "first":
        result = run_program(source, tmp_path, env=OBSERVED)
    else:
        result = run_program(source.replace("if len(sys.argv) > 1", "if True").replace("sys.argv[1]", repr(str(tmp_path / "log"))))
    observed = json.loads(result.stdout)
    for one, other in zip(bare, observed):
        assert one == other
    assert len(bare[0]) >= 5
    (log,) = logs_in(tmp_path if begin == "first" else tmp_path / "log")
    assert "opguard_faults" not in log.settings and len(log.observed("optimizer")) == 6
    assert "OptimizedModule" in [kind for (kind,) in rows(log, "module", "type")]


def test_workers_are_not_observed_and_draw_what_they_drew(tmp_path):
    source = """
import random, torch
from torch.utils.data import DataLoader, Dataset
class Data(Dataset):
    def __len__(self): return 8
    def __getitem__(self, i): return torch.rand(2) + torch.nn.Linear(1, 2)(torch.ones(1)).detach() + random.random()
if __name__ == "__main__":
    torch.manual_seed(4)
    for batch in DataLoader(Data(), batch_size=4, num_workers=2, worker_init_fn=lambda i: torch.manual_seed(i)): print(batch.tolist())
"""
    bare = run_program(source).stdout
    assert run_program(source, tmp_path, env=OBSERVED).stdout == bare
    (log,) = logs_in(tmp_path)
    assert len(rows(log, "batch")) == 2 and rows(log, "module") == [] and [row[3] for row in rows(log, "api")] == [4.0]


def test_an_error_of_ours_is_counted_and_harms_nothing(tmp_path):
    source = """
import torch
from opguard.training import modules, steps
def broken(*args): raise KeyError('broken')
modules._own = modules._whole = broken
steps.Seen.end = broken
net = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    net(torch.ones(1, 2)).sum().backward()
    optimizer.step()
print('well')
"""
    result = run_program(source, tmp_path, env=OBSERVED)
    assert result.stdout == "well\n" and result.stderr.count("opguard: warning: not observed") == 1
    (log,) = logs_in(tmp_path)
    assert log.settings["opguard_faults"] == "4" and len(log.observed("api")) >= 2 and log.observed("call") == []


STOPPED = """
import glob, os, struct, threading, time, torch, opguard
from opguard.training import stopping
stopping.PATIENCE = 5.0
file = os.environ['OPGUARD_CHECK_STOP']
def parent():
    for step in (0, 1, 2):
        while not glob.glob(file + '-*[0-9]'): time.sleep(0.001)
        time.sleep(0.05)
        with open('%s-%d' % (file, os.getpid()), 'r+b') as held:
            held.write(struct.pack('<QQ', step + 1, 2 if step == 1 else 0))
        if step == 1: return
threading.Thread(target=parent, daemon=True).start()
net = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
begin = time.monotonic()
try:
    for step in range(4):
        net(torch.ones(1, 2)).sum().backward()
        optimizer.step()
except opguard.InvariantViolation as error:
    print(step, error.step, error, time.monotonic() - begin < 4)
"""


def test_a_violation_stops_the_step_that_has_it(tmp_path):
    env = {**OBSERVED, "OPGUARD_CHECK": "1", "OPGUARD_CHECK_STOP": str(tmp_path / "stop")}
    assert run_program(STOPPED, tmp_path, env=env).stdout == "1 1 step 1 violates an invariant True\n"
    (log,) = logs_in(tmp_path)
    assert len(log.observed("optimizer")) == 2 and log.closed


def test_a_parent_that_is_silent_is_waited_for_once(tmp_path):
    source = STOPPED.replace("threading.Thread(target=parent, daemon=True).start()", "").replace("5.0", "3.0") + "\nprint(time.monotonic() - begin < 6)"
    env = {**OBSERVED, "OPGUARD_CHECK": "1", "OPGUARD_CHECK_STOP": str(tmp_path / "stop")}
    assert run_program(source, tmp_path, env=env).stdout == "True\n"
    assert isinstance(Log(next(tmp_path.glob("*.log"))), Log)
