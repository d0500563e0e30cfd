"""Adam under a warm-up of pytorch_warmup, resumed or not."""
import argparse, io, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from torch import nn
import pytorch_warmup

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--resume", type=int, default=0); p.add_argument("--warm", default="UntunedLinearWarmup")
o = p.parse_args()
oracle.setup(0)


def build():
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2))
    oracle.reinit(model, std=0.4)
    opt = torch.optim.Adam(model.parameters(), lr=0.05, betas=(0.9, 0.95))
    schedule = torch.optim.lr_scheduler.StepLR(opt, step_size=3, gamma=0.5)
    return model, opt, schedule


model, opt, schedule = build()
warm = getattr(pytorch_warmup, o.warm)(opt)
x, y = torch.randn(10, 8), torch.randn(10, 2)
with oracle.record(o.dump):
    for step in range(5):
        if o.resume and step == o.resume:
            saved = io.BytesIO()
            torch.save((model.state_dict(), opt.state_dict(), schedule.state_dict()), saved)
            model, opt, schedule = build()
            weights, state, rates = torch.load(io.BytesIO(saved.getvalue()), weights_only=False)
            model.load_state_dict(weights)
            opt.load_state_dict(state)
            schedule.load_state_dict(rates)
            warm = getattr(pytorch_warmup, o.warm)(opt)
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward(); opt.step(); opt.zero_grad()
        with warm.dampening():
            schedule.step()
        print("step", step, "loss", repr(loss.item()), flush=True)
