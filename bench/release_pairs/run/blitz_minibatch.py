"""Bayes by backprop over minibatches, each with its own weight of the complexity cost."""
import torch
from torch import nn
from blitz.losses import kl_divergence_from_nn
from blitz.modules import BayesianLinear
from blitz.utils.minibatch_weighting import minibatch_weight

torch.manual_seed(0)
prior = torch.distributions.StudentT(4.0, 0.0, 0.3)
model = nn.Sequential(BayesianLinear(8, 16, prior_dist=prior), nn.Tanh(), BayesianLinear(16, 1, prior_dist=prior))
opt = torch.optim.SGD(model.parameters(), lr=1e-3)
data = [(torch.randn(16, 8), torch.randn(16, 1)) for _ in range(5)]
for step, (x, y) in enumerate(data):
    opt.zero_grad()
    fit = nn.functional.mse_loss(model(x), y)
    loss = fit + minibatch_weight(step, len(data)) * kl_divergence_from_nn(model)
    loss.backward()
    opt.step()
    print(f"step {step} loss {loss.item()}", flush=True)
