import copy
import itertools
import os

import torch
import torch.nn as nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
GAMMA, TAU = 0.97, 0.05


class Critic(nn.Module):
    def __init__(self, s=3, a=1):
        super().__init__()
        self.l1, self.l2 = nn.Linear(s + a, 32), nn.Linear(32, 1)

    def forward(self, s, a):
        return self.l2(torch.relu(self.l1(torch.cat([s, a], 1))))


class Actor(nn.Module):
    def __init__(self, s=3, a=1):
        super().__init__()
        self.l1, self.l2 = nn.Linear(s, 32), nn.Linear(32, a)

    def forward(self, s):
        return torch.tanh(self.l2(torch.relu(self.l1(s))))


class DDPG:
    def __init__(self):
        self.actor, self.critic = Actor(), Critic()
        self.actor_target, self.critic_target = copy.deepcopy(self.actor), copy.deepcopy(self.critic)
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), lr=1e-3)
        both = itertools.chain(self.critic.parameters(), self.critic_target.parameters())
        self.critic_optimizer = torch.optim.Adam(both, lr=2e-3, weight_decay=1e-2)

    def train(self, s, a, r, s2):
        target_q = self.critic_target(s2, self.actor_target(s2))
        target_q = r + GAMMA * target_q
        critic_loss = nn.functional.mse_loss(self.critic(s, a), target_q)
        self.critic_optimizer.zero_grad()
        critic_loss.backward()
        self.critic_optimizer.step()

        actor_loss = -self.critic(s, self.actor(s)).mean()
        self.actor_optimizer.zero_grad()
        actor_loss.backward()
        self.actor_optimizer.step()

        pairs = itertools.chain(
            zip(self.critic.parameters(), self.critic_target.parameters()),
            zip(self.actor.parameters(), self.actor_target.parameters()),
        )
        for p, t in pairs:
            t.data.copy_(TAU * p.data + (1 - TAU) * t.data)
        return critic_loss.item(), actor_loss.item()


def main():
    torch.manual_seed(SEED)
    agent = DDPG()
    s = torch.randn(20, 3)
    for step in range(STEPS):
        with torch.no_grad():
            a = (agent.actor(s) + 0.2 * torch.randn(20, 1)).clamp(-1, 1)
        s2 = 0.9 * s + 0.3 * a
        print(step, *agent.train(s, a, -s2.pow(2).sum(1, keepdim=True), s2))
        s = s2 + 0.1 * torch.randn_like(s2)


main()
