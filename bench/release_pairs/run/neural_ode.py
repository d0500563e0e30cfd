"""A small neural ODE, gradients through the solver or by the adjoint."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from torch import nn
from torchdiffeq import odeint, odeint_adjoint

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--adjoint", type=int, default=0)
p.add_argument("--method", default="rk4"); o = p.parse_args()


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 4))

    def forward(self, t, y):
        return self.net(y)


oracle.setup(0)
field = Field()
oracle.reinit(field, std=0.4)
opt = torch.optim.Adam(field.parameters(), lr=1e-2)
y0, target, times = torch.randn(6, 4), torch.randn(6, 4), torch.linspace(0.0, 1.0, 4)
solve = odeint_adjoint if o.adjoint else odeint
with oracle.record(o.dump):
    for step in range(2):
        path = solve(field, y0, times, method=o.method)
        loss = nn.functional.mse_loss(path[-1], target)
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
