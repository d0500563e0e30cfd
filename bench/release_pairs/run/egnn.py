"""Two steps of an equivariant graph layer with normalised coordinates."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from torch import nn
from egnn_pytorch import EGNN

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--norm", type=int, default=1); o = p.parse_args()
oracle.setup(0)


def same_weights(model, std=0.2):
    """Matrices by their order, whatever a release calls them."""
    with torch.no_grad():
        for i, q in enumerate(q for q in model.parameters() if q.ndim > 1):
            q.copy_(torch.randn(q.shape, generator=torch.Generator().manual_seed(i)) * std)
    torch.manual_seed(0)
    return model


layer = same_weights(EGNN(dim=8, m_dim=8, **({"norm_coors": True} if o.norm else {})))
opt = torch.optim.Adam(layer.parameters(), lr=1e-3)
feats, coors, target = torch.randn(1, 6, 8), torch.randn(1, 6, 3), torch.randn(1, 6, 3)
with oracle.record(o.dump):
    for step in range(2):
        left, moved = layer(feats, coors)
        loss = nn.functional.mse_loss(moved, target) + left.pow(2).mean()
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
