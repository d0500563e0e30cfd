"""The text that is the cause, proven by running b with a's in its place: numbers, flags, objects and orders that no operator carries.

The pivot is an operator whose own text is the same in both programs. Beside each fault stand a helper that was taken out, a
renamed variable and a moved statement: these are taken back as well, and heal nothing.
"""
import json

import pytest

PROGRAM = '''\
import os

import torch
from torch import nn
from torch.nn import functional as F


def plain(x, weight, scale=None):
    if scale is None:
        scale = x.shape[-1] ** -0.5
    return (x @ weight) * scale


KINDS = {"plain": plain}


class Mixer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.eye(width))
        self.scale = width**-0.5
        angle = torch.arange(width) / width
        cos, sin = angle.cos(), angle.sin()
        self.register_buffer("cos", cos)
        self.register_buffer("sin", sin)

    def forward(self, x):
        turned = x * self.cos + x.flip(-1) * self.sin
        return KINDS["plain"](turned, self.weight, scale=self.scale)


class Net(nn.Module):
    def __init__(self, width=8, causal=False):
        super().__init__()
        self.causal = causal
        self.first = nn.Linear(width, width)
        self.mixer = Mixer(width)
        self.last = nn.Linear(width, 4)

    def forward(self, x):
        hidden = torch.tanh(self.first(x))
        if self.causal:
            hidden = hidden.cumsum(0)
        return self.last(self.mixer(hidden))


def groups(model):
    decay, rest = [], []
    for name, p in model.named_parameters():
        if p.ndim <= 1:
            rest.append(p)
        else:
            decay.append(p)
    return [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]


def loss_of(model, x, y):
    scores = model(x)
    smoothing = float(os.environ.get("SMOOTHING", "0"))
    return F.cross_entropy(scores, y, label_smoothing=smoothing)


torch.manual_seed(0)
model = Net(causal=False)
optimizer = torch.optim.AdamW(groups(model), lr=1e-2)
batches = [(torch.randn(6, 8), torch.randint(0, 4, (6,))) for _ in range(3)]
for x, y in batches:
    loss = loss_of(model, x, y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(loss.item())
'''

# Harmless, in b: a helper, a renamed variable, a statement in another place.
REFACTORED = [
    ("def loss_of(model, x, y):\n    scores = model(x)", "def _scores(model, x):\n    return model(x)\n\n\ndef loss_of(model, x, y):\n    scores = _scores(model, x)"),
    ("        hidden = torch.tanh(self.first(x))\n        if self.causal:\n            hidden = hidden.cumsum(0)\n        return self.last(self.mixer(hidden))",
     "        h = torch.tanh(self.first(x))\n        if self.causal:\n            h = h.cumsum(0)\n        return self.last(self.mixer(h))"),
    ("        self.scale = width**-0.5\n        angle = torch.arange(width) / width\n", "        angle = torch.arange(width) / width\n        self.scale = width**-0.5\n"),
]  # fmt: skip

FAULTS = {
    "an argument through a table of functions": ("scale=self.scale)", "scale=1.0)"),
    "which parameters decay": ("if p.ndim <= 1:", "if p.ndim < 1:"),
    "what an optimizer was given": ("            decay.append(p)", "            decay.append(p.detach())"),
    "a buffer under another's name": ('register_buffer("sin", sin)', 'register_buffer("sin", cos)'),
    "the order of batches": ("for x, y in batches:", "for x, y in batches[::-1]:"),
    "a flag of a constructor": ("Net(causal=False)", "Net(causal=True)"),
}


def edited(text, edits):
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def line_of(text, words):
    found = [i for i, line in enumerate(text.splitlines(), 1) if words in line]
    assert len(found) == 1, words
    return found[0]


@pytest.fixture
def diff(opguard, tmp_path):
    """diff(text of a, text of b, option, ...) -> (JSON, stdout)."""

    def run(a, b, *options, command=("--", "python", "train.py")):
        for name, text in (("a", a), ("b", b)):
            (tmp_path / name).mkdir()
            (tmp_path / name / "train.py").write_text(text)
        out = tmp_path / "answer.json"
        done = opguard("diff", tmp_path / "a", tmp_path / "b", "--json", out, "--color", "never", *options, *command)
        assert out.exists(), done.stdout + done.stderr
        return json.loads(out.read_text()), done.stdout + done.stderr

    return run


