"""Sharpness-aware minimisation: two backward passes a step, around an optimizer of torch."""
import os

import torch
import torch.nn as nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Sam:
    def __init__(self, params, base, rho=0.05, **kw):
        self.base = base(params, **kw)
        self.rho, self.moved = rho, {}

    def parameters(self):
        return [p for g in self.base.param_groups for p in g["params"] if p.grad is not None]

    @torch.no_grad()
    def ascend(self):
        ps = self.parameters()
        norm = torch.stack([p.grad.norm() for p in ps]).norm() + 1e-12
        for p in ps:
            e = p.grad * (self.rho / norm)
            p.add_(e)
            self.moved[p] = e
        self.base.zero_grad()

    @torch.no_grad()
    def descend(self):
        for p, e in self.moved.items():
            p.sub_(e)
        self.moved.clear()
        self.base.step()
        self.base.zero_grad()


torch.manual_seed(SEED)
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 3))
sam = Sam(net.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
for step in range(STEPS):
    x = torch.randn(24, 10)
    y = x[:, :3].argmax(1)
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    sam.ascend()
    nn.functional.cross_entropy(net(x), y).backward()
    sam.descend()
    print(step, loss.item())
