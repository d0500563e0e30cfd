"""A normalizing flow fitted to two moons, with a standard normal base of torch."""
import argparse
import math
import sys
import types
import torch

if "matplotlib" not in sys.modules:  # one module of the library imports it for plots, which are not drawn here
    sys.modules["matplotlib"] = types.ModuleType("matplotlib")
    sys.modules["matplotlib"].pyplot = sys.modules["matplotlib.pyplot"] = types.ModuleType("matplotlib.pyplot")
from nflows.transforms.autoregressive import MaskedAffineAutoregressiveTransform
from nflows.transforms.autoregressive import MaskedPiecewiseRationalQuadraticAutoregressiveTransform as Spline
from nflows.transforms.base import CompositeTransform
from nflows.transforms.normalization import ActNorm, BatchNorm
from nflows.transforms.permutations import ReversePermutation

p = argparse.ArgumentParser(); p.add_argument("--kind", default="spline"); p.add_argument("--dtype", default="float32"); o = p.parse_args()
dtype = getattr(torch, o.dtype)
torch.manual_seed(0)
parts = []
for _ in range(2):
    if o.kind == "spline":
        parts += [ActNorm(2), ReversePermutation(features=2), Spline(features=2, hidden_features=16, num_bins=6, tails="linear", tail_bound=3.0), BatchNorm(2)]
    else:
        parts += [MaskedAffineAutoregressiveTransform(features=2, hidden_features=16), ReversePermutation(features=2)]
model = CompositeTransform(parts).to(dtype)
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(4):
    t = math.pi * torch.rand(64)
    top = (torch.rand(64) < 0.5).float()
    x = torch.stack([torch.cos(t) * (1 - 2 * top) + top, torch.sin(t) * (1 - 2 * top) + 0.5 * top], 1) * 2 + 0.1 * torch.randn(64, 2)
    opt.zero_grad()
    z, logabsdet = model(x.to(dtype))
    log_prob = torch.distributions.Normal(0.0, 1.0).log_prob(z).sum(1) + logabsdet
    loss = -(log_prob * torch.linspace(0.5, 1.5, 64, dtype=dtype)).mean()
    loss.backward()
    opt.step()
    print(f"step {step} loss {loss.item()}", flush=True)
