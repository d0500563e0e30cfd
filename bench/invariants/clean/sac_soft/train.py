"""A small soft actor-critic: twin critics, their soft targets, a learned temperature: three optimizers."""
import os

import torch
import torch.nn as nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
TAU, GAMMA = 0.02, 0.98


def mlp(i, o, h=24):
    return nn.Sequential(nn.Linear(i, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU(), nn.Linear(h, o))


class Actor(nn.Module):
    def __init__(self, s, a):
        super().__init__()
        self.net = mlp(s, 2 * a)

    def forward(self, s):
        mean, log_std = self.net(s).chunk(2, -1)
        std = log_std.clamp(-5, 2).exp()
        normal = torch.distributions.Normal(mean, std)
        raw = normal.rsample()
        action = raw.tanh()
        logp = (normal.log_prob(raw) - torch.log(1 - action.pow(2) + 1e-6)).sum(-1, keepdim=True)
        return action, logp


class Twin(nn.Module):
    def __init__(self, s, a):
        super().__init__()
        self.q1, self.q2 = mlp(s + a, 1), mlp(s + a, 1)

    def forward(self, s, a):
        x = torch.cat([s, a], -1)
        return self.q1(x), self.q2(x)


torch.manual_seed(SEED)
actor, critic, target = Actor(3, 2), Twin(3, 2), Twin(3, 2)
target.load_state_dict(critic.state_dict())
target.requires_grad_(False)
log_alpha = torch.zeros(1, requires_grad=True)
actor_opt = torch.optim.Adam(actor.parameters(), 3e-3)
critic_opt = torch.optim.Adam(critic.parameters(), 3e-3)
alpha_opt = torch.optim.Adam([log_alpha], 3e-3)

buffer_s = torch.randn(256, 3)
buffer_a = torch.rand(256, 2) * 2 - 1
buffer_r = -(buffer_s[:, :2] + buffer_a).pow(2).sum(-1, keepdim=True)
buffer_n = buffer_s * 0.9 + 0.1 * torch.randn(256, 3)

for step in range(STEPS):
    ids = torch.randint(0, 256, (32,))
    s, a, r, n = buffer_s[ids], buffer_a[ids], buffer_r[ids], buffer_n[ids]
    alpha = log_alpha.exp().detach()

    with torch.no_grad():
        na, nlogp = actor(n)
        y = r + GAMMA * (torch.min(*target(n, na)) - alpha * nlogp)
    q1, q2 = critic(s, a)
    critic_loss = (q1 - y).pow(2).mean() + (q2 - y).pow(2).mean()
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()

    for p in critic.parameters():
        p.requires_grad = False
    pi, logp = actor(s)
    actor_loss = (alpha * logp - torch.min(*critic(s, pi))).mean()
    actor_opt.zero_grad()
    actor_loss.backward()
    actor_opt.step()
    for p in critic.parameters():
        p.requires_grad = True

    alpha_loss = -(log_alpha * (logp.detach() - 2)).mean()
    alpha_opt.zero_grad()
    alpha_loss.backward()
    alpha_opt.step()

    with torch.no_grad():
        for slow, fast in zip(target.parameters(), critic.parameters()):
            slow.lerp_(fast, TAU)
    print(f"{step} critic {critic_loss.item():.4f} actor {actor_loss.item():.4f} alpha {alpha.item():.4f}")
