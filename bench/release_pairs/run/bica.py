"""Two sequences that attend to each other."""
import torch
from torch import nn
from bidirectional_cross_attention import BidirectionalCrossAttention

torch.manual_seed(0)
model = BidirectionalCrossAttention(dim=16, heads=2, dim_head=8, context_dim=12, prenorm=True)
a, b = torch.randn(2, 9, 16), torch.randn(2, 7, 12)
mask = torch.ones(2, 7).bool()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
for i in range(4):
    x, c = model(a, b, context_mask=mask)
    loss = nn.functional.mse_loss(a + x, a.roll(1, 1)) + nn.functional.mse_loss(b + c, b.roll(1, 1))
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"step {i} loss {loss.item()}", flush=True)
