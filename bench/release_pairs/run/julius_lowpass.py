"""A learnt gain curve on band limited noise: the lowpass of the library is in the model."""
import argparse
import julius
import torch
from torch import nn

p = argparse.ArgumentParser(); p.add_argument("--cutoff", type=float, default=0.1); p.add_argument("--fft", action="store_true"); o = p.parse_args()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.pre = nn.Conv1d(1, 4, 9, padding=4)
        self.low = julius.LowPassFilters([o.cutoff, 2 * o.cutoff], fft=o.fft)
        self.post = nn.Conv1d(8, 1, 9, padding=4)

    def forward(self, x):
        y = torch.tanh(self.pre(x))
        low = self.low(y)
        return self.post(torch.cat([low[0], low[1]], 1))


torch.manual_seed(0)
model = Net()
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
x = torch.randn(4, 1, 600)
y = torch.cumsum(x, -1) * 0.1
for step in range(4):
    opt.zero_grad()
    loss = nn.functional.l1_loss(model(x), y)
    loss.backward()
    opt.step()
    print(f"step {step} loss {loss.item()}", flush=True)
