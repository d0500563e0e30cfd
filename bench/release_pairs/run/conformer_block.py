"""Two steps of a small Conformer block under a linear head."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from torch import nn
from conformer import ConformerBlock

p = argparse.ArgumentParser(); p.add_argument("--dump"); o = p.parse_args()
oracle.setup(0)


def same_weights(model, std=0.2):
    """Matrices by their order, whatever a release calls them."""
    with torch.no_grad():
        for i, q in enumerate(q for q in model.parameters() if q.ndim > 1):
            q.copy_(torch.randn(q.shape, generator=torch.Generator().manual_seed(i)) * std)
    torch.manual_seed(0)
    return model


block = same_weights(ConformerBlock(dim=16, dim_head=8, heads=2, ff_mult=2, conv_kernel_size=5))
opt = torch.optim.Adam(block.parameters(), lr=1e-3)
x, y = torch.randn(2, 10, 16), torch.randn(2, 10, 16)
with oracle.record(o.dump):
    for step in range(2):
        loss = nn.functional.mse_loss(block(x), y)
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
