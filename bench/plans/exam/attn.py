"""A causal attention block with rotary positions, and its training step."""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F

DIMS = dict(batch=2, seq=4, hidden=8, heads=2, ffn=6)

def rotary(x, pos):
    n = x.shape[-1]
    inv = 1.0 / 100.0 ** (torch.arange(0, n, 2) / n)
    a = pos[:, None] * inv
    c, s = a.cos(), a.sin()
    u, v = x[..., 0::2], x[..., 1::2]
    return torch.stack([u * c - v * s, u * s + v * c], -1).flatten(-2)

def causal(q, k, v, qpos, kpos):
    a = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    a = a.masked_fill(kpos[None, :] > qpos[:, None], float("-inf"))
    return a.softmax(-1) @ v

class Block(nn.Module):
    def __init__(self, d, attend):
        super().__init__()
        self.h, self.attend = d["heads"], attend
        self.norm1, self.norm2 = nn.RMSNorm(d["hidden"], eps=1e-5), nn.RMSNorm(d["hidden"], eps=1e-5)
        self.qkv, self.proj = nn.Linear(d["hidden"], 3 * d["hidden"]), nn.Linear(d["hidden"], d["hidden"])
        self.up, self.down = nn.Linear(d["hidden"], d["ffn"]), nn.Linear(d["ffn"], d["hidden"])
    def forward(self, x, pos):
        b, s, w = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, s, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        q, k = rotary(q, pos), rotary(k, pos)
        x = x + self.proj(self.attend(q, k, v).transpose(1, 2).reshape(b, s, w))
        return x + self.down(F.silu(self.up(self.norm2(x))))

def train(net, x, y, pos, norm, finish):
    params = dict(net.named_parameters())
    def step():
        loss = norm((net(x, pos) - y).square())
        loss.backward()
        r = {"loss": finish(params, loss.detach().clone())}
        with torch.no_grad():
            for n, p in params.items():
                r["grad:" + n] = p.grad
                p.sub_(p.grad, alpha=0.1)
                r["new:" + n] = p
            if x.grad is not None:
                r["grad:x"] = x.grad
        return r
    return dict(state=dict(params, x=x, y=y), tokens={}, step=step)

def logical(d):
    pos = torch.arange(d["seq"])
    net = Block(d, lambda q, k, v: causal(q, k, v, pos, pos))
    x, y = (torch.randn(d["batch"], d["seq"], d["hidden"]) for _ in "xy")
    x.requires_grad_()
    return train(net, x, y, pos, lambda e: e.mean(), lambda p, l: l)
