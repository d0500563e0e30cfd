"""Mamba in the style of mamba-minimal: channels last, the scan with einsum."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from weights import DIM, INNER, KERNEL, LAYERS, RANK, STATE, VOCAB, batch, state


class SelectiveSSM(nn.Module):
    def __init__(self):
        super().__init__()
        self.select = nn.Linear(INNER, RANK + 2 * STATE, bias=False)
        self.widen = nn.Linear(RANK, INNER)
        self.log_decay = nn.Parameter(torch.zeros(INNER, STATE))
        self.skip = nn.Parameter(torch.ones(INNER))

    def forward(self, u):
        a = -torch.exp(self.log_decay)
        delta, b, c = self.select(u).split([RANK, STATE, STATE], dim=-1)
        delta = F.softplus(self.widen(delta))
        return self.scan(u, delta, a, b, c) + u * self.skip

    def scan(self, u, delta, a, b, c):
        decay = torch.exp(torch.einsum("bld,dn->bldn", delta, a))
        driven = torch.einsum("bld,bln,bld->bldn", delta, b, u)
        h, ys = torch.zeros(u.shape[0], INNER, STATE), []
        for t in range(u.shape[1]):
            h = decay[:, t] * h + driven[:, t]
            ys.append(torch.einsum("bdn,bn->bd", h, c[:, t]))
        return torch.stack(ys, dim=1)


class MambaLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(DIM))
        self.inp, self.gate = nn.Linear(DIM, INNER, bias=False), nn.Linear(DIM, INNER, bias=False)
        self.conv = nn.Conv1d(INNER, INNER, KERNEL, groups=INNER, padding=KERNEL - 1)
        self.ssm, self.out = SelectiveSSM(), nn.Linear(INNER, DIM, bias=False)

    def forward(self, x):
        n = x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt() * self.gain
        u = self.conv(self.inp(n).transpose(1, 2))
        u = F.silu(u[..., : x.shape[1]].transpose(1, 2))
        y = self.ssm(u) * F.silu(self.gate(n))
        return x + self.out(y)


class Mamba(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(VOCAB, DIM)
        self.stack = nn.ModuleList(MambaLayer() for _ in range(LAYERS))
        self.gain = nn.Parameter(torch.ones(DIM))

    def forward(self, tokens):
        x = self.table(tokens)
        for layer in self.stack:
            x = layer(x)
        x = x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt() * self.gain
        return x @ self.table.weight.T


def load(model, theirs):
    mine = {"table.weight": theirs["backbone.embeddings.weight"], "gain": theirs["backbone.norm_f.weight"]}
    names = {"A_log": "ssm.log_decay", "D": "ssm.skip", "conv1d.weight": "conv.weight", "conv1d.bias": "conv.bias", "x_proj.weight": "ssm.select.weight",
             "dt_proj.weight": "ssm.widen.weight", "dt_proj.bias": "ssm.widen.bias", "out_proj.weight": "out.weight"}  # fmt: skip
    for i in range(LAYERS):
        layer = f"backbone.layers.{i}."
        mine[f"stack.{i}.gain"] = theirs[f"{layer}norm.weight"]
        mine.update({f"stack.{i}.{new}": theirs[f"{layer}mixer.{old}"] for old, new in names.items()})
        mine[f"stack.{i}.inp.weight"], mine[f"stack.{i}.gate.weight"] = theirs[f"{layer}mixer.in_proj.weight"].chunk(2)
    model.load_state_dict(mine)


def main():
    torch.set_num_threads(1)
    mamba = Mamba()
    load(mamba, state())
    opt = torch.optim.AdamW(mamba.parameters(), lr=1e-3, eps=1e-3, foreach=False)
    for k in range(2):
        x, y = batch(k)
        loss = F.cross_entropy(mamba(x).view(-1, VOCAB), y.view(-1))
        loss.backward()
        total = torch.nn.utils.get_total_norm([w.grad for w in mamba.parameters()])
        opt.step()
        opt.zero_grad(set_to_none=True)
        print(f"step {k} loss {loss.item():.9f} norm {total.item():.9f}", flush=True)


main()
