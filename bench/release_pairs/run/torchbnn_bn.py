"""A Bayesian convolution net with Bayesian batch norm, KL term and Adam."""
import torch
import torchbnn as bnn
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(
    bnn.BayesConv2d(prior_mu=0, prior_sigma=0.1, in_channels=1, out_channels=6, kernel_size=3, padding=1),
    bnn.BayesBatchNorm2d(prior_mu=0, prior_sigma=0.1, num_features=6),
    nn.ReLU(), nn.Flatten(),
    bnn.BayesLinear(prior_mu=0, prior_sigma=0.1, in_features=6 * 64, out_features=4))
kl = bnn.BKLLoss(reduction="mean", last_layer_only=False)
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
x, y = torch.randn(16, 1, 8, 8), torch.randint(0, 4, (16,))
for step in range(4):
    opt.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y) + 0.1 * kl(model).sum()
    loss.backward()
    opt.step()
    print(f"step {step} loss {loss.item()}", flush=True)
