"""Sparse attention with entmax by bisection, over sharp or flat scores."""
import argparse
import torch
from torch import nn
from entmax import entmax_bisect, EntmaxBisectLoss

p = argparse.ArgumentParser()
p.add_argument("--scale", type=float, default=1.0)
p.add_argument("--raw", action="store_true", help="do not normalise the probabilities after the bisection")
o = p.parse_args()
torch.manual_seed(0)


class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x):
        scores = self.q(x) @ self.k(x).transpose(-1, -2) * o.scale
        p = entmax_bisect(scores, alpha=1.5, dim=-1, n_iter=40, ensure_sum_one=not o.raw)
        return p @ self.v(x)


model = nn.Sequential(Attention(16), nn.LayerNorm(16), nn.Linear(16, 5))
loss_fn = EntmaxBisectLoss(alpha=1.5, n_iter=40)
x, y = torch.randn(6, 10, 16), torch.randint(0, 5, (6,))
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for i in range(4):
    loss = loss_fn(model(x).mean(1), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"step {i} loss {loss.item()}", flush=True)
