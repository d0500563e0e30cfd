"""A few steps of a Riemannian optimizer on points of the sphere and plain weights."""
import argparse, json, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import scipy.optimize._linesearch
import torch

# geoopt 0.3 scripts functions that torch has removed; nobody here uses them, and imports from a place that scipy has moved.
sys.modules["scipy.optimize.linesearch"] = scipy.optimize._linesearch
torch.jit.script = lambda f, *rest, **options: f

import geoopt

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--optimizer", default="RiemannianAdam"); p.add_argument("--kwargs", default="{}")
p.add_argument("--plain", type=int, default=1, help="a Euclidean parameter beside"); p.add_argument("--steps", type=int, default=4)
p.add_argument("--final", default=""); o = p.parse_args()
oracle.setup(0)
basis = geoopt.ManifoldParameter(torch.nn.functional.normalize(torch.randn(3, 8), dim=-1), manifold=geoopt.Sphere())
weight = torch.nn.Parameter(torch.randn(3, 2) * 0.3)
x, y = torch.randn(32, 8), torch.randn(32, 2)
opt = getattr(geoopt.optim, o.optimizer)([basis, weight] if o.plain else [basis], **json.loads(o.kwargs))
with oracle.record(o.dump):
    for step in range(o.steps):
        loss = torch.nn.functional.mse_loss(x @ basis.t() @ weight, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print("step", step, "loss", repr(loss.item()), flush=True)
if o.final:
    torch.save(([q.detach().as_subclass(torch.Tensor) for q in (basis, weight)], opt.state_dict()), o.final)
