"""Implicit Q-learning from a fixed data set of a point-mass task."""
import copy
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
GAMMA, EXPECTILE, BETA, POLYAK, HORIZON = 0.95, 0.7, 3.0, 0.05, 25


class PointMass:
    """Move to the origin; state = position and velocity; the reward is minus the distance."""

    def __init__(self, rng):
        self.rng = rng

    def reset(self):
        self.s = np.concatenate([self.rng.uniform(-1, 1, 2), np.zeros(2)])
        self.t = 0
        return self.s.copy()

    def step(self, a):
        pos, vel = self.s[:2], self.s[2:]
        vel = 0.9 * vel + 0.1 * np.clip(a, -1, 1)
        self.s = np.concatenate([pos + 0.5 * vel, vel])
        self.t += 1
        reached = np.linalg.norm(self.s[:2]) < 0.05
        return self.s.copy(), -np.linalg.norm(self.s[:2]), reached, self.t >= HORIZON


def collect(rng, episodes=80):
    """Behaviour: a noisy proportional controller whose gain varies from bad to good."""
    env, rows = PointMass(rng), []
    for _ in range(episodes):
        s, gain = env.reset(), rng.uniform(-0.5, 2.0)
        while True:
            a = np.clip(-gain * s[:2] - 0.5 * s[2:] + 0.4 * rng.standard_normal(2), -1, 1)
            s2, r, terminal, timeout = env.step(a)
            rows.append((s, a, r, s2, float(terminal)))  # a timeout is no terminal state
            s = s2
            if terminal or timeout:
                break
    cols = [torch.tensor(np.array(c), dtype=torch.float32) for c in zip(*rows)]
    return dict(zip(("obs", "act", "rew", "next", "done"), cols))


def mlp(i, o, h=64):
    return nn.Sequential(nn.Linear(i, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU(), nn.Linear(h, o))


class TwinQ(nn.Module):
    def __init__(self):
        super().__init__()
        self.q1, self.q2 = mlp(6, 1), mlp(6, 1)

    def both(self, s, a):
        x = torch.cat([s, a], -1)
        return self.q1(x).squeeze(-1), self.q2(x).squeeze(-1)

    def forward(self, s, a):
        return torch.minimum(*self.both(s, a))


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = mlp(4, 2)
        self.log_std = nn.Parameter(torch.full((2,), -0.5))

    def forward(self, s):
        return torch.distributions.Normal(torch.tanh(self.mean(s)), self.log_std.clamp(-4, 1).exp())


class Iql:
    def __init__(self):
        self.q, self.v, self.actor = TwinQ(), mlp(4, 1), Actor()
        self.q_target = copy.deepcopy(self.q).requires_grad_(False)
        self.q_opt = torch.optim.Adam(self.q.parameters(), lr=3e-3)
        self.v_opt = torch.optim.Adam(self.v.parameters(), lr=3e-3)
        self.pi_opt = torch.optim.Adam(self.actor.parameters(), lr=3e-3)
        self.pi_sched = torch.optim.lr_scheduler.CosineAnnealingLR(self.pi_opt, STEPS)

    def update(self, b):
        with torch.no_grad():
            target_q = self.q_target(b["obs"], b["act"])
            next_v = self.v(b["next"]).squeeze(-1)

        adv = target_q - self.v(b["obs"]).squeeze(-1)
        weight = torch.where(adv > 0, EXPECTILE, 1 - EXPECTILE)
        v_loss = (weight * adv ** 2).mean()
        self.v_opt.zero_grad(set_to_none=True)
        v_loss.backward()
        self.v_opt.step()

        backup = b["rew"] + GAMMA * (1 - b["done"]) * next_v
        q_loss = sum(F.mse_loss(q, backup) for q in self.q.both(b["obs"], b["act"])) / 2
        self.q_opt.zero_grad(set_to_none=True)
        q_loss.backward()
        self.q_opt.step()
        with torch.no_grad():
            for t, p in zip(self.q_target.parameters(), self.q.parameters()):
                t.lerp_(p, POLYAK)

        exp_adv = (BETA * adv.detach()).exp().clamp(max=100.0)
        log_prob = self.actor(b["obs"]).log_prob(b["act"]).sum(-1)
        pi_loss = -(exp_adv * log_prob).mean()
        self.pi_opt.zero_grad(set_to_none=True)
        pi_loss.backward()
        self.pi_opt.step()
        self.pi_sched.step()
        return v_loss.item(), q_loss.item(), pi_loss.item()


@torch.no_grad()
def evaluate(actor, rng, episodes=5):
    env, returns = PointMass(rng), []
    for _ in range(episodes):
        s, total = env.reset(), 0.0
        while True:
            a = actor(torch.as_tensor(s, dtype=torch.float32)).mean.numpy()
            s, r, terminal, timeout = env.step(a)
            total += r
            if terminal or timeout:
                break
        returns.append(total)
    return float(np.mean(returns))


def main():
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    data = collect(rng)
    n = len(data["rew"])
    print("transitions", n)
    agent = Iql()
    for step in range(STEPS):
        idx = torch.from_numpy(rng.integers(0, n, 256))
        v, q, pi = agent.update({k: x[idx] for k, x in data.items()})
        print(step, f"v {v:.4f} q {q:.4f} pi {pi:.4f}")
        if (step + 1) % 4 == 0:
            print("  return", f"{evaluate(agent.actor, np.random.default_rng(SEED + 100)):.3f}")


if __name__ == "__main__":
    main()
