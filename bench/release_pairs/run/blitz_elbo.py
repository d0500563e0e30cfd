"""Bayes by backprop on a regression, with the elbo of the library."""
import argparse
import torch
from torch import nn
from blitz.modules import BayesianLinear
from blitz.utils import variational_estimator

p = argparse.ArgumentParser(); p.add_argument("--sigma", type=float, default=0.1); p.add_argument("--pi", type=float, default=1.0); o = p.parse_args()


@variational_estimator
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = BayesianLinear(8, 16, prior_sigma_1=o.sigma, prior_pi=o.pi)
        self.two = BayesianLinear(16, 1, prior_sigma_1=o.sigma, prior_pi=o.pi)

    def forward(self, x):
        return self.two(torch.relu(self.one(x)))


torch.manual_seed(0)
model = Net()
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
x, y = torch.randn(32, 8), torch.randn(32, 1)
for step in range(4):
    opt.zero_grad()
    loss = model.sample_elbo(inputs=x, labels=y, criterion=nn.MSELoss(), sample_nbr=2, complexity_cost_weight=1 / 32)
    loss.backward()
    opt.step()
    print(f"step {step} loss {loss.item()}", flush=True)
