"""A normalizing flow, fitted to samples by maximum likelihood or to an energy."""
import argparse
import torch
import normflows as nf

p = argparse.ArgumentParser(); p.add_argument("--kind", default="spline"); p.add_argument("--loss", default="kld"); o = p.parse_args()
torch.manual_seed(0)
flows = []
for i in range(2):
    if o.kind == "spline":
        flows += [nf.flows.AutoregressiveRationalQuadraticSpline(2, 1, 16), nf.flows.LULinearPermute(2)]
    else:
        flows += [nf.flows.AffineCouplingBlock(nf.nets.MLP([1, 16, 2], init_zeros=False)), nf.flows.Permute(2, mode="swap"), nf.flows.ActNorm(2)]
model = nf.NormalizingFlow(nf.distributions.base.DiagGaussian(2), flows)
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(4):
    x = torch.randn(64, 2) * torch.tensor([1.0, 0.3])
    x[:, 1] += 0.5 * x[:, 0] ** 2
    opt.zero_grad()
    if o.loss == "kld":
        loss = model.forward_kld(x)
    else:  # reverse: push samples of the base through the flow, to the energy of a ring
        z, log_det = model.forward_and_log_det(torch.randn(64, 2))
        energy = 2 * (z.norm(dim=1) - 1.5) ** 2
        loss = (energy - log_det).mean()
    loss.backward()
    opt.step()
    print(f"step {step} loss {loss.item()}", flush=True)