@pytest.mark.parametrize("refactored", [False, True], ids=["alone", "refactored"])
@pytest.mark.parametrize("name", FAULTS)
def test_the_text_is_named(name, refactored, diff):
    old, new = FAULTS[name]
    b = edited(PROGRAM, [(old, new), *(REFACTORED if refactored else [])])
    answer, text = diff(PROGRAM, b)
    assert answer["verdict"] == "diverged" and answer["proof"]["state"] == "proven", text
    place = answer["pivot"]["text"]["b"]
    assert place["line"] == line_of(b, new.strip()), text
    assert answer["pivot"]["text"]["a"]["line"] == line_of(PROGRAM, old.strip())
    assert answer["proof"]["runs"] <= 3 and f"train.py:{place['line']}" in answer["proof"]["why"]
    assert answer["pivot"]["causal"] is True and f"\n  proven: {answer['proof']['why']}" in text
    # Both places are told: the text, and the operator where it shows.
    assert "shows at: train.py:" in text or "only run" in text, text


def test_a_cause_outside_the_text_is_no_text(diff):
    b = edited(PROGRAM, REFACTORED)
    answer, text = diff(PROGRAM, b, "--run-a", "python {tree}/train.py", "--run-b", "SMOOTHING=0.1 python {tree}/train.py", command=())
    assert answer["verdict"] == "diverged", text
    assert answer["pivot"]["text"] is None
    assert answer["pivot"]["b"]["line"] == line_of(b, "F.cross_entropy(")


def test_a_changed_operator_is_named_itself(diff):
    b = edited(PROGRAM, [("x.flip(-1) * self.sin", "x.flip(-1) * self.cos")])
    answer, text = diff(PROGRAM, b)
    assert answer["pivot"]["text"] is None and answer["proof"]["state"] == "proven", text
    assert answer["pivot"]["b"]["line"] == line_of(b, "turned = ")


def test_no_further_run_where_none_is_allowed(diff):
    old, new = FAULTS["which parameters decay"]
    answer, text = diff(PROGRAM, edited(PROGRAM, [(old, new)]), "--no-prove")
    assert answer["pivot"]["text"] is None and "run of b with" not in text


LOADER = '''\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Pairs:
    def __init__(self, count):
        self.order = list(range(count))

    def __len__(self):
        return len(self.order) // 2

    def __iter__(self):
        for i in range(len(self)):
            yield self.order[2 * i : 2 * i + 2]


torch.manual_seed(0)
model = nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = iter(DataLoader(TensorDataset(torch.randn(8, 8)), batch_sampler=Pairs(8)))
for _ in range(3):
    (x,) = next(loader)
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(loss.item())
'''


def test_the_text_that_runs_inside_an_operator_is_named(diff):
    """next() is given the same and gives something else: what it runs is another text."""
    b = edited(LOADER, [("for i in range(len(self)):", "for i in range(len(self))[::-1]:")])
    answer, text = diff(LOADER, b)
    assert answer["proof"]["state"] == "proven", text
    assert answer["pivot"]["text"]["b"]["line"] == line_of(b, "[::-1]"), text


def test_text_is_asked_as_a_whole_where_no_part_of_it_is_likelier(diff):
    """Four hunks that ran before, as near as one another, and one run for them beside the two that values need."""
    a = LOADER.replace("batch_sampler=Pairs(8)", "batch_size=2")
    a = a.replace("torch.manual_seed(0)\n", "torch.manual_seed(0)\nwidth = 8\nrows = width\nprint(rows)\nrate = 0.1\n").replace("lr=0.1", "lr=rate")
    edits = [("width = 8\n", "width = 4 + 4\n"), ("print(rows)", "print(abs(rows))"), ("rate = 0.1", "rate = 1 / 10"), (", batch_size=2", "")]
    answer, text = diff(a, edited(a, edits))
    assert answer["pivot"]["kind"] == "structure" and answer["proof"]["state"] == "proven", text
    assert answer["proof"]["runs"] <= 3
    assert answer["pivot"]["text"]["b"]["line"] == line_of(a, "batch_size"), text


