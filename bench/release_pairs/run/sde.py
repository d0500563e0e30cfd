"""A small neural SDE under a Brownian interval."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from torch import nn
import torchsde

p = argparse.ArgumentParser(); p.add_argument("--dump"); o = p.parse_args()


class Field(nn.Module):
    noise_type, sde_type = "diagonal", "ito"

    def __init__(self):
        super().__init__()
        self.drift, self.spread = nn.Linear(3, 3), nn.Linear(3, 3)

    def f(self, t, y):
        return self.drift(y).tanh()

    def g(self, t, y):
        return 0.1 * self.spread(y).sigmoid()


oracle.setup(0)
field = Field()
oracle.reinit(field, std=0.4)
opt = torch.optim.Adam(field.parameters(), lr=1e-2)
y0, target, times = torch.randn(5, 3), torch.randn(5, 3), torch.linspace(0.0, 1.0, 3)
with oracle.record(o.dump):
    for step in range(2):
        noise = torchsde.BrownianInterval(t0=0.0, t1=1.0, size=(5, 3), entropy=step)
        path = torchsde.sdeint(field, y0, times, bm=noise, dt=0.25, method="euler")
        loss = nn.functional.mse_loss(path[-1], target)
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
