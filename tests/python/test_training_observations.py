"""What is observed of a training, kind for kind: programs with torch, and their logs as a second reader finds them."""

import json

import pytest
from runtime_log import PROLOGUE, logs_in, record, run_program

OBSERVED = {"OPGUARD_OBSERVATIONS": "1"}
FIRST = PROLOGUE.count("\n") + 1  # the line of a program's first


def observe(source, folder, **env):
    return record(source, folder, env={**OBSERVED, **env})


def rows(log, kind, *fields, **where):
    """The rows of a kind as lists, of those with these values."""
    found = [o.row for o in log.observed(kind) if all(o.row[name] == value for name, value in where.items())]
    return [[row[name] for name in fields] if fields else list(row.values()) for row in found]


def place(source, text, function="<module>"):
    (line,) = [i for i, words in enumerate(source.split("\n")) if text in words]
    return f"<string>:{FIRST + line}:{function}"


NET = """
import json, torch, torch.nn as nn, torch.nn.functional as F
from opguard import _rt
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.head, self.norm, self.drop = nn.Embedding(6, 4), nn.Linear(4, 6, bias=False), nn.BatchNorm1d(4), nn.Dropout(0.25)
        self.head.weight = self.emb.weight
        self.spare = nn.Parameter(torch.zeros(3))
        self.spare.expert = True
    def forward(self, x):
        return self.head(self.drop(self.norm(self.emb(x))))  # forward
"""
STEPS = NET + """
torch.manual_seed(3)
net = Net()
held = [p for n, p in net.named_parameters() if n != 'spare']
optimizer = torch.optim.SGD(held, lr=0.5, weight_decay=0.125)
net.train()
x = torch.tensor([0, 1, 2])
F.cross_entropy(net(x), x).backward()  # first
told = {'before': _rt.hashes(held), 'gradients': _rt.hashes([p.grad for p in held]), 'norms': [float(p.grad.norm()) for p in held]}
optimizer.step()  # step
told['after'] = _rt.hashes(held)
F.cross_entropy(net(x), x).backward()
optimizer.zero_grad()  # zero
optimizer.step()
net.eval()  # eval
with torch.no_grad(): net(x)
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def steps(tmp_path_factory):
    folder = tmp_path_factory.mktemp("steps")
    result = run_program(STEPS, folder, env=OBSERVED)
    assert "opguard" not in result.stderr
    (log,) = logs_in(folder)
    assert "opguard_faults" not in log.settings
    return log, json.loads(result.stdout)


def test_modules_are_said_before_their_calls(steps):
    log, _ = steps
    assert rows(log, "module") == [
        [0, "", "Net", False, 0, 4, None, False, None],
        [1, "emb", "Embedding", True, 0, 1, None, False, None],
        [3, "norm", "BatchNorm1d", True, 0, 2, None, False, 0.1],
        [4, "drop", "Dropout", True, 0, 0, None, False, None],
        [2, "head", "Linear", True, 0, 1, None, False, None],
    ]
    place_of_net = place(STEPS, "# forward", "Net.forward")
    calls = rows(log, "call", "module", "caller", "place")
    assert calls[:4] == [[n, 0, place_of_net] for n in (1, 3, 4, 2)] and calls[4] == [0, None, place(STEPS, "# first")]
    assert [row["drew"] for row in (o.row for o in log.observed("call"))] == [None] * 10 + [False] * 5


def test_forms_are_said_once(steps):
    log, _ = steps
    forms = {row[0]: row[1:] for row in rows(log, "form")}
    called = [forms[form] for (form,) in rows(log, "call", "form")]
    hidden = ["float32", [3, 4], True]
    assert called[:5] == [
        [True, True, None, [["input", "int64", [3], False]], [["out", *hidden]], "float32", True, None],
        [True, True, None, [["input", *hidden]], [["out", *hidden]], "float32", True, None],
        [True, True, None, [["input", *hidden]], [["out", *hidden]], None, None, None],
        [True, True, None, [["input", *hidden]], [["out", "float32", [3, 6], True]], "float32", True, None],
        [True, True, None, [["x", "int64", [3], False]], [["out", "float32", [3, 6], True]], "float32", True, True],
    ]
    assert called[5:10] == called[:5] and len(forms) == 10
    assert [form[:2] for form in called[10:]] == [[False, False]] * 5


def test_parameters_buffers_and_what_changes_of_them(steps):
    log, _ = steps
    fields = ("root", "name", "module", "kind", "attr", "dtype", "shape", "requires_grad", "leaf", "names", "constant", "attributes", "optimizer", "group", "weight_decay", "placement")  # fmt: skip
    found = rows(log, "parameter", *fields)
    held = ["float32", [6, 4], True, True]
    assert found[0] == [0, "spare", 0, "parameter", "spare", "float32", [3], True, True, ["spare"], True, ["expert", True], None, None, None, None]
    assert found[1] == [0, "emb.weight", 1, "parameter", "weight", *held, ["emb.weight", "head.weight"], False, [], 0, 0, 0.125, None]
    assert [row[1] for row in found[2:4]] == ["norm.weight", "norm.bias"] and [row[10] for row in found[2:4]] == [True, True]
    assert found[4:] == [
        [0, "norm.running_mean", 3, "buffer", "running_mean", "float32", [4], False, True, ["norm.running_mean"], False, [], None, None, None, None],
        [0, "norm.running_var", 3, "buffer", "running_var", "float32", [4], False, True, ["norm.running_var"], False, [], None, None, None, None],
        [0, "norm.num_batches_tracked", 3, "buffer", "num_batches_tracked", "int64", [], False, True, ["norm.num_batches_tracked"], False, [], None, None, None, None],
    ]  # fmt: skip
    assert len({storage for (storage,) in rows(log, "parameter", "storage")}) == 7


def test_updates_and_steps(steps):
    log, told = steps
    number = {name: n for name, n in rows(log, "parameter", "name", "number")}
    held = [number[name] for name in ("emb.weight", "norm.weight", "norm.bias")]
    first = [row for row in rows(log, "update")[:7]]
    assert [row[0] for row in first] == held + [number[n] for n in ("spare", "norm.running_mean", "norm.running_var", "norm.num_batches_tracked")]
    for i, row in enumerate(first[:3]):
        assert row[1:6] == [0, told["after"][i], told["before"][i], told["gradients"][i], "float32"]
        assert row[6] == pytest.approx(told["norms"][i]) and row[8:] == [True, True, None]
    assert first[3][2:] == [0, 0, None, None, None, 0.0, False, True, None]  # spare: of zeros, nothing held
    assert [row[8] for row in first[4:]] == [False] * 3  # met as this step began
    second = rows(log, "update")[7:]
    assert [row[4:7] for row in second] == [[None] * 3] * 7
    assert [row[8] for row in second] == [False] * 4 + [True] * 3
    total = sum(n * n for n in told["norms"]) ** 0.5
    one, two = rows(log, "optimizer")
    assert one[:7] == [0, "SGD", [0.5], 3, 0, 3, 1] and one[7] == pytest.approx(total) and one[8:] == [False, place(STEPS, "# step"), True, True, one[12], ""]
    assert two[:9] == [0, "SGD", [0.5], 3, 0, 0, 1, None, False]
    assert [o.step for o in log.observed("optimizer")] == [0, 1] and {o.step for o in log.observed("update")} == {0, 1}


def test_calls_of_the_library(steps):
    log, _ = steps
    calls = [row for row in rows(log, "api") if not row[0].startswith("init.")]
    made = calls.pop(1)
    assert made[:3] == ["optimizer", 0, "SGD"]
    assert [row[0] for row in calls] == ["seed", "train", "backward", "step.begin", "backward", "zero_grad", "step.begin", "eval"]
    assert calls[0][3] == 3.0 and calls[1][1:5] == [0, "Net", None, True] and calls[7][1:5] == [0, "Net", None, False]
    assert calls[7][6] == place(STEPS, "# eval")
    assert calls[2][4:6] == [True, 0.0] and calls[4][4:6] == [True, 3.0]  # all three gradients were used by the step
    assert calls[2][3] > 0 and calls[3][1:3] == [0, "SGD"]
    assert calls[5] == ["zero_grad", 0, "SGD", 3, True, None, place(STEPS, "# zero")]
    number = {name: n for name, n in rows(log, "parameter", "name", "number")}
    inits = [row[:2] for row in rows(log, "api") if row[0].startswith("init.")]
    assert inits[0] == ["init.normal_", number["emb.weight"]] and ["init.ones_", number["norm.weight"]] in inits
    assert rows(log, "random", "function", "p", "asked", "module", "grad", "module_training") == [["dropout", 0.25, True, 4, True, True]] * 2 + [
        ["dropout", 0.25, False, 4, False, False]
    ]


SEVERAL = NET + """
one, two = nn.Linear(2, 2), nn.Linear(2, 2)
a, b = torch.optim.Adam(one.parameters(), lr=0.1), torch.optim.SGD(two.parameters(), lr=torch.tensor(0.5))
loose = torch.zeros(2, requires_grad=True)
for step in range(2):
    two(one(torch.ones(1, 2))).sum().backward()
    a.step(); b.step()
    if step == 0:
        two.bias.requires_grad_(False)
        b.add_param_group({'params': [loose], 'weight_decay': 0.25})
        late = nn.Linear(2, 1)
