"""Deep equilibrium classifier: fixed point in the forward pass, implicit differentiation in the backward pass."""
import math
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


def two_rings(n, gen):
    """Ring or disc, embedded in ten dimensions by a fixed rotation."""
    y = torch.randint(0, 2, (n,), generator=gen)
    r = torch.where(y == 1, 1.0, 0.4) + 0.08 * torch.randn(n, generator=gen)
    a = 2 * math.pi * torch.rand(n, generator=gen)
    x = torch.stack([r * torch.cos(a), r * torch.sin(a)], 1)
    basis = torch.linalg.qr(torch.randn(10, 10, generator=torch.Generator().manual_seed(7)))[0][:2]
    return x @ basis + 0.02 * torch.randn(n, 10, generator=gen), y


def anderson(f, x0, m=5, lam=1e-4, max_iter=60, tol=1e-5):
    """Anderson acceleration of x = f(x); x0 is (batch, dim)."""
    b, d = x0.shape
    xs, fs = x0.new_zeros(b, m, d), x0.new_zeros(b, m, d)
    xs[:, 0], fs[:, 0] = x0, f(x0)
    xs[:, 1], fs[:, 1] = fs[:, 0], f(fs[:, 0])
    h = x0.new_zeros(b, m + 1, m + 1)
    h[:, 0, 1:] = h[:, 1:, 0] = 1
    rhs = x0.new_zeros(b, m + 1, 1)
    rhs[:, 0] = 1
    residual = math.inf
    for k in range(2, max_iter):
        n = min(k, m)
        g = fs[:, :n] - xs[:, :n]
        h[:, 1:n + 1, 1:n + 1] = g @ g.transpose(1, 2) + lam * torch.eye(n)
        alpha = torch.linalg.solve(h[:, :n + 1, :n + 1], rhs[:, :n + 1])[:, 1:n + 1, 0]
        new = (alpha.unsqueeze(-1) * fs[:, :n]).sum(1)
        xs[:, k % m], fs[:, k % m] = new, f(new)
        residual = ((fs[:, k % m] - new).norm() / (1e-5 + fs[:, k % m].norm())).item()
        if residual < tol:
            break
    return fs[:, k % m].clone(), k, residual


class EquilibriumLayer(nn.Module):
    def __init__(self, dim, radius=0.9):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(dim, dim) / math.sqrt(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.radius = radius
        self.last = (0, 0.0)

    def contraction(self):
        """The weight scaled to spectral norm at most radius; tanh is 1-Lipschitz, so the map contracts."""
        norm = torch.linalg.matrix_norm(self.weight, 2)
        return self.weight * (self.radius / norm.clamp(min=self.radius))

    def forward(self, x):
        w = self.contraction()
        f = lambda z: torch.tanh(F.linear(z, w, self.bias) + x)
        with torch.no_grad():
            z, iters, res = anderson(f, torch.zeros_like(x))
            self.last = (iters, res)
        z = f(z)  # attach the fixed point to the graph once
        if torch.is_grad_enabled() and z.requires_grad:
            z0 = z.detach().requires_grad_()
            f0 = f(z0)

            def implicit(grad):
                solve = lambda g: torch.autograd.grad(f0, z0, g, retain_graph=True)[0] + grad
                return anderson(solve, torch.zeros_like(grad))[0]

            z.register_hook(implicit)
        return z


class Deq(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.inject = nn.Linear(10, dim)
        self.core = EquilibriumLayer(dim)
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2))

    def forward(self, x):
        return self.head(self.core(self.inject(x)))


def main():
    torch.manual_seed(SEED)
    gen = torch.Generator().manual_seed(SEED)
    (x, y), (tx, ty) = two_rings(512, gen), two_rings(256, gen)
    model = Deq()
    opt = torch.optim.Adam(model.parameters(), lr=2e-2)
    for step in range(STEPS):
        model.train()
        idx = torch.randint(0, 512, (64,))
        loss = F.cross_entropy(model(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        iters, res = model.core.last
        print(step, f"loss {loss.item():.4f} solver iterations {iters} residual {res:.1e}")
    model.eval()
    with torch.no_grad():
        print("test accuracy", f"{(model(tx).argmax(-1) == ty).float().mean().item():.3f}")


if __name__ == "__main__":
    main()
