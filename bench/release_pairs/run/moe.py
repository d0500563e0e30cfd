"""A small mixture of experts under a head."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from torch import nn
from mixture_of_experts import MoE

p = argparse.ArgumentParser(); p.add_argument("--dump")
p.add_argument("--own", type=int, default=0, help="begin with the release's own weights"); o = p.parse_args()
oracle.setup(0)
x, y = torch.randn(4, 12, 16), torch.randint(0, 4, (4,))


def build():
    net = nn.ModuleList([MoE(dim=16, num_experts=4, hidden_dim=32), nn.Linear(16, 4)])
    if not o.own:
        oracle.reinit(net, std=0.2)
    torch.manual_seed(0)
    return net


net = None if o.own else build()
with oracle.record(o.dump):
    layer, head = net = net or build()
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    for step in range(3):
        mixed, aux = layer(x)
        loss = nn.functional.cross_entropy(head((x + mixed).mean(1)), y) + aux
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