a.zero_grad(set_to_none=False); a.zero_grad(); one.zero_grad()
flat = nn.Linear(2, 1)
optimizer = torch.optim.LBFGS(flat.parameters(), max_iter=2)
def closure():
    optimizer.zero_grad()
    loss = flat(torch.ones(1, 2)).pow(2).sum()
    loss.backward()
    return loss
optimizer.step(closure)
torch.nn.utils.clip_grad_norm_(flat.parameters(), 0.5)
torch.nn.utils.clip_grad_value_(flat.parameters(), 0.25)
scheduler = torch.optim.lr_scheduler.StepLR(a, 1); scheduler.step()
opguard = __import__('opguard')
assert opguard.invariant('small', step < 1, step=step, loss=torch.tensor(2.0), words='x') is False
seen = F.scaled_dot_product_attention(*[torch.ones(1, 2, 2)] * 3, dropout_p=0.5)
F.dropout(seen, 0.5, False)
"""


def test_several_optimizers_closures_groups_and_strangers(tmp_path):
    log = observe(SEVERAL, tmp_path)
    assert "opguard_faults" not in log.settings
    found = rows(log, "optimizer", "number", "type", "lr", "held", "strangers", "trainable_left")
    assert found[:4] == [[0, "Adam", [pytest.approx(0.1)], 2, 0, 0], [1, "SGD", [0.5], 2, 0, 0], [0, "Adam", [pytest.approx(0.1)], 2, 0, 0], [1, "SGD", [0.5, 0.5], 3, 1, 2]]  # late is of none
    assert found[4][:4] == [2, "LBFGS", [1.0], 2]
    names = rows(log, "parameter", "name", "requires_grad", "optimizer", "group", "weight_decay")
    assert ["Linear.bias", True, 1, 0, 0] in names and ["Linear.bias", False, 1, 0, 0] in names
    assert [None, True, 1, 1, 0.25] in names  # the one of no module
    lbfgs = rows(log, "update", optimizer=2)
    assert [row[5] for row in lbfgs] == ["float32"] * 2 and all(row[8] for row in lbfgs)
    calls = rows(log, "api")
    zeroed = [row[1:5] for row in calls if row[0] == "zero_grad"]
    assert zeroed[:3] == [[0, "Adam", 2, False], [0, "Adam", 0, True], [0, "Linear", 0, True]]
    assert [row[3] for row in calls if row[0] == "clip_grad_norm"] == [0.5] and [row[5] for row in calls if row[0] == "clip_grad_norm"][0] >= 0
    assert [row[3] for row in calls if row[0] == "clip_grad_value"] == [0.25]
    assert [row[1:3] for row in calls if row[0] == "scheduler"] == [[0, "StepLR"]]
    assert rows(log, "told") == [["small", False, ["step", 1, "loss", 2.0, "words", "x"], place(SEVERAL, "'small'")]]
    assert rows(log, "random", "function", "p", "asked", "module") == [["scaled_dot_product_attention", 0.5, True, None], ["dropout", 0.5, False, None]]


SCALED = """
import torch
net = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler('cpu', init_scale=4.0)
for x in (1.0, float('inf')):
    optimizer.zero_grad()
    scaler.scale(net(torch.full((1, 2), x)).sum()).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)  # scaled
    scaler.update()
