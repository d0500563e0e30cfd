"""What `identical` means: programs whose losses and parameters agree and that are not the same, and their negative twins."""
import json

import pytest

BATCH_NORM = """
import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 16), nn.Linear(16, 4)
        self.register_buffer("mean", torch.zeros(16))
        self.register_buffer("var", torch.ones(16))

    def forward(self, x):
        h = F.batch_norm(self.a(x), self.mean, self.var, training=self.training, momentum=0.1)
        return self.b(F.relu(h))

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    x, y = torch.randn(32, 8), torch.randint(0, 4, (32,))
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
MODULE = (
    BATCH_NORM.replace('self.register_buffer("mean", torch.zeros(16))', "self.norm = nn.BatchNorm1d(16, momentum=0.1)")
    .replace('        self.register_buffer("var", torch.ones(16))\n', "")
    .replace("F.batch_norm(self.a(x), self.mean, self.var, training=self.training, momentum=0.1)", "self.norm(self.a(x))")
)
AVERAGE = """
import torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
average = model.weight.detach().clone()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    loss = model(torch.ones(3, 4)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    with torch.no_grad():
        average.mul_(0.9).add_(model.weight, alpha=0.1)
    unread = model.weight.detach() * 1.5
torch.save({"average": average}, "/dev/null")
"""


def diff(opguard, tmp_path, good, bad, *options):
    for name, text in (("a", good), ("b", bad)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_text(text)
    out = tmp_path / "answer.json"
    done = opguard("diff", tmp_path / "a", tmp_path / "b", "--json", out, "--color", "never", *options, "--", "python", "train.py")
    return done, json.loads(out.read_text())


def line_of(text, part):
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)


def test_another_momentum_of_batch_norm_is_named_at_the_call(opguard, tmp_path):
    bad = BATCH_NORM.replace("momentum=0.1", "momentum=0.9")
    done, answer = diff(opguard, tmp_path, BATCH_NORM, bad)
    assert done.returncode == 1 and answer["why"] == "a buffer differs after a step: mean"
    assert answer["pivot"]["kind"] == "scalar"
    assert answer["pivot"]["b"]["line"] == line_of(bad, "F.batch_norm")


def test_another_momentum_of_a_module_is_named_where_it_is_set(opguard, tmp_path):
    bad = MODULE.replace("momentum=0.1", "momentum=0.9")
    done, answer = diff(opguard, tmp_path, MODULE, bad)
    assert done.returncode == 1 and answer["why"].startswith("a buffer differs after a step: norm.running_")
    # Proven by running with run a's text; the operator that uses it is told beside it.
    assert answer["pivot"]["b"]["line"] == line_of(bad, "momentum=0.9")
    assert answer["pivot"]["b"]["operator_at"]["line"] == line_of(bad, "self.norm(")


def test_another_decay_of_an_average_is_no_identical_run(opguard, tmp_path):
    bad = AVERAGE.replace("mul_(0.9)", "mul_(0.8)")
    done, answer = diff(opguard, tmp_path, AVERAGE, bad)
    assert done.returncode == 1, done.stdout
    assert answer["pivot"]["b"]["line"] == line_of(bad, "mul_(0.8)")


@pytest.mark.parametrize("strict", [False, True])
def test_what_reaches_no_model_value_is_listed_and_fails_strict(opguard, tmp_path, strict):
    bad = AVERAGE.replace("* 1.5", "* 2.5")
    done, answer = diff(opguard, tmp_path, AVERAGE, bad, *["--strict"] * strict)
    assert answer["verdict"] == "identical" and done.returncode == strict, done.stdout
    assert answer["unreached_pairs"] == len(answer["unreached"]) == 3
    assert {pair["b"]["line"] for pair in answer["unreached"]} == {line_of(bad, "unread =")}
    assert done.stdout.startswith("identical: every model value of the two runs agrees; 3 pairs differ and reach none of it\n")
    assert "1.5 in a" in done.stdout and "2.5 in b" in done.stdout


def test_a_program_is_identical_to_itself_even_if_strict(opguard, tmp_path):
    done, answer = diff(opguard, tmp_path, MODULE, MODULE, "--strict")
    assert done.returncode == 0 and answer["why"] == "every model value of the two runs agrees"
    assert answer["unreached"] == []
