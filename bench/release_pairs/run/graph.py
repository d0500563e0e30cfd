"""Two steps of a small graph network of torch_geometric."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from torch import nn
from torch_geometric.nn import GATConv
from torch_geometric.nn.aggr import StdAggregation

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--kind", default="std"); o = p.parse_args()
oracle.setup(0)


def same_weights(model, std=0.2):
    """Matrices by their order, whatever a release calls them."""
    with torch.no_grad():
        for i, q in enumerate(q for q in model.parameters() if q.ndim > 1):
            q.copy_(torch.randn(q.shape, generator=torch.Generator().manual_seed(i)) * std)
    torch.manual_seed(0)
    return model


edges = torch.tensor([[0, 1, 2, 3, 4, 5, 0, 2, 5], [1, 2, 3, 4, 5, 0, 3, 5, 2]])
x, y = torch.randn(6, 8), torch.randn(6, 8)
layer = same_weights(GATConv(8, 4, heads=2) if o.kind == "gat" else nn.Linear(8, 8))
spread = StdAggregation()
opt = torch.optim.Adam(layer.parameters(), lr=1e-2)
with oracle.record(o.dump):
    for step in range(2):
        if o.kind == "gat":
            out = layer(x, edges)
        else:
            out = spread(layer(x)[edges[0]], edges[1], dim_size=6)
        loss = nn.functional.mse_loss(out, y)
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