with torch.autocast('cpu', dtype=torch.bfloat16): net(torch.ones(1, 2))
"""


def test_steps_that_a_scaler_leaves_out(tmp_path):
    log = observe(SCALED, tmp_path)
    assert rows(log, "optimizer", "changed", "skipped") == [[2, False], [0, True]]
    assert rows(log, "optimizer", "place")[1] == [place(SCALED, "# scaled")]
    calls = [row for row in rows(log, "api", "name", "object", "number", "flag") if row[0].startswith("scaler")]
    assert calls == [
        ["scaler.scale", 0, 4.0, None], ["scaler.unscale", 0, 4.0, False], ["scaler.step", 0, 4.0, False], ["scaler.update", 0, 4.0, None],
        ["scaler.scale", 0, 4.0, None], ["scaler.unscale", 0, 4.0, True], ["scaler.step", 0, 4.0, True], ["scaler.update", 0, 2.0, None],
    ]  # fmt: skip
    assert rows(log, "form", "autocast", "outputs")[-1] == ["bfloat16", [["out", "bfloat16", [1, 1], True]]]


LOADED = """
import torch
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
data = TensorDataset(torch.arange(10.), torch.arange(10))
loader = DataLoader(data, batch_size=4, shuffle=True, num_workers=WORKERS)
for epoch in range(2):
    for x, y in loader: pass  # taken
