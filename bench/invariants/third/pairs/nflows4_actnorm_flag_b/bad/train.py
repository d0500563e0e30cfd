"""Density estimation with a coupling flow and ActNorm; the run is resumed from a checkpoint."""
import math
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
SAVE_AT = 3
BATCH = 64
DIM = 6


class ActNorm(nn.Module):
    """Scale and shift per feature, set by the data of the first batch."""

    def __init__(self, features):
        super().__init__()
        self.log_scale = nn.Parameter(torch.zeros(features))
        self.shift = nn.Parameter(torch.zeros(features))
        self.initialized = torch.tensor(False)

    @torch.no_grad()
    def _initialize(self, x):
        std = x.std(0)
        self.log_scale.copy_(-torch.log(std + 1e-6))
        self.shift.copy_(-(x / std).mean(0))
        self.initialized.fill_(True)

    def forward(self, x):
        if self.training and not self.initialized:
            self._initialize(x)
        return x * self.log_scale.exp() + self.shift, self.log_scale.sum().expand(len(x))

    def inverse(self, z):
        return (z - self.shift) * (-self.log_scale).exp()


class Coupling(nn.Module):
    def __init__(self, features, flip, hidden=32):
        super().__init__()
        half = features // 2
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(half, hidden), nn.ReLU(), nn.Linear(hidden, 2 * half))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def _split(self, x):
        a, b = x.chunk(2, 1)
        return (b, a) if self.flip else (a, b)

    def _join(self, a, b):
        return torch.cat([b, a] if self.flip else [a, b], 1)

    def forward(self, x):
        a, b = self._split(x)
        s, t = self.net(a).chunk(2, 1)
        s = torch.tanh(s)
        return self._join(a, b * s.exp() + t), s.sum(1)

    def inverse(self, z):
        a, b = self._split(z)
        s, t = self.net(a).chunk(2, 1)
        return self._join(a, (b - t) * (-torch.tanh(s)).exp())


class Flow(nn.Module):
    def __init__(self, features=DIM, blocks=3):
        super().__init__()
        layers = []
        for i in range(blocks):
            layers += [ActNorm(features), Coupling(features, bool(i % 2))]
        self.layers = nn.ModuleList(layers)

    def log_prob(self, x):
        total = torch.zeros(len(x))
        for layer in self.layers:
            x, logdet = layer(x)
            total = total + logdet
        return total - 0.5 * (x ** 2).sum(1) - 0.5 * x.shape[1] * math.log(2 * math.pi)

    @torch.no_grad()
    def sample(self, n):
        z = torch.randn(n, DIM)
        for layer in reversed(self.layers):
            z = layer.inverse(z)
        return z


def batch(step):
    """Sensor readings: three causes, three responses that bend with them."""
    g = torch.Generator().manual_seed(100000 * SEED + step)
    a = torch.randn(BATCH, 3, generator=g) * torch.tensor([1.0, 3.0, 0.5]) + torch.tensor([2.0, -4.0, 1.0])
    b = torch.sin(a) + 0.3 * a.roll(1, 1) + 0.2 * torch.randn(BATCH, 3, generator=g)
    return torch.cat([a, b], 1)


def build():
    model = Flow()
    opt = torch.optim.Adam(model.parameters(), lr=2e-2)
    return model, opt


def save(path, model, opt, step):
    torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "step": step}, path)


def resume(path):
    state = torch.load(path)
    model, opt = build()
    model.load_state_dict(state["model"])
    opt.load_state_dict(state["opt"])
    return model, opt, state["step"]


def run(model, opt, start, stop):
    model.train()
    for step in range(start, stop):
        loss = -model.log_prob(batch(step)).mean()
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        opt.step()
        print(f"step {step} nll {loss.item():.4f}")


def main():
    torch.manual_seed(SEED)
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "flow.pt")
        model, opt = build()
        run(model, opt, 0, SAVE_AT)
        save(path, model, opt, SAVE_AT)
        model, opt, start = resume(path)
        print(f"resumed at step {start}")
        run(model, opt, start, STEPS)
    model.eval()
    with torch.no_grad():
        print(f"eval nll {-model.log_prob(batch(10 ** 6)).mean().item():.4f}")
    print("sample mean", [round(v, 2) for v in model.sample(256).mean(0).tolist()])


if __name__ == "__main__":
    main()
