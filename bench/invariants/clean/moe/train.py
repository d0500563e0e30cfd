import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Switch(nn.Module):
    """Top-1 routing. An expert that no token chose runs not at all, and has no gradient."""

    def __init__(self, d, experts):
        super().__init__()
        self.router = nn.Linear(d, experts, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(d, 2 * d), nn.SiLU(), nn.Linear(2 * d, d)) for _ in range(experts)
        )

    def forward(self, x):
        flat = x.reshape(-1, x.shape[-1])
        probs = self.router(flat).softmax(-1)
        weight, chosen = probs.max(-1)
        out = torch.zeros_like(flat)
        for i, expert in enumerate(self.experts):
            rows = (chosen == i).nonzero(as_tuple=True)[0]
            if len(rows):
                out.index_add_(0, rows, weight[rows, None] * expert(flat[rows]))
        load = F.one_hot(chosen, len(self.experts)).float().mean(0)
        self.balance = len(self.experts) * (load * probs.mean(0)).sum()
        return out.view_as(x)


class Model(nn.Module):
    def __init__(self, vocab=24, d=12, experts=16):
        super().__init__()
        self.embed = nn.Embedding(vocab, d)
        self.gru = nn.GRU(d, d, batch_first=True)
        self.norm = nn.RMSNorm(d)
        self.moe = Switch(d, experts)
        self.out = nn.Linear(d, vocab)

    def forward(self, ids):
        h, _ = self.gru(self.embed(ids))
        return self.out(h + self.moe(self.norm(h)))


torch.manual_seed(SEED)
net = Model()
opt = torch.optim.NAdam(net.parameters(), lr=2e-3)
net.train()
for i in range(STEPS):
    ids = torch.cumsum(torch.randint(1, 3, (3, 7)), 1) % 24
    ce = F.cross_entropy(net(ids[:, :-1]).transpose(1, 2), ids[:, 1:])
    loss = ce + 0.01 * net.moe.balance
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    idle = sum(p.grad is None for p in net.parameters())
    print(i, ce.item(), "without gradient:", idle)
