"""The networks of the runner: normalization of what is observed, actor and critic."""

import torch
import torch.distributed as dist
from torch import nn


class EmpiricalNormalization(nn.Module):
    """Scales observations by the mean and variance of all that were seen while training."""

    def __init__(self, size, eps=1e-2):
        super().__init__()
        self.eps = eps
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("var", torch.ones(size))
        self.register_buffer("count", torch.tensor(0.0))

    def forward(self, x):
        return (x - self.mean) / (self.var.sqrt() + self.eps)

    @torch.no_grad()
    def update(self, x):
        moments = torch.cat([x.sum(0), x.square().sum(0), torch.tensor([float(x.shape[0])])])
        dist.all_reduce(moments)
        total, squares, n = moments[: x.shape[1]], moments[x.shape[1] : -1], moments[-1]
        mean = total / n
        var = squares / n - mean.square()
        self.count += n
        rate = n / self.count
        delta = mean - self.mean
        self.mean += rate * delta
        self.var += rate * (var - self.var + delta * (mean - self.mean))


class ActorCritic(nn.Module):
    def __init__(self, observations, actions, hidden=32):
        super().__init__()
        self.normalizer = EmpiricalNormalization(observations)
        self.actor = nn.Sequential(nn.Linear(observations, hidden), nn.ELU(), nn.Linear(hidden, actions))
        self.critic = nn.Sequential(nn.Linear(observations, hidden), nn.ELU(), nn.Linear(hidden, 1))
        self.log_std = nn.Parameter(torch.full((actions,), -0.5))

    def distribution(self, observation):
        return torch.distributions.Normal(self.actor(self.normalizer(observation)), self.log_std.exp())

    def value(self, observation):
        return self.critic(self.normalizer(observation))[:, 0]
