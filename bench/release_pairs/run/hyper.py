"""Two residual layers under hyper-connections."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from torch import nn
from hyper_connections import get_init_and_expand_reduce_stream_functions

p = argparse.ArgumentParser(); p.add_argument("--dump"); o = p.parse_args()
oracle.setup(0)


def same_weights(model, std=0.2):
    """Matrices by their order, whatever a release calls them."""
    with torch.no_grad():
        for i, q in enumerate(q for q in model.parameters() if q.ndim > 1):
            q.copy_(torch.randn(q.shape, generator=torch.Generator().manual_seed(i)) * std)
    torch.manual_seed(0)
    return model


init_hyper_conn, expand, reduce = get_init_and_expand_reduce_stream_functions(2)
layers = same_weights(nn.ModuleList([init_hyper_conn(dim=16, branch=nn.Linear(16, 16, bias=False), layer_index=i) for i in range(2)]))
opt = torch.optim.Adam(layers.parameters(), lr=1e-2)
x, y = torch.randn(2, 6, 16), torch.randn(2, 6, 16)
with oracle.record(o.dump):
    for step in range(2):
        streams = expand(x)
        for layer in layers:
            streams = layer(streams)
        loss = nn.functional.mse_loss(reduce(streams), y)
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
