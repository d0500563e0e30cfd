"""A few steps of a named optimizer on a small regression."""
import argparse, importlib, io, json, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from torch import nn

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--optimizer"); p.add_argument("--kwargs", default="{}")
p.add_argument("--dtype", default="float32"); p.add_argument("--steps", type=int, default=4)
p.add_argument("--resume", type=int, default=0, help="after that many steps, go on from saved states in new objects")
p.add_argument("--lookahead", default="", help="module:Class to wrap the optimizer in"); o = p.parse_args()
oracle.setup(0)
module, _, name = o.optimizer.partition(":")


def build():
    model = nn.Sequential(nn.Linear(12, 24), nn.GELU(), nn.Linear(24, 4)).to(getattr(torch, o.dtype))
    oracle.reinit(model, std=0.3)
    opt = getattr(importlib.import_module(module), name)(model.parameters(), **json.loads(o.kwargs))
    if o.lookahead:
        outer, _, kind = o.lookahead.partition(":")
        opt = getattr(importlib.import_module(outer), kind)(opt, k=3)
    return model, opt


model, opt = build()
x, y = torch.randn(16, 12).to(getattr(torch, o.dtype)), torch.randn(16, 4).to(getattr(torch, o.dtype))
with oracle.record(o.dump):
    for step in range(o.steps):
        if o.resume and step == o.resume:
            saved = io.BytesIO()
            torch.save((model.state_dict(), opt.state_dict()), saved)
            model, opt = build()
            weights, state = torch.load(io.BytesIO(saved.getvalue()), weights_only=False)
            model.load_state_dict(weights)
            opt.load_state_dict(state)
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
