"""One block of invariant point attention."""
import torch
from torch import nn
from invariant_point_attention import IPABlock

torch.manual_seed(0)
model = IPABlock(dim=16, heads=2, scalar_key_dim=4, scalar_value_dim=4, point_key_dim=3, point_value_dim=3)
x, pair = torch.randn(2, 7, 16), torch.randn(2, 7, 7, 16)
rotations = torch.linalg.qr(torch.randn(2, 7, 3, 3))[0]
translations, y = torch.randn(2, 7, 3), torch.randn(2, 7, 16)
mask = torch.ones(2, 7).bool()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
for i in range(4):
    out = model(x, pairwise_repr=pair, rotations=rotations, translations=translations, mask=mask)
    loss = nn.functional.mse_loss(out, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"step {i} loss {loss.item()}", flush=True)
