"""Advantage actor-critic on a vector of small environments."""
import os

import torch
import torch.nn as nn
from envs import TrackEnvs
from torch.distributions import Categorical

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
NUM_ENVS, NUM_STEPS, GAMMA = 8, 10, 0.97


class ActorCritic(nn.Module):
    def __init__(self, inputs, actions, hidden=32):
        super().__init__()
        self.critic = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, 1))
        self.actor = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, actions))

    def forward(self, x):
        return Categorical(logits=self.actor(x)), self.critic(x)


def compute_returns(next_value, rewards, masks):
    running, returns = next_value, []
    for reward, mask in zip(reversed(rewards), reversed(masks)):
        running = reward + GAMMA * running * mask
        returns.insert(0, running)
    return returns


def main():
    torch.manual_seed(SEED)
    envs = TrackEnvs(NUM_ENVS, torch.Generator().manual_seed(SEED))
    model = ActorCritic(3, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    model.train()
    state = envs.reset()
    for update in range(STEPS):
        log_probs, values, rewards, masks, entropy = [], [], [], [], 0.0
        for _ in range(NUM_STEPS):
            dist, value = model(state)
            action = dist.sample()
            state, reward, done = envs.step(action)
            log_probs.append(dist.log_prob(action))
            values.append(value)
            rewards.append(reward.unsqueeze(1))
            masks.append(1 - done.unsqueeze(1))
            entropy = entropy + dist.entropy().mean() / NUM_STEPS
        with torch.no_grad():
            _, next_value = model(state)
        returns = torch.cat(compute_returns(next_value, rewards, masks))
        values = torch.cat(values)
        log_probs = torch.cat(log_probs)

        advantage = returns - values
        actor_loss = -(log_probs * advantage.detach()).mean()
        critic_loss = advantage.pow(2).mean()
        loss = actor_loss + 0.5 * critic_loss - 0.001 * entropy

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"update {update} reward {torch.cat(rewards).mean():.4f} loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
