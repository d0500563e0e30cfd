"""A small Mamba in pure torch under a head."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from torch import nn
from mambapy.mamba import Mamba, MambaConfig

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--pscan", type=int, default=1); p.add_argument("--norms", type=int, default=0)
o = p.parse_args()
oracle.setup(0)
core = Mamba(MambaConfig(d_model=16, n_layers=2, d_state=4, pscan=bool(o.pscan), inner_layernorms=bool(o.norms)))
net = nn.Sequential(nn.Embedding(20, 16), core, nn.Linear(16, 20))
opt = torch.optim.AdamW(net.parameters(), lr=1e-2)
tokens = torch.randint(0, 20, (4, 13))
with oracle.record(o.dump):
    for step in range(3):
        said = net(tokens[:, :-1])
        loss = nn.functional.cross_entropy(said.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