for x, y in loader: break
list(DataLoader(['a', 'b', 'a'], batch_size=3))
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_loaders_batches_and_passes(tmp_path, workers):
    log = observe(LOADED.replace("WORKERS", str(workers)), tmp_path)  # of the workers there is no log
    at = place(LOADED, "# taken")
    assert rows(log, "loader") [0] == [0, "DataLoader", 4, False, workers, "RandomSampler", True, False, 10, 3, at]
    assert rows(log, "pass", "loader", "pass", "taken", "ended") == [[0, 0, 3, True], [0, 1, 3, True], [1, 0, 1, True], [0, 2, 1, False]]
    batches = rows(log, "batch", loader=0)
    assert [row[1:3] for row in batches] == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2], [2, 0]] and batches[0][5] == at
    assert batches[0][4] == [["batch[0]", "float32", [4], False], ["batch[1]", "int64", [4], False]]
    one, two = ([digest for row in batches for digest in row[3] if row[1] == number] for number in (0, 1))
    assert len(set(one)) == 10 and set(one) == set(two) and one != two
    (texts,) = rows(log, "batch", "rows", loader=1)
    assert texts[0][0] == texts[0][2] != texts[0][1]


SAVED = NET + """
import copy, io, os, sys, tempfile
net = Net().eval()
net(torch.tensor([0, 1]))
ema = copy.deepcopy(net)
ema(torch.tensor([0, 1]))
with torch.no_grad(): ema.norm.weight.add_(1)
folder = tempfile.mkdtemp()
torch.save({'model': net.state_dict(), 'epoch': 3}, folder + '/whole')  # whole
torch.save({'module.' + k: v for k, v in ema.state_dict().items()}, folder + '/ema')
part = {k: v.clone() for k, v in net.state_dict().items()}
part['norm.bias'] += 1
del part['spare']
torch.save(part, folder + '/part')
torch.save({'other': torch.ones(2)}, io.BytesIO())
half = {k: v.half() if v.is_floating_point() else v for k, v in net.state_dict().items()}
net.load_state_dict({k: v for k, v in half.items() if k != 'spare'}, strict=False)  # load
net.load_state_dict(torch.load(folder + '/whole')['model'])
try: net.load_state_dict({})
except RuntimeError: pass
sys.stdout.write(folder)
"""


def test_checkpoints(tmp_path):
    log = observe(SAVED, tmp_path)
    saves = [[row[0].rpartition("/")[2], *row[1:6]] for row in rows(log, "save")]
    assert saves[0] == ["whole", 8, 16, 8, [], []] and rows(log, "save", "place")[0] == [place(SAVED, "# whole")]
    assert saves[1] == ["ema", 8, 16, 8, [], []]
    assert saves[2] == ["part", 7, 16, 6, ["spare"], ["norm.bias"]]
    assert saves[3] == ["<BytesIO>", 1, 16, 0, [], []]
    assert rows(log, "load", "of", "own") == [["module", 1], ["module", 0]]
    assert rows(log, "load", "type", "given", "missing", "unexpected", "unlike", "place") == [
        ["Net", 7, 1, 0, [], place(SAVED, "# load")],
        ["Net", 8, 0, 0, [], rows(log, "load", "place")[1][0]],
    ]


