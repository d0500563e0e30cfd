"""A small enhancer which works at a lower rate: resample down, convolve, resample up."""
import julius
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.up = julius.ResampleFrac(5, 3), julius.ResampleFrac(3, 5)
        self.body = nn.Sequential(nn.Conv1d(1, 8, 9, padding=4), nn.GELU(), nn.Conv1d(8, 1, 9, padding=4))

    def forward(self, x):
        return self.up(self.body(self.down(x)))


torch.manual_seed(0)
model = Net()
opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(4):
    clean = torch.sin(torch.arange(500) * (0.05 + 0.1 * torch.rand(4, 1, 1)))
    noisy = clean + 0.3 * torch.randn_like(clean)
    opt.zero_grad()
    loss = nn.functional.l1_loss(model(noisy), clean)
    loss.backward()
    opt.step()
    print(f"step {step} loss {loss.item()}", flush=True)