def test_the_nearest_of_many_suspects_are_asked(diff):
    settings = "".join(f"N_{i} = {i}\nprint(N_{i})\n" for i in range(25))
    old, new = FAULTS["an argument through a table of functions"]
    a = settings + PROGRAM
    b = edited(a, [(old, new), *((f"N_{i} = {i}\n", f"N_{i} = {i} + 0\n") for i in range(25))])
    answer, text = diff(a, b)
    assert "more places" in text and answer["proof"]["state"] == "proven", text
    assert answer["pivot"]["text"]["b"]["line"] == line_of(b, new), text


CLIP = '''\
import torch
from torch import nn


def clip(grads, limit):
    norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(grads)))
    scale = torch.clamp(limit / norm.add(0.5), max=1.0)
    torch._foreach_mul_(grads, scale)
    return norm


torch.manual_seed(0)
model = nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    model(torch.randn(6, 8)).square().mean().backward()
    print(clip([p.grad for p in model.parameters()], 0.1).item())
    optimizer.step()
    optimizer.zero_grad()
'''


def test_of_lines_exchanged_together_the_operator_s_own_is_named(diff):
    """A name of b alone makes one group of four lines; the operator that reads another tensor stands in one of them."""
    b = CLIP.replace("    norm = torch.", "    lib = torch\n    norm = lib.").replace("scale = torch.clamp", "scale = lib.clamp")
    b = b.replace("    torch._foreach_mul_(grads, scale)", "    lib._foreach_mul_(grads, norm)")
    answer, text = diff(CLIP, b)
    assert answer["proof"]["state"] == "proven" and answer["pivot"]["text"] is None, text
    assert "as in a" in answer["proof"]["why"], text
    assert answer["pivot"]["b"]["line"] == line_of(b, "_foreach_mul_"), text


ARGUMENTS = '''\
import torch
from torch import nn

torch.manual_seed(0)


def attend(module, query, key, value, scale):
    return torch.softmax(query @ key.T * scale, -1) @ value


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(8, 8) for _ in range(3))
        self.attend = attend

    def forward(self, x):
        query, key, value = self.q(x), self.k(x), self.v(x)
        return self.attend(
            self,
            query,
            key,
            value,
            scale=0.3,
        )


model = Attention()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    loss = model(torch.randn(6, 8)).square().mean()
    loss.backward()
    print(loss.item())
    optimizer.step()
    optimizer.zero_grad()
'''


def test_arguments_on_lines_of_their_own_that_changed_places(diff):
    """One line left its place and came to another: in one of them alone the call would have it twice."""
    b = ARGUMENTS.replace("            key,\n            value,\n", "            value,\n            key,\n")
    answer, text = diff(ARGUMENTS, b)
    assert answer["proof"]["state"] == "proven" and "as in a" in answer["proof"]["why"], text
    for side, source in (("a", ARGUMENTS), ("b", b)):
        told = (answer["pivot"]["text"] or answer["pivot"])[side]["line"]
        assert line_of(source, "return self.attend(") <= told < line_of(source, "scale=0.3,"), text


AVERAGE = '''\
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 4)
average = [p.detach().clone() for p in model.parameters()]
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    loss = model(torch.randn(6, 8)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    with torch.no_grad():
        for held, p in zip(average, model.parameters()):
            held.lerp_(p, 0.1)
    print(loss.item(), sum(held.sum().item() for held in average))
'''


def test_an_operator_that_one_run_alone_has_is_proven_by_its_text(diff):
    """No value of a can be put where b computes nothing."""
    answer, text = diff(AVERAGE, AVERAGE.replace("held.lerp_(p, 0.1)", "pass"))
    assert answer["pivot"]["a"]["line"] == line_of(AVERAGE, "held.lerp_"), text
    assert answer["proof"]["state"] == "proven" and "as in a" in answer["proof"]["why"], text