DRAWING = """
import torch, torch.nn as nn
class Noisy(nn.Module):
    def forward(self, x): return x + torch.randn(2)
class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), Noisy()
    def forward(self, x): return self.b(self.a(x))
net = Twice().eval()
net(torch.ones(1, 2))
net.b.train(); net(torch.ones(1, 2))
"""


def test_who_draws_in_evaluation(tmp_path):
    log = observe(DRAWING, tmp_path)
    names = {number: name for number, name in rows(log, "module", "number", "name")}
    calls = [[names[number], drew] for number, drew in rows(log, "call", "module", "drew")]
    assert calls == [["a", False], ["b", True], ["", True], ["a", False], ["b", None], ["", True]]
    uniform = {row[0]: row[8] for row in rows(log, "form")}
    assert [uniform[form] for (form,) in rows(log, "call", "form")] == [None, None, True, None, None, False]


def test_a_module_that_is_made_anew_takes_the_number_of_a_dead_one(tmp_path):
    source = "import torch\nfor _ in range(50): torch.nn.CrossEntropyLoss()(torch.ones(2, 3), torch.tensor([0, 1]))"
    log = observe(source, tmp_path)
    assert rows(log, "module", "number", "type") == [[0, "CrossEntropyLoss"]] and len(rows(log, "call")) == 50


def test_a_forked_child_says_everything_again(tmp_path):
    source = """
import os, torch
net = torch.nn.Linear(2, 1)
net(torch.ones(1, 2))
if os.fork() == 0:
    net(torch.ones(1, 2))
    os._exit(0)
os.wait()
"""
    run_program(source, tmp_path, env=OBSERVED)
    logs = logs_in(tmp_path)
    assert [[len(rows(log, kind)) for kind in ("module", "form", "call")] for log in logs] == [[1, 1, 1]] * 2


def test_a_window_of_steps_is_whole_in_itself(tmp_path):
    source = """
import torch
net = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    net(torch.ones(1, 2)).sum().backward()
    optimizer.step()
"""
    log = observe(source, tmp_path, OPGUARD_RECORD_STEPS="2..2")
    assert [len(rows(log, kind)) for kind in ("module", "call", "parameter", "update", "optimizer")] == [1, 1, 2, 2, 1]
    assert {o.step for o in log.observations} == {2}


def test_recording_may_observe(tmp_path):
    source = f"""
import opguard, torch
opguard.invariant('nobody looks', False)
with opguard.recording({str(tmp_path / "log")!r}, observe=True):
    torch.nn.Linear(2, 1)(torch.ones(1, 2))
with opguard.recording({str(tmp_path / "second")!r}, observe=True):
    torch.nn.Linear(2, 1)(torch.ones(1, 2))
with opguard.recording({str(tmp_path / "third")!r}):
    torch.nn.Linear(2, 1)(torch.ones(1, 2)).sum().backward()
"""
    run_program(source)
    for name in ("log", "second"):
        (log,) = logs_in(tmp_path / name)
        assert len(rows(log, "module")) == len(rows(log, "call")) == 1 and not rows(log, "told")
    (log,) = logs_in(tmp_path / "third")
    assert log.observations == []


CHANCE = """
import io, torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
torch.manual_seed(1)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 4, batch_first=True)
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))] * 2)
        self.head = nn.Linear(4, 2)
    def forward(self, x, keep):
        x, _ = self.rnn(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False, preserve_rng_state=keep)
        return self.head(x)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(5):
    if step == 3:
        torch.manual_seed(7)
    if step == 4:
        torch.manual_seed(7)  # the same again
    optimizer.zero_grad()
    net(torch.randn(2, 3, 4), step > 0).sum().backward()
    optimizer.step()
few = {name: tensor for name, tensor in net.state_dict().items() if name.startswith('blocks')}
torch.save(few, io.BytesIO())
few['rnn'] = {name[4:]: tensor for name, tensor in net.state_dict().items() if name.startswith('rnn')}
torch.save(few, io.BytesIO())
"""


def test_what_is_drawn_again(tmp_path):
    log = observe(CHANCE, tmp_path)
    drawn = [[row["state"] for row in (o.row for o in log.observed("random")) if row["again"] is again] for again in (False, True)]
    assert len(drawn[0]) == len(drawn[1]) == 10 and None not in drawn[0] + drawn[1]
    # The first step does not preserve the generator's state; all that come do.
    assert not set(drawn[0][:2]) & set(drawn[1][:2]) and sorted(drawn[0][2:]) == sorted(drawn[1][2:])
    assert rows(log, "optimizer", "noise_fresh") == [[True], [True], [True], [True], [False]]


