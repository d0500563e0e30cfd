"""Recurrent state-space world model on a driven pendulum; the transition cell is compiled."""
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal, kl_divergence

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
OBS, ACT, DETER, STOCH, HID = 12, 1, 32, 6, 32


def simulate(n, length, gen):
    """Torque-driven pendulum seen through a blurry one-dimensional camera."""
    theta = 3.0 * (torch.rand(n, generator=gen) - 0.5)
    omega = torch.zeros(n)
    centers = torch.linspace(-1, 1, OBS)
    force = torch.randn(n, generator=gen)
    obs, act = [], []
    for _ in range(length):
        act.append(force.unsqueeze(-1))  # action that leads to the observation of the same index
        omega = omega + 0.1 * (-3.0 * torch.sin(theta) + force) - 0.01 * omega
        theta = theta + 0.1 * omega
        pixels = torch.exp(-20 * (torch.sin(theta).unsqueeze(-1) - centers) ** 2)
        obs.append(pixels + 0.02 * torch.randn(n, OBS, generator=gen))
        force = 0.8 * force + 0.6 * torch.randn(n, generator=gen)
    return torch.stack(obs, 1), torch.stack(act, 1)


class Cell(nn.Module):
    """One step: deterministic path, prior from it, posterior from it and the observation's embedding."""

    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(STOCH + ACT, HID)
        self.gru = nn.GRUCell(HID, DETER)
        self.prior = nn.Sequential(nn.Linear(DETER, HID), nn.ELU(), nn.Linear(HID, 2 * STOCH))
        self.post = nn.Sequential(nn.Linear(DETER + HID, HID), nn.ELU(), nn.Linear(HID, 2 * STOCH))

    def forward(self, deter, stoch, action, embed, noise):
        deter = self.gru(F.elu(self.inp(torch.cat([stoch, action], -1))), deter)
        pm, ps = self.prior(deter).chunk(2, -1)
        qm, qs = self.post(torch.cat([deter, embed], -1)).chunk(2, -1)
        ps, qs = F.softplus(ps) + 0.1, F.softplus(qs) + 0.1
        return deter, qm + qs * noise, pm, ps, qm, qs

    def imagine(self, deter, stoch, action):
        deter = self.gru(F.elu(self.inp(torch.cat([stoch, action], -1))), deter)
        return deter, self.prior(deter).chunk(2, -1)[0]


class WorldModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(OBS, HID), nn.ELU(), nn.Linear(HID, HID))
        self.cell = Cell()
        self.decoder = nn.Sequential(nn.Linear(DETER + STOCH, HID), nn.ELU(), nn.Linear(HID, OBS))
        self.first = nn.Parameter(torch.zeros(DETER + STOCH))  # learned initial state

    def observe(self, step_fn, obs, act):
        b, t, _ = obs.shape
        embed = self.encoder(obs)
        deter, stoch = self.first[:DETER].repeat(b, 1), self.first[DETER:].repeat(b, 1)
        rows = []
        for i in range(t):
            noise = torch.randn(b, STOCH)
            out = step_fn(deter, stoch, act[:, i], embed[:, i], noise)
            deter, stoch = out[0], out[1]
            rows.append(out)
        return [torch.stack(x, 1) for x in zip(*rows)]


def balanced_kl(pm, ps, qm, qs, free=0.05, alpha=0.8):
    """KL balancing: the prior is moved faster than the posterior."""
    to_prior = kl_divergence(Normal(qm.detach(), qs.detach()), Normal(pm, ps)).sum(-1).mean()
    to_post = kl_divergence(Normal(qm, qs), Normal(pm.detach(), ps.detach())).sum(-1).mean()
    return alpha * to_prior.clamp(min=free) + (1 - alpha) * to_post.clamp(min=free)


def world_loss(model, step_fn, obs, act):
    deter, stoch, pm, ps, qm, qs = model.observe(step_fn, obs, act)
    recon = model.decoder(torch.cat([deter, stoch], -1))
    nll = 0.5 * (recon - obs).pow(2).sum(-1).mean()
    kl = balanced_kl(pm, ps, qm, qs)
    return nll + 0.1 * kl, nll, kl, deter, stoch


@torch.no_grad()
def open_loop_error(model, obs, act, context=5):
    """Filter the first frames, then predict the rest from actions alone."""
    model.eval()
    deter, stoch, *_ = model.observe(model.cell, obs[:, :context], act[:, :context])
    d, s = deter[:, -1], stoch[:, -1]
    errors = []
    for i in range(context, obs.shape[1]):
        d, s = model.cell.imagine(d, s, act[:, i])
        errors.append((model.decoder(torch.cat([d, s], -1)) - obs[:, i]).pow(2).mean())
    model.train()
    return torch.stack(errors).mean().item()


def main():
    torch.manual_seed(SEED)
    gen = torch.Generator().manual_seed(SEED)
    obs, act = simulate(256, 10, gen)
    test_obs, test_act = simulate(32, 10, gen)
    model = WorldModel()
    step_fn = torch.compile(model.cell)
    opt = torch.optim.Adam(model.parameters(), lr=6e-3, eps=1e-5)
    for step in range(STEPS):
        pick = torch.randint(0, len(obs), (32,))
        loss, nll, kl, _, _ = world_loss(model, step_fn, obs[pick], act[pick])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 100.0)
        opt.step()
        print(step, f"loss {loss.item():.4f} nll {nll.item():.4f} kl {kl.item():.4f} norm {norm.item():.3f}")
    print("open loop mse", f"{open_loop_error(model, test_obs, test_act):.4f}")


if __name__ == "__main__":
    main()
