import copy
import os
import random
from collections import deque

import torch
import torch.nn.functional as F
from torch import nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
SYNC_EVERY = 3


class QNet(nn.Module):
    def __init__(self, states, actions):
        super().__init__()
        self.fc1 = nn.Linear(states, 32)
        self.fc2 = nn.Linear(32, actions)

    def forward(self, s):
        return self.fc2(F.relu(self.fc1(s)))


def env_step(state, action):
    drift = torch.tensor([0.1, -0.1, 0.0])[action]
    after = (state + drift + 0.02 * torch.randn(4)).clamp(-1, 1)
    return after, float(-after.abs().sum()), random.random() < 0.05


def main():
    random.seed(SEED)
    torch.manual_seed(SEED)
    q = QNet(4, 3)
    target = copy.deepcopy(q)
    target.eval()
    opt = torch.optim.RMSprop(q.parameters(), lr=1e-3)
    memory = deque(maxlen=500)
    state, learned = torch.rand(4), 0
    while learned < STEPS:
        if random.random() < 0.2:
            action = random.randrange(3)
        else:
            with torch.no_grad():
                action = int(q(state).argmax())
        after, reward, done = env_step(state, action)
        memory.append((state, action, reward, after, done))
        state = torch.rand(4) if done else after
        if len(memory) < 16:
            continue
        s, a, r, n, d = zip(*random.sample(memory, 16))
        with torch.no_grad():
            best = target(torch.stack(n)).max(1).values
            wanted = torch.tensor(r) + 0.99 * best * (1 - torch.tensor(d, dtype=torch.float32))
        got = q(torch.stack(s)).gather(1, torch.tensor(a).unsqueeze(1)).squeeze(1)
        loss = F.smooth_l1_loss(got, wanted)
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(q.parameters(), 1.0)
        opt.step()
        learned += 1
        if learned % SYNC_EVERY == 0:
            target.load_state_dict(q.state_dict())
        print(learned, round(loss.item(), 5))


main()
