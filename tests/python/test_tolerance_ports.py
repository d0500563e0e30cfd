"""`opguard diff --tolerance` of a port: no name is common, values and order tell, and a fault is named at its statement."""

import json
import sys

import pytest

pytest.importorskip("torch")

REFERENCE = """
import math
import torch
import torch.nn as nn
import torch.nn.functional as F

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q_proj, self.k_proj = nn.Linear(16, 16), nn.Linear(16, 16)
        self.v_proj, self.o_proj = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x):
        q, k, v = (p(x).view(2, 8, 2, 8).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(8)
        mask = torch.full((8, 8), -1e9).triu(1)
        weights = torch.softmax(scores + mask, dim=-1)
        return self.o_proj(torch.matmul(weights, v).transpose(1, 2).reshape(2, 8, 16))

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln, self.self_attn, self.ln2 = nn.LayerNorm(16), Attention(), nn.LayerNorm(16)
        self.fc1, self.fc2 = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x):
        x = x + self.self_attn(self.ln(x))
        return x + self.fc2(F.gelu(self.fc1(self.ln2(x)), approximate="tanh"))

class Reference(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers, self.head = nn.ModuleList(Layer() for _ in range(2)), nn.Linear(16, 16)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)

def weights():
    torch.manual_seed(0)
    model = Reference()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.1)
    return model

def batch(step):
    g = torch.Generator().manual_seed(100 + step)
    return torch.randn(2, 8, 16, generator=g), torch.randn(2, 8, 16, generator=g)

if __name__ == "__main__":
    torch.set_num_threads(1)
    model = weights()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, eps=1e-3, foreach=False)
    for step in range(2):
        x, y = batch(step)
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
"""

PORT = """
import torch
from torch import nn
from reference import batch, weights

class Conv1D(nn.Module):
    def __init__(self, rows, columns):
        super().__init__()
        self.kernel, self.shift = nn.Parameter(torch.empty(rows, columns)), nn.Parameter(torch.empty(columns))

    def forward(self, x):
        return x @ self.kernel + self.shift

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(16), nn.LayerNorm(16)
        self.qkv, self.wo, self.up, self.down = nn.Linear(16, 48), nn.Linear(16, 16), nn.Linear(16, 32), Conv1D(32, 16)

    def attend(self, x):
        q, k, v = self.qkv(x).split(16, dim=-1)
        q, k, v = (t.reshape(2, 8, 2, 8).permute(0, 2, 1, 3) for t in (q, k, v))
        s = torch.einsum("bhqd,bhkd->bhqk", q, k)
        s = s * 8**-0.5
        hidden = torch.ones(8, 8, dtype=torch.bool).triu(1)
        s = s.masked_fill(hidden, float("-inf"))
        p = s.softmax(-1)
        o = torch.einsum("bhqk,bhkd->bqhd", p, v)
        return self.wo(o.flatten(2))

    def forward(self, x):
        h = x + self.attend(self.n1(x))
        z = self.up(self.n2(h))
        z = nn.functional.gelu(z, approximate="tanh")
        z = self.down(z)
        return h + z

class Port(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks, self.out = nn.ModuleList(Block() for _ in range(2)), nn.Linear(16, 16)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.out(x)

torch.set_num_threads(1)
theirs, mine = weights(), Port()
with torch.no_grad():
    mine.out.load_state_dict(theirs.head.state_dict())
    for a, b in zip(theirs.layers, mine.blocks):
        at = a.self_attn
        b.qkv.weight.copy_(torch.cat([at.q_proj.weight, at.k_proj.weight, at.v_proj.weight]))
        b.qkv.bias.copy_(torch.cat([at.q_proj.bias, at.k_proj.bias, at.v_proj.bias]))
        for there, here in ((a.ln, b.n1), (a.ln2, b.n2), (at.o_proj, b.wo), (a.fc1, b.up)):
            here.load_state_dict(there.state_dict())
        b.down.kernel.copy_(a.fc2.weight.t())
        b.down.shift.copy_(a.fc2.bias)
opt = torch.optim.AdamW(mine.parameters(), lr=1e-3, eps=1e-3, foreach=False)
for it in range(2):
    inputs, labels = batch(it)
    error = nn.functional.mse_loss(mine(inputs), labels)
    error.backward()
    opt.step()
    opt.zero_grad()
"""


def ported(opguard, tmp_path, *edit):
    tree = tmp_path / "tree"
    tree.mkdir()
    text = PORT
    if edit:
        assert text.count(edit[0]) == 1, edit
        text = text.replace(*edit)
    (tree / "reference.py").write_text(REFERENCE)
    (tree / "port.py").write_text(text)
    out = tmp_path / "verdict.json"
    done = opguard("diff", "--tolerance", "-q", tree, tree, "--run-a", f"{sys.executable} {{tree}}/reference.py",
                   "--run-b", f"{sys.executable} {{tree}}/port.py", "--json", out, env={"OMP_NUM_THREADS": "1"})  # fmt: skip
    assert out.exists(), done.stderr
    line = next((n for n, at in enumerate(text.splitlines(), 1) if edit and edit[1].strip() in at), None)
    return done, json.loads(out.read_text()), line


def test_a_right_port_is_equivalent_and_says_what_is_what(opguard, tmp_path):
    done, found, _ = ported(opguard, tmp_path)
    assert (done.returncode, found["verdict"]) == (0, "equivalent"), done.stdout
    port = found["tolerance"]["port"]
    assert {"b": "blocks.1.wo.weight", "a": "layers.1.self_attn.o_proj.weight"} in port["names"]
    # Of each block qkv's weight and bias are three in one, and down's kernel is a transpose.
    assert (port["parameters"], port["parameters_equal"], port["parameters_moved"]) == (26, 20, 6)
    assert "paired by value: 26 of 26 parameters" in done.stdout


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('        z = nn.functional.gelu(z, approximate="tanh")', "        z = nn.functional.gelu(z)"),
        ("        return h + z", "        return x + z"),
        ("    opt.step()", "    opt.param_groups[0]['lr'] = 2e-3; opt.step()"),
    ],
)
def test_a_fault_is_named_at_its_statement(opguard, tmp_path, old, new):
    done, found, line = ported(opguard, tmp_path, old, new)
    assert (done.returncode, found["verdict"]) == (1, "diverged"), done.stdout
    assert found["pivot"]["b"]["line"] == line, done.stdout
