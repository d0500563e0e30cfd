"""A small Mega language model, or one Mega layer on features."""
import argparse
import torch
from torch import nn
from mega_pytorch import Mega, MegaLayer

p = argparse.ArgumentParser()
p.add_argument("--layer", action="store_true")
p.add_argument("--laplace", action="store_true")
p.add_argument("--bidirectional", action="store_true")
o = p.parse_args()
torch.manual_seed(0)
kwargs = dict(ema_heads=4, attn_dim_qk=8, attn_dim_value=32, laplacian_attn_fn=o.laplace, causal=not o.bidirectional)
if o.layer:
    model = MegaLayer(dim=16, **kwargs)
    x, y = torch.randn(2, 20, 16), torch.randn(2, 20, 16)
else:
    model = Mega(dim=16, num_tokens=32, depth=2, pre_norm=True, **kwargs)
    x, y = torch.randint(0, 32, (2, 20)), torch.randint(0, 32, (2, 20))
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
for i in range(4):
    out = model(x)
    loss = nn.functional.mse_loss(out, y) if o.layer else nn.functional.cross_entropy(out.transpose(1, 2), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"step {i} loss {loss.item()}", flush=True)
