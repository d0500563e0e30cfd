"""Attention with rotary positions of rotary_embedding_torch."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from torch import nn
from rotary_embedding_torch import RotaryEmbedding

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--xpos", type=int, default=0)
p.add_argument("--dtype", default="float32"); p.add_argument("--steps", type=int, default=2); o = p.parse_args()
oracle.setup(0)


def same_weights(model, std=0.2):
    """Matrices by their order, whatever a release calls them."""
    with torch.no_grad():
        for i, q in enumerate(q for q in model.parameters() if q.ndim > 1):
            q.copy_(torch.randn(q.shape, generator=torch.Generator().manual_seed(i)) * std)
    torch.manual_seed(0)
    return model


dtype = getattr(torch, o.dtype)
rotary = RotaryEmbedding(dim=16, use_xpos=bool(o.xpos))
to_qkv = same_weights(nn.Linear(32, 96, bias=False)).to(dtype)
opt = torch.optim.Adam(to_qkv.parameters(), lr=1e-2)
x, y = torch.randn(2, 12, 32).to(dtype), torch.randn(4, 12, 16).to(dtype)
with oracle.record(o.dump):
    for step in range(o.steps):
        q, k, v = (t.reshape(2, 12, 2, 16).transpose(1, 2).reshape(4, 12, 16) for t in to_qkv(x).chunk(3, dim=-1))
        if o.xpos:
            q, k = rotary.rotate_queries_and_keys(q, k)
        else:
            q, k = rotary.rotate_queries_or_keys(q), rotary.rotate_queries_or_keys(k)
        weights = (q @ k.transpose(1, 2) * 0.25).softmax(-1)
        loss = nn.functional.mse_loss(weights @ v, y)
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
