"""Differentially private SGD: per-sample gradients by torch.func, clipping, noise, Poisson sampling, RDP accounting."""
import math
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call, grad_and_value, vmap

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
N, RATE, CLIP, NOISE, DELTA = 1000, 0.06, 1.0, 1.1, 1e-4


def make_patients(n, gen):
    """Tabular: age, pressure, smoker, marker, and a risk label from a logistic rule."""
    age = 30 + 40 * torch.rand(n, generator=gen)
    pressure = 110 + 0.5 * (age - 30) + 10 * torch.randn(n, generator=gen)
    smoker = (torch.rand(n, generator=gen) < 0.3).float()
    marker = torch.randn(n, generator=gen).exp()
    score = 0.08 * (age - 50) + 0.05 * (pressure - 120) + 2.0 * smoker + 0.6 * (marker - 1.6) - 0.5
    label = (torch.rand(n, generator=gen) < torch.sigmoid(2 * score)).float()
    x = torch.stack([(age - 50) / 12, (pressure - 120) / 12, smoker, marker.log()], 1)  # public scales
    return x, label


class Net(nn.Module):
    """LayerNorm, as batch statistics would mix the samples."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 24), nn.LayerNorm(24), nn.Tanh(), nn.Linear(24, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


def rdp_subsampled_gaussian(q, sigma, alpha):
    """Integer-order Renyi divergence of the Poisson-subsampled Gaussian mechanism."""
    terms = []
    for k in range(alpha + 1):
        log_binom = math.lgamma(alpha + 1) - math.lgamma(k + 1) - math.lgamma(alpha - k + 1)
        terms.append(log_binom + k * math.log(q) + (alpha - k) * math.log1p(-q) + (k * k - k) / (2 * sigma ** 2))
    top = max(terms)
    return (top + math.log(sum(math.exp(t - top) for t in terms))) / (alpha - 1)


def epsilon(steps):
    orders = range(2, 64)
    return min(steps * rdp_subsampled_gaussian(RATE, NOISE, a) + math.log(1 / DELTA) / (a - 1) for a in orders)


class DpStep:
    def __init__(self, model, gen):
        self.model, self.gen = model, gen

        def sample_loss(params, x, y):
            logit = functional_call(model, params, (x.unsqueeze(0),)).squeeze(0)
            return F.binary_cross_entropy_with_logits(logit, y)

        self.per_sample = vmap(grad_and_value(sample_loss), in_dims=(None, 0, 0))

    def fill_gradients(self, x, y):
        """Writes the privatised mean gradient into .grad; the returned loss and clipped share are for
        debugging on synthetic data and are outside of the privacy guarantee."""
        params = {k: p.detach() for k, p in self.model.named_parameters()}
        loss, clipped = float("nan"), 0.0
        if len(x):
            grads, losses = self.per_sample(params, x, y)
            norms = torch.stack([g.flatten(1).norm(dim=1) for g in grads.values()], 1).norm(dim=1)
            factor = (CLIP / (norms + 1e-6)).clamp(max=1.0)
            sums = {k: torch.einsum("n,n...->...", factor, g) for k, g in grads.items()}
            loss, clipped = losses.mean().item(), (factor < 1).float().mean().item()
        else:  # an empty Poisson batch still releases noise
            sums = {k: torch.zeros_like(p) for k, p in params.items()}
        for name, p in self.model.named_parameters():
            noise = torch.randn(p.shape, generator=self.gen) * NOISE * CLIP
            p.grad = (sums[name] + noise) / (RATE * N)  # the expected batch size, not the drawn one
        return loss, clipped


def main():
    torch.manual_seed(SEED)
    gen = torch.Generator().manual_seed(SEED)
    (x, y), (tx, ty) = make_patients(N, gen), make_patients(400, gen)
    model = Net()
    private = DpStep(model, torch.Generator().manual_seed(SEED + 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.5)
    model.train()
    for step in range(STEPS):
        chosen = torch.rand(N) < RATE  # Poisson sampling
        opt.zero_grad()
        loss, clipped = private.fill_gradients(x[chosen], y[chosen])
        opt.step()
        print(step, f"loss {loss:.4f} batch {int(chosen.sum())} clipped {clipped:.2f} epsilon {epsilon(step + 1):.3f}")
    model.eval()
    with torch.no_grad():
        print("test accuracy", f"{((model(tx) > 0).float() == ty).float().mean().item():.3f}")


if __name__ == "__main__":
    main()
