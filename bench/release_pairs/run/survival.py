"""A few steps of a survival model with a loss of torchsurv."""
import argparse, importlib.machinery, os, sys, warnings
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import types

import torch
from torch import nn
# torchsurv imports these for metrics that nobody here uses.
for name in ("torchmetrics", "pandas", "matplotlib"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__spec__ = importlib.machinery.ModuleSpec(name, None)
sys.modules["torchmetrics"].regression = None
sys.modules["matplotlib"].pyplot = sys.modules["matplotlib.pyplot"] = types.ModuleType("matplotlib.pyplot")
sys.modules["pandas"].DataFrame = object

from torchsurv.loss import cox, weibull
from torchsurv.loss.momentum import Momentum

for name in ("torchmetrics", "pandas", "matplotlib", "matplotlib.pyplot"):
    del sys.modules[name]

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--loss", default="breslow"); p.add_argument("--steps", type=int, default=4)
p.add_argument("--final", default=""); o = p.parse_args()
oracle.setup(0)
warnings.simplefilter("ignore")
weibull_loss = getattr(weibull, "neg_log_likelihood_weibull", None) or weibull.neg_log_likelihood
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2 if o.loss == "weibull" else 1))
oracle.reinit(model, std=0.3)
if o.loss == "momentum":
    model = Momentum(model, cox.neg_partial_log_likelihood, rate=0.9)
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
with oracle.record(o.dump):
    for step in range(o.steps):
        x, event = torch.randn(16, 8), torch.rand(16) < 0.7
        time = torch.rand(16) * 5 + 0.1 if o.loss == "momentum" else torch.randint(1, 9, (16,)).float()
        if o.loss == "momentum":
            loss = model(x, event, time)
        elif o.loss == "weibull":
            loss = weibull_loss(model(x), event, time)
        else:
            loss = cox.neg_partial_log_likelihood(model(x).squeeze(-1), event, time, ties_method=o.loss, reduction="sum")
        loss.backward()
        opt.step()
        opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
if o.final:
    torch.save((model.state_dict(), opt.state_dict()), o.final)
