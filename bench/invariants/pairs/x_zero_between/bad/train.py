import os

import torch
from torch import nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


def mlp(*sizes):
    layers = []
    for i, o in zip(sizes, sizes[1:]):
        layers += [nn.Linear(i, o), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class InfoGan:
    def __init__(self):
        self.g, self.d, self.q = mlp(6, 24, 4), mlp(4, 24, 1), mlp(4, 24, 2)
        self.opt_d = torch.optim.Adam(self.d.parameters(), lr=1e-3)
        self.opt_g = torch.optim.Adam([*self.g.parameters(), *self.q.parameters()], lr=1e-3)

    def step(self, real):
        code = torch.randint(0, 2, (len(real),))
        z = torch.cat([torch.randn(len(real), 4), nn.functional.one_hot(code, 2).float()], 1)
        fake = self.g(z)

        self.opt_d.zero_grad()
        loss_d = nn.functional.softplus(-self.d(real)).mean() + nn.functional.softplus(self.d(fake.detach())).mean()
        loss_d.backward()
        self.opt_d.step()

        loss_g = nn.functional.softplus(-self.d(fake)).mean() + nn.functional.cross_entropy(self.q(fake), code)
        loss_g.backward()
        self.opt_g.zero_grad()
        self.opt_g.step()
        return loss_d.item(), loss_g.item()


torch.manual_seed(SEED)
gan = InfoGan()
for step in range(STEPS):
    real = torch.randn(16, 4) * torch.tensor([1.0, 0.5, 2.0, 0.1])
    print(step, *gan.step(real))
