import os

import torch
from torch import nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Agent(nn.Module):
    def __init__(self, obs, actions, hidden=16):
        super().__init__()
        self.fc1 = nn.Linear(obs, hidden)
        self.rnn = nn.GRUCell(hidden, hidden)
        self.fc2 = nn.Linear(hidden, actions)

    def forward(self, o, h):
        h = self.rnn(torch.relu(self.fc1(o)), h)
        return self.fc2(h), h


class Mixer(nn.Module):
    """A monotone mix of the agents' values, weighted by the state."""

    def __init__(self, agents, state, hidden=8):
        super().__init__()
        self.agents, self.hidden = agents, hidden
        self.w1, self.b1 = nn.Linear(state, agents * hidden), nn.Linear(state, hidden)
        self.w2, self.b2 = nn.Linear(state, hidden), nn.Linear(state, 1)

    def forward(self, q, s):
        w1 = self.w1(s).abs().view(-1, self.agents, self.hidden)
        h = torch.nn.functional.elu(torch.bmm(q.unsqueeze(1), w1).squeeze(1) + self.b1(s))
        return (h * self.w2(s).abs()).sum(1, keepdim=True) + self.b2(s)


class Policy:
    def __init__(self, update_cycle=2):
        self.eval_rnn, self.target_rnn = Agent(4, 3), Agent(4, 3)
        self.eval_mix, self.target_mix = Mixer(2, 6), Mixer(2, 6)
        self.target_rnn.load_state_dict(self.eval_rnn.state_dict())
        self.target_mix.load_state_dict(self.eval_mix.state_dict())
        self.params = [*self.eval_rnn.parameters(), *self.eval_mix.parameters()]
        self.optimizer = torch.optim.RMSprop(self.params, lr=2e-3)
        self.update_cycle = update_cycle

    def values(self, rnn, mix, obs, state, pick):
        n = obs.shape[0]
        q, _ = rnn(obs.reshape(n * 2, -1), torch.zeros(n * 2, 16))
        return mix(pick(q).view(n, 2), state)

    def learn(self, b, train_step):
        chosen = b["u"].reshape(-1, 1)
        q = self.values(self.eval_rnn, self.eval_mix, b["o"], b["s"], lambda v: v.gather(1, chosen))
        with torch.no_grad():
            q_next = self.values(self.target_rnn, self.target_mix, b["o2"], b["s2"], lambda v: v.max(1).values)
        loss = (b["r"] + 0.95 * q_next - q).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.params, 10)
        self.optimizer.step()
        if train_step > 0 and train_step % self.update_cycle == 0:
            self.target_rnn.load_state_dict(self.eval_rnn.state_dict())
            self.target_mix.load_state_dict(self.target_mix.state_dict())
        return loss.item()


def batch(n=16):
    o, o2 = torch.randn(n, 2, 4), torch.randn(n, 2, 4)
    s, s2 = o.flatten(1)[:, :6], o2.flatten(1)[:, :6]
    return {"o": o, "o2": o2, "s": s, "s2": s2, "u": torch.randint(0, 3, (n, 2)), "r": s.sum(1, keepdim=True)}


torch.manual_seed(SEED)
policy = Policy()
for step in range(STEPS):
    print(step, policy.learn(batch(), step))
