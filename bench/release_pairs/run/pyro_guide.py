"""A few steps of variational inference with an automatic guide of pyro."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

# pyro 1.6 asks for torch 1.
torch_version, torch.__version__ = torch.__version__, torch.torch_version.TorchVersion("1.13.0")
import pyro
import pyro.distributions as dist
from pyro.infer import SVI, Trace_ELBO
from pyro.infer import autoguide
from pyro.optim import ClippedAdam

torch.__version__ = torch_version

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--guide", default="AutoDiagonalNormal"); p.add_argument("--steps", type=int, default=4)
p.add_argument("--final", default=""); o = p.parse_args()
oracle.setup(0)
pyro.clear_param_store()
x = torch.randn(32, 3)
y = x @ torch.tensor([1.0, -2.0, 0.5]) + 0.1 * torch.randn(32)


def model(x, y):
    weight = pyro.sample("weight", dist.Normal(torch.zeros(3), torch.ones(3)).to_event(1))
    bias = pyro.sample("bias", dist.Normal(0.0, 1.0))
    sigma = pyro.sample("sigma", dist.LogNormal(0.0, 1.0))
    with pyro.plate("data", len(x)):
        pyro.sample("y", dist.Normal(x @ weight + bias, sigma), obs=y)


guide = getattr(autoguide, o.guide)(model)
svi = SVI(model, guide, ClippedAdam({"lr": 0.02, "lrd": 0.99}), Trace_ELBO(num_particles=2))
with oracle.record(o.dump):
    for step in range(o.steps):
        print("step", step, "loss", repr(float(svi.step(x, y))), flush=True)
if o.final:
    torch.save(({k: v.detach() for k, v in pyro.get_param_store().named_parameters()},
                [(s.state_dict()) for s in svi.optim.optim_objs.values()]), o.final)
