import os

import torch
from groups import param_groups
from torch import nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm_1 = nn.LayerNorm(d)
        self.attn = nn.MultiheadAttention(d, 2, batch_first=True)
        self.norm_2 = nn.LayerNorm(d)
        self.fc = nn.Linear(d, d)

    def forward(self, x):
        h = self.norm_1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.fc(torch.relu(self.norm_2(x)))


class Normformer(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.stem = nn.Linear(8, d)
        self.block = Block(d)
        self.head = nn.Linear(d, 2)

    def forward(self, x):
        return self.head(self.block(self.stem(x)).mean(1))


torch.manual_seed(SEED)
net = nn.ModuleDict({"normformer": Normformer()})
opt = torch.optim.AdamW(param_groups(net, 0.1), lr=2e-3)
net.train()
for step in range(STEPS):
    x = torch.randn(10, 5, 8)
    loss = nn.functional.cross_entropy(net["normformer"](x), (x.sum((1, 2)) > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())
