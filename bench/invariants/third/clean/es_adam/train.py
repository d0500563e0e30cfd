"""Evolution strategies: antithetic perturbations, rank-shaped fitness, the estimate handed to Adam as .grad."""
import math
import os

import torch
import torch.nn as nn
from torch.func import functional_call, vmap
from torch.nn.utils import parameters_to_vector, vector_to_parameters

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
PAIRS, SIGMA, HORIZON, STARTS = 24, 0.1, 40, 4


class Controller(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def forward(self, s):
        return torch.tanh(self.net(s)).squeeze(-1)


def cartpole_step(s, force):
    """Linear-in-time Euler step of the usual cart-pole equations, batched."""
    x, dx, th, dth = s.unbind(-1)
    sin, cos = torch.sin(th), torch.cos(th)
    temp = (10.0 * force + 0.05 * dth ** 2 * sin) / 1.1
    ddth = (9.8 * sin - cos * temp) / (0.5 * (4 / 3 - 0.1 * cos ** 2 / 1.1))
    ddx = temp - 0.05 * ddth * cos / 1.1
    return torch.stack([x + 0.02 * dx, dx + 0.02 * ddx, th + 0.02 * dth, dth + 0.02 * ddth], -1)


def fitness(model, params, start):
    """Mean over start states of the time spent upright near the center, with a soft cost."""
    s, alive, total = start, torch.ones(start.shape[0]), torch.zeros(start.shape[0])
    for _ in range(HORIZON):
        s = cartpole_step(s, functional_call(model, params, (s,)))
        ok = ((s[:, 2].abs() < 0.4) & (s[:, 0].abs() < 2.4)).float()
        alive = alive * ok
        total = total + alive * (1.0 - s[:, 2].abs() - 0.1 * s[:, 0].abs())
    return total.mean() / HORIZON


def split_vector(model, flat):
    """(population, numel) -> dictionary of stacked parameters, in the order of parameters()."""
    out, at = {}, 0
    for name, p in model.named_parameters():
        out[name] = flat[:, at:at + p.numel()].view(-1, *p.shape)
        at += p.numel()
    return out


def centered_ranks(x):
    ranks = torch.empty_like(x)
    ranks[x.argsort()] = torch.arange(len(x), dtype=x.dtype)
    return ranks / (len(x) - 1) - 0.5


def set_gradient(model, vector):
    at = 0
    for p in model.parameters():
        p.grad = vector[at:at + p.numel()].view_as(p).clone()
        at += p.numel()


@torch.no_grad()
def main():
    torch.manual_seed(SEED)
    model = Controller()
    opt = torch.optim.Adam(model.parameters(), lr=0.05, weight_decay=5e-3)
    population_fitness = vmap(lambda params, start: fitness(model, params, start), in_dims=(0, None))
    valid_start = 0.1 * torch.randn(32, 4, generator=torch.Generator().manual_seed(SEED + 1))
    best, best_vector = -math.inf, None

    for step in range(STEPS):
        mean = parameters_to_vector(model.parameters())
        eps = torch.randn(PAIRS, mean.numel())
        eps = torch.cat([eps, -eps])
        start = 0.1 * torch.randn(STARTS, 4)  # common random numbers for the whole population
        scores = population_fitness(split_vector(model, mean + SIGMA * eps), start)
        estimate = centered_ranks(scores) @ eps / (len(eps) * SIGMA)
        set_gradient(model, -estimate)  # Adam minimises, fitness is to be maximised
        opt.step()
        opt.zero_grad()

        current = fitness(model, dict(model.named_parameters()), valid_start).item()
        if current > best:
            best, best_vector = current, parameters_to_vector(model.parameters()).clone()
        print(step, f"loss {-scores.mean().item():.4f} max {scores.max().item():.4f} mean policy {current:.4f}")

    vector_to_parameters(best_vector, model.parameters())
    print("restored best", f"{fitness(model, dict(model.named_parameters()), valid_start).item():.4f}")


if __name__ == "__main__":
    main()
