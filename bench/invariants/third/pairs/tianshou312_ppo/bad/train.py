"""PPO with a Gaussian policy on a batch of point-mass environments."""
import os
import tempfile

import torch
import torch.nn as nn
from torch.distributions import Independent, Normal

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
NUM_ENVS, HORIZON, EPOCHS, MINIBATCHES = 8, 16, 2, 2
GAMMA, LAMBDA, CLIP = 0.97, 0.95, 0.2


class PointMass:
    """Push a mass to the origin; the motors take forces in [-1, 1]."""
    low, high = -1.0, 1.0

    def __init__(self, n, seed):
        self.n, self.g = n, torch.Generator().manual_seed(seed)
        self.t = 0

    def reset(self):
        self.pos = torch.rand(self.n, 2, generator=self.g) * 4 - 2
        self.vel = torch.zeros(self.n, 2)
        self.t = 0
        return self.observe()

    def observe(self):
        return torch.cat([self.pos, self.vel], 1)

    def step(self, force):
        self.vel = 0.9 * self.vel + 0.2 * force
        self.pos = self.pos + self.vel
        self.t += 1
        reward = -0.1 * self.pos.norm(dim=1) - 0.01 * force.pow(2).sum(1)
        done = self.t >= 24
        obs = self.reset() if done else self.observe()
        return obs, reward, torch.full((self.n,), float(done))


class ActorCritic(nn.Module):
    def __init__(self, obs_dim=4, act_dim=2, hidden=32):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(obs_dim, hidden), nn.Tanh(), nn.Linear(hidden, act_dim))
        self.critic = nn.Sequential(nn.Linear(obs_dim, hidden), nn.Tanh(), nn.Linear(hidden, 1))
        self.log_std = nn.Parameter(torch.zeros(act_dim))

    def dist(self, obs):
        return Independent(Normal(self.actor(obs), self.log_std.exp()), 1)

    @torch.no_grad()
    def act(self, obs):
        dist = self.dist(obs)
        action = dist.sample()
        return action, dist.log_prob(action), self.critic(obs).squeeze(-1)

    def evaluate(self, obs, action):
        dist = self.dist(obs)
        return dist.log_prob(action), dist.entropy(), self.critic(obs).squeeze(-1)


class RolloutBuffer:
    fields = ("obs", "action", "log_prob", "value", "reward", "done")

    def __init__(self):
        self.data = {f: [] for f in self.fields}

    def add(self, *items):
        for field, item in zip(self.fields, items):
            self.data[field].append(item)

    def finish(self, last_value):
        b = {f: torch.stack(v) for f, v in self.data.items()}
        advantage, gae = torch.zeros_like(b["reward"]), torch.zeros(NUM_ENVS)
        for t in reversed(range(HORIZON)):
            nonterminal = 1.0 - b["done"][t]
            following = last_value if t == HORIZON - 1 else b["value"][t + 1]
            delta = b["reward"][t] + GAMMA * following * nonterminal - b["value"][t]
            gae = delta + GAMMA * LAMBDA * nonterminal * gae
            advantage[t] = gae
        b["advantage"], b["returns"] = advantage, advantage + b["value"]
        return {f: v.flatten(0, 1) for f, v in b.items()}


class PPO:
    def __init__(self, env):
        self.env, self.policy = env, ActorCritic()
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=7e-3, eps=1e-5)
        self.obs, self.updates = env.reset(), 0

    def collect(self):
        buffer = RolloutBuffer()
        for _ in range(HORIZON):
            action, log_prob, value = self.policy.act(self.obs)
            env_action = action.clamp(self.env.low, self.env.high)
            obs, reward, done = self.env.step(env_action)
            buffer.add(self.obs, env_action, log_prob, value, reward, done)
            self.obs = obs
        with torch.no_grad():
            last_value = self.policy.critic(self.obs).squeeze(-1)
        return buffer.finish(last_value)

    def loss(self, batch):
        log_prob, entropy, value = self.policy.evaluate(batch["obs"], batch["action"])
        adv = (batch["advantage"] - batch["advantage"].mean()) / (batch["advantage"].std() + 1e-8)
        ratio = (log_prob - batch["log_prob"]).exp()
        policy_loss = -torch.min(ratio * adv, ratio.clamp(1 - CLIP, 1 + CLIP) * adv).mean()
        value_loss = 0.5 * (value - batch["returns"]).pow(2).mean()
        return policy_loss, value_loss, entropy.mean()

    def learn(self, total_updates):
        while self.updates < total_updates:
            rollout = self.collect()
            print(f"rollout reward {rollout['reward'].mean().item():.3f}")
            for _ in range(EPOCHS):
                for rows in torch.randperm(NUM_ENVS * HORIZON).chunk(MINIBATCHES):
                    policy_loss, value_loss, entropy = self.loss({f: v[rows] for f, v in rollout.items()})
                    loss = policy_loss + 0.5 * value_loss - 0.001 * entropy
                    self.optimizer.zero_grad()
                    loss.backward()
                    nn.utils.clip_grad_norm_(self.policy.parameters(), 0.5)
                    self.optimizer.step()
                    self.updates += 1
                    print(f"update {self.updates} loss {loss.item():.4f} value_loss {value_loss.item():.4f}")
                    if self.updates == total_updates:
                        return

    @torch.no_grad()
    def test(self):
        env, total = PointMass(16, SEED + 99), 0.0
        obs = env.reset()
        for _ in range(20):
            obs, reward, _ = env.step(self.policy.actor(obs).clamp(env.low, env.high))
            total += reward.mean().item()
        return total


def main():
    torch.manual_seed(SEED)
    agent = PPO(PointMass(NUM_ENVS, SEED))
    agent.learn(STEPS)
    print(f"test return {agent.test():.2f}")
    with tempfile.TemporaryDirectory() as out:
        torch.save(agent.policy.state_dict(), os.path.join(out, "policy.pth"))


if __name__ == "__main__":
    main()
