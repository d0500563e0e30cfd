"""A small decoder with options of x-transformers."""
import argparse
import json
import torch
from x_transformers import TransformerWrapper, Decoder, AutoregressiveWrapper

p = argparse.ArgumentParser()
p.add_argument("--layers", default="{}", help="arguments of the decoder, as JSON")
p.add_argument("--noise", type=float, default=0.05)
o = p.parse_args()
torch.manual_seed(0)
model = AutoregressiveWrapper(TransformerWrapper(num_tokens=32, max_seq_len=32, attn_layers=Decoder(dim=16, depth=2, heads=2, attn_dim_head=8, **json.loads(o.layers))))
g = torch.Generator().manual_seed(1)
for name, q in sorted(model.named_parameters()):  # nothing stays at zero
    with torch.no_grad():
        q.add_(torch.randn(q.shape, generator=g) * o.noise)
x = torch.randint(0, 32, (2, 25))
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
for i in range(4):
    loss = model(x)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"step {i} loss {loss.item()}", flush=True)
