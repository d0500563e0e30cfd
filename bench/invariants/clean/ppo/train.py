import os
from dataclasses import dataclass

import torch
import torch.nn as nn
from torch.distributions import Categorical

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


@dataclass
class Config:
    envs: int = 4
    horizon: int = 16
    epochs: int = 2
    minibatches: int = 2
    gamma: float = 0.99
    lam: float = 0.95
    clip: float = 0.2
    entropy: float = 0.01
    lr: float = 3e-3


class PoleBatch:
    """A vector of crude inverted pendulums, integrated with Euler steps."""

    def __init__(self, n):
        self.n = n
        self.s = torch.zeros(n, 2)

    def reset(self):
        self.s = torch.rand(self.n, 2) * 0.2 - 0.1
        return self.s.clone()

    def step(self, action):
        torque = action.float() * 2 - 1
        angle, speed = self.s.unbind(1)
        speed = speed + 0.1 * (angle.sin() * 2 + torque)
        angle = angle + 0.1 * speed
        done = angle.abs() > 0.8
        self.s = torch.stack([angle, speed], 1)
        self.s[done] = torch.rand(int(done.sum()), 2) * 0.2 - 0.1
        return self.s.clone(), 1.0 - angle.abs(), done.float()


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh())
        self.actor = nn.Linear(32, 2)
        self.critic = nn.Linear(32, 1)
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.orthogonal_(m.weight, 2**0.5)
                nn.init.zeros_(m.bias)
        nn.init.orthogonal_(self.actor.weight, 0.01)

    def forward(self, s):
        h = self.body(s)
        return Categorical(logits=self.actor(h)), self.critic(h).squeeze(-1)


@torch.no_grad()
def rollout(env, state, net, c):
    keep = {k: [] for k in ("s", "a", "logp", "v", "r", "d")}
    for _ in range(c.horizon):
        dist, value = net(state)
        action = dist.sample()
        after, reward, done = env.step(action)
        for k, x in zip(keep, (state, action, dist.log_prob(action), value, reward, done)):
            keep[k].append(x)
        state = after
    last = net(state)[1]
    b = {k: torch.stack(x) for k, x in keep.items()}
    adv, run = torch.zeros_like(b["r"]), 0.0
    for t in reversed(range(c.horizon)):
        following = last if t == c.horizon - 1 else b["v"][t + 1]
        alive = 1 - b["d"][t]
        delta = b["r"][t] + c.gamma * following * alive - b["v"][t]
        run = delta + c.gamma * c.lam * alive * run
        adv[t] = run
    b["adv"], b["ret"] = adv, adv + b["v"]
    return {k: x.flatten(0, 1) for k, x in b.items()}, state


def main():
    c = Config()
    torch.manual_seed(SEED)
    env, net = PoleBatch(c.envs), ActorCritic()
    opt = torch.optim.Adam(net.parameters(), lr=c.lr, eps=1e-5)
    state = env.reset()
    updates = max(1, STEPS // (c.epochs * c.minibatches))
    for update in range(updates):
        for g in opt.param_groups:
            g["lr"] = c.lr * (1 - update / updates)
        b, state = rollout(env, state, net, c)
        n = len(b["a"])
        for _ in range(c.epochs):
            for ids in torch.randperm(n).chunk(c.minibatches):
                dist, value = net(b["s"][ids])
                ratio = (dist.log_prob(b["a"][ids]) - b["logp"][ids]).exp()
                adv = b["adv"][ids]
                adv = (adv - adv.mean()) / (adv.std() + 1e-8)
                pi = -torch.min(ratio * adv, ratio.clamp(1 - c.clip, 1 + c.clip) * adv).mean()
                v = 0.5 * (value - b["ret"][ids]).pow(2).mean()
                loss = pi + 0.5 * v - c.entropy * dist.entropy().mean()
                opt.zero_grad(set_to_none=True)
                loss.backward()
                nn.utils.clip_grad_norm_(net.parameters(), 0.5)
                opt.step()
        print(f"update {update} loss {loss.item():.4f} reward {b['r'].mean().item():.3f}")


main()
