"""A small causal gMLP language model."""
import argparse
import torch
from torch import nn
from g_mlp_pytorch import gMLP

p = argparse.ArgumentParser()
p.add_argument("--heads", type=int, default=0)
p.add_argument("--attn", type=int, default=0)
p.add_argument("--causal", type=int, default=1)
o = p.parse_args()
torch.manual_seed(0)
kwargs = {}
if o.heads:
    kwargs["heads"] = o.heads
if o.attn:
    kwargs["attn_dim"] = o.attn
model = gMLP(num_tokens=32, dim=16, depth=2, seq_len=16, causal=bool(o.causal), **kwargs)
x = torch.randint(0, 32, (4, 17))
opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
for i in range(4):
    logits = model(x[:, :-1])
    loss = nn.functional.cross_entropy(logits.reshape(-1, 32), x[:, 1:].reshape(-1))
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"step {i} loss {loss.item()}", flush=True)
