"""A small Reformer language model."""
import argparse
import torch
from torch import nn
from reformer_pytorch import ReformerLM

p = argparse.ArgumentParser()
p.add_argument("--causal", type=int, default=1)
p.add_argument("--dim_head", type=int, default=0)
o = p.parse_args()
torch.manual_seed(0)
kwargs = dict(dim_head=o.dim_head) if o.dim_head else {}
model = ReformerLM(num_tokens=32, dim=16, depth=2, max_seq_len=32, heads=2, bucket_size=4, n_hashes=2, ff_chunks=1, causal=bool(o.causal), **kwargs)
x = torch.randint(0, 32, (2, 32))
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
for i in range(4):
    out = model(x)
    loss = nn.functional.cross_entropy(out[:, :-1].transpose(1, 2), x[:, 1:])
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"step {i} loss {loss.item()}", flush=True)
