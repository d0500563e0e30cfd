"""Reconstruct set elements from slots."""
import argparse
import torch
from torch import nn
import slot_attention

p = argparse.ArgumentParser()
p.add_argument("--cls", default="SlotAttention")
p.add_argument("--steps", type=int, default=4)
o = p.parse_args()
torch.manual_seed(0)
kwargs = dict(heads=2, dim_head=8) if o.cls.startswith("Multi") else {}
slots = getattr(slot_attention, o.cls)(num_slots=4, dim=16, iters=3, hidden_dim=32, **kwargs)
decoder = nn.Linear(16, 16)
for module in (slots, decoder):  # the same start whatever the order of construction
    for name, q in sorted(module.named_parameters()):
        with torch.no_grad():
            q.copy_(torch.randn(q.shape) * 0.2 + (1.0 if "norm" in name and name.endswith("weight") else 0.0))
x = torch.randn(4, 12, 16)
opt = torch.optim.Adam([q for m in (slots, decoder) for _, q in sorted(m.named_parameters())], lr=1e-3)
for i in range(o.steps):
    out = decoder(slots(x))
    loss = (torch.cdist(out, x).amin(1) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"step {i} loss {loss.item()}", flush=True)
