"""A small residual MLP classifier and its data."""
import torch
import torch.nn as nn
import torch.nn.functional as F

DIMS = dict(batch=4, inp=6, hidden=8, ffn=10, classes=4)
TOKENS = dict(t="classes")

class Net(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.inp = nn.Linear(d["inp"], d["hidden"])
        self.norm = nn.LayerNorm(d["hidden"])
        self.up, self.down = nn.Linear(d["hidden"], d["ffn"]), nn.Linear(d["ffn"], d["hidden"])
        self.out = nn.Linear(d["hidden"], d["classes"])
    def forward(self, x):
        x = self.inp(x)
        x = x + self.down(F.gelu(self.up(self.norm(x)), approximate="tanh"))
        return self.out(x)

def data(d, n=None):
    n = n or d["batch"]
    return torch.randn(n, d["inp"]), torch.randint(0, d["classes"], (n,))
