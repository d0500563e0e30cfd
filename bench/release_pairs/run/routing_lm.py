"""A small routing transformer over features or tokens."""
import argparse
import torch
from torch import nn
from routing_transformer import RoutingTransformerLM

p = argparse.ArgumentParser()
p.add_argument("--causal", type=int, default=0)
p.add_argument("--local_window", type=int, default=0)
p.add_argument("--local", type=int, default=2)
o = p.parse_args()
torch.manual_seed(0)
kwargs = dict(local_attn_window_size=o.local_window) if o.local_window else {}
model = RoutingTransformerLM(num_tokens=32, dim=16, depth=2, max_seq_len=32, heads=4, dim_head=8, window_size=8, causal=bool(o.causal),
                             n_local_attn_heads=o.local, _register_kmeans_update=False, **kwargs)
x = torch.randint(0, 32, (2, 32))
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
for i in range(4):
    out, aux = model(x)
    loss = nn.functional.cross_entropy(out.transpose(1, 2), x.roll(1, 1)) + aux.sum()
    opt.zero_grad()
    loss.backward()
    model.update_kmeans()
    opt.step()
    print(f"step {i} loss {loss.item()}", flush=True)
