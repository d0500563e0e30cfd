import os

import torch
from torch import nn
from torch.distributions import Categorical

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Corridor:
    """Walk right to the goal at cell 5; each step costs 0.1."""

    def __init__(self):
        self.at = 0

    def reset(self):
        self.at = 2
        return self.state()

    def state(self):
        return torch.nn.functional.one_hot(torch.tensor(self.at), 6).float()

    def step(self, action):
        self.at = max(0, min(5, self.at + (1 if action == 1 else -1)))
        done = self.at in (0, 5)
        return self.state(), (1.0 if self.at == 5 else -0.1), done


def play(env, policy, limit=20):
    log_probs, rewards = [], []
    state, done = env.reset(), False
    while not done and len(rewards) < limit:
        d = Categorical(logits=policy(state))
        action = d.sample()
        state, reward, done = env.step(int(action))
        log_probs.append(d.log_prob(action))
        rewards.append(reward)
    return torch.stack(log_probs), rewards


def discounted(rewards, gamma=0.95):
    out, total = [], 0.0
    for r in reversed(rewards):
        total = r + gamma * total
        out.append(total)
    return torch.tensor(out[::-1])


def main():
    torch.manual_seed(SEED)
    env = Corridor()
    policy = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 2))
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    baseline = 0.0
    for episode in range(STEPS):
        log_probs, rewards = play(env, policy)
        returns = discounted(rewards)
        loss = -(log_probs * (returns - baseline)).sum()
        baseline = 0.9 * baseline + 0.1 * float(returns.mean())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"episode {episode} length {len(rewards)} return {sum(rewards):.2f}")


if __name__ == "__main__":
    main()
