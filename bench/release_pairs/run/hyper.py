"""Two branches on hyper-connections under a head."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from torch import nn
from hyper_connections import get_init_and_expand_reduce_stream_functions

p = argparse.ArgumentParser(); p.add_argument("--dump"); o = p.parse_args()
oracle.setup(0)
init, expand, gather = get_init_and_expand_reduce_stream_functions(3)
branch = lambda: nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
blocks = nn.ModuleList([init(dim=16, branch=branch(), layer_index=i) for i in range(2)])
head = nn.Linear(16, 4)
net = nn.ModuleList([blocks, head])
torch.manual_seed(0)
for part in net.modules():
    if isinstance(part, nn.Linear):
        nn.init.normal_(part.weight, std=0.2)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
x, y = torch.randn(4, 6, 16), torch.randint(0, 4, (4,))
with oracle.record(o.dump):
    for step in range(4):
        h = expand(x)
        for block in blocks:
            h = block(h)
        loss = nn.functional.cross_entropy(head(gather(h).mean(1)), y)
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
