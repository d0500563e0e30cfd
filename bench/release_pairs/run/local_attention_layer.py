"""Local attention inside a projection, two steps."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from torch import nn
from local_attention import LocalAttention

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--rotary", type=int, default=1); o = p.parse_args()
oracle.setup(0)


def same_weights(model, std=0.2):
    """Matrices by their order, whatever a release calls them."""
    with torch.no_grad():
        for i, q in enumerate(q for q in model.parameters() if q.ndim > 1):
            q.copy_(torch.randn(q.shape, generator=torch.Generator().manual_seed(i)) * std)
    torch.manual_seed(0)
    return model


attention = LocalAttention(window_size=8, causal=True, look_backward=1, look_forward=0, autopad=True, dropout=0.0, **({"dim": 16} if o.rotary else {}))
to_qkv, to_out = same_weights(nn.ModuleList([nn.Linear(32, 96, bias=False), nn.Linear(32, 32, bias=False)]))
opt = torch.optim.Adam([*to_qkv.parameters(), *to_out.parameters()], lr=1e-2)
x, y = torch.randn(2, 24, 32), torch.randn(2, 24, 32)
with oracle.record(o.dump):
    for step in range(2):
        q, k, v = (t.reshape(2, 24, 2, 16).transpose(1, 2).reshape(4, 24, 16) for t in to_qkv(x).chunk(3, dim=-1))
        out = attention(q, k, v).reshape(2, 2, 24, 16).transpose(1, 2).reshape(2, 24, 32)
        loss = nn.functional.mse_loss(to_out(out), y)
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