def test_what_a_module_says_of_itself(tmp_path):
    log = observe(CHANCE, tmp_path)
    said = {row["name"]: (row["batch_first"], row["repeated"]) for row in (o.row for o in log.observed("module"))}
    assert said["rnn"] == (True, False) and said["blocks.0"] == (None, True) and said["blocks.0.0"] == (None, False)
    # The trained ones are 8: two of them are few, and what a model lacks is told where most are there.
    assert rows(log, "save", "trained_missing") == [[None], [["head.weight", "head.bias"]]]


TEXTS = """
import torch
from torch.utils.data import DataLoader
END = 9
def batches(label):
    def collate(texts):
        width = max(map(len, texts))
        tokens = torch.full((len(texts), width), END)
        mask = torch.zeros(len(texts), width, dtype=torch.long)
        for row, text in enumerate(texts):
            tokens[row, : len(text)], mask[row, : len(text)] = torch.tensor(text), 1
        return {"input_ids": tokens, "attention_mask": mask, "labels": label(tokens, mask)}
    return collate
def by_mask(tokens, mask): return tokens.masked_fill(mask == 0, -100)
def by_token(tokens, mask): return tokens.masked_fill(tokens == END, -100)
def shifted(tokens, mask): return torch.cat([tokens[:, 1:], torch.full((len(tokens), 1), -100)], 1)
for texts in ([[1, 2, END], [3, END]], [[1, 2, END], [3, 4, END]]):
    for label in (by_mask, by_token, shifted):
        for batch in DataLoader(texts, 2, collate_fn=batches(label)): pass
for batch in DataLoader([{"x": torch.ones(2)}], 2): pass  # a dictionary of other things
"""


def test_an_end_that_is_no_label(tmp_path):
    log = observe(TEXTS, tmp_path)
    assert rows(log, "batch", "ends_are_targets") == [[True], [False], [None], [None], [None], [None], [None]]
    assert "opguard_faults" not in log.settings


ALIASED = """
import torch
class Slow(torch.optim.Optimizer):
    def __init__(self, base, copies):
        self.base, self.param_groups, self.defaults = base, base.param_groups, base.defaults
        self.slow = {p: p.detach().clone() if copies else p.detach() for g in self.param_groups for p in g["params"]}
    def step(self): self.base.step()
net = torch.nn.Linear(2, 2)
slow = Slow(torch.optim.SGD(net.parameters(), lr=0.1), COPIES)
net(torch.ones(1, 2)).sum().backward()
slow.step()
"""


@pytest.mark.parametrize("copies, aliased", [(True, ""), (False, "slow")])
def test_an_optimizers_own_tensors(tmp_path, copies, aliased):
    assert rows(observe(ALIASED.replace("COPIES", str(copies)), tmp_path), "optimizer", "aliased") == [[aliased]]


AS_LOADED = """
import torch
net = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
state = {name: tensor.clone() for name, tensor in net.state_dict().items()}
for step in range(3):
    if step: net.load_state_dict(state)
    if step == 2: net.bias.data.add_(1)
    net(torch.ones(1, 2)).sum().backward()
    optimizer.step()
net.load_state_dict(net.state_dict())  # as the step has left it
import tempfile, torch.distributed.checkpoint as dcp
folder = tempfile.mkdtemp()
dcp.save(net.state_dict(), checkpoint_id=folder)
state = net.state_dict()
dcp.load(state, checkpoint_id=folder)
net.load_state_dict(state)  # filled in place meanwhile
class Job:
    def state_dict(self): return net.state_dict()
    def load_state_dict(self, state): net.load_state_dict(state)
dcp.save({"job": Job()}, checkpoint_id=folder + "/job")
dcp.load({"job": Job()}, checkpoint_id=folder + "/job")  # filled, then handed over by load() itself
"""


def test_a_step_behind_a_load(tmp_path):
    log = observe(AS_LOADED, tmp_path)
    assert rows(log, "update", "as_loaded") == [[None], [None], [True], [True], [True], [False]]
    assert rows(log, "load", "own") == [[0], [0], [2], [0], [0]]
