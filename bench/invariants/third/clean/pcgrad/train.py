"""Gradient surgery (PCGrad) on a shared trunk with three task heads, and Lookahead around Adam."""
import os
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
TASKS = ("class", "depth", "angle")


def make_scenes(n, gen):
    """A shape of some class, at some distance, turned by some angle, seen by 24 sensors."""
    kind = torch.randint(0, 3, (n,), generator=gen)
    depth = 1 + 2 * torch.rand(n, generator=gen)
    angle = 2 * torch.pi * torch.rand(n, generator=gen)
    dirs = torch.arange(24) * 2 * torch.pi / 24
    lobes = (kind + 1).float()[:, None]
    signal = (1.5 + torch.cos(lobes * (dirs - angle[:, None])) + 0.7 * torch.cos(dirs - angle[:, None])) / depth[:, None]
    x = signal + 0.05 * torch.randn(n, 24, generator=gen)
    return x, {"class": kind, "depth": depth, "angle": torch.stack([angle.cos(), angle.sin()], 1)}


class Net(nn.Module):
    def __init__(self, d=48):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(24, d), nn.ReLU(), nn.Linear(d, d), nn.ReLU())
        self.heads = nn.ModuleDict({"class": nn.Linear(d, 3), "depth": nn.Linear(d, 1), "angle": nn.Linear(d, 2)})

    def forward(self, x):
        h = self.trunk(x)
        return {k: head(h) for k, head in self.heads.items()}


def task_losses(out, target):
    return {"class": F.cross_entropy(out["class"], target["class"]),
            "depth": F.smooth_l1_loss(out["depth"].squeeze(-1), target["depth"]),
            "angle": F.mse_loss(out["angle"], target["angle"])}


def flatten(tensors):
    return torch.cat([t.reshape(-1) for t in tensors])


def pcgrad_backward(model, losses, rng):
    """Trunk: every task's gradient loses its component along the gradients it conflicts with.
    Heads: each is touched by its own task alone, so it keeps the plain gradient."""
    trunk = list(model.trunk.parameters())
    originals = []
    for i, (name, loss) in enumerate(losses.items()):
        head = list(model.heads[name].parameters())
        grads = torch.autograd.grad(loss, trunk + head, retain_graph=i < len(losses) - 1)
        originals.append(flatten(grads[:len(trunk)]))
        for p, g in zip(head, grads[len(trunk):]):
            p.grad = g
    conflicts, merged = 0, torch.zeros_like(originals[0])
    for i, own in enumerate(originals):
        g = own.clone()
        others = [j for j in range(len(originals)) if j != i]
        rng.shuffle(others)
        for j in others:
            dot = torch.dot(g, originals[j])
            if dot < 0:
                g -= dot / originals[j].dot(originals[j]).clamp(min=1e-12) * originals[j]
                conflicts += 1
        merged += g
    for p, g in zip(trunk, merged.split([p.numel() for p in trunk])):
        p.grad = g.view_as(p).clone()
    return conflicts


class Lookahead:
    """k fast steps, then the slow weights move part of the way and the fast ones restart from them."""

    def __init__(self, opt, k=3, alpha=0.5):
        self.opt, self.k, self.alpha, self.count = opt, k, alpha, 0
        self.slow = {p: p.detach().clone() for g in opt.param_groups for p in g["params"]}

    def zero_grad(self):
        self.opt.zero_grad(set_to_none=True)

    @torch.no_grad()
    def step(self):
        self.opt.step()
        self.count += 1
        if self.count % self.k == 0:
            self.sync()

    @torch.no_grad()
    def sync(self):
        for p, slow in self.slow.items():
            slow.lerp_(p, self.alpha)
            p.copy_(slow)


@torch.no_grad()
def report(model, x, target):
    model.eval()
    losses = task_losses(model(x), target)
    model.train()
    return " ".join(f"{k} {v.item():.4f}" for k, v in losses.items())


def main():
    torch.manual_seed(SEED)
    rng, gen = random.Random(SEED), torch.Generator().manual_seed(SEED)
    (x, target), (vx, vtarget) = make_scenes(1024, gen), make_scenes(256, gen)
    model = Net()
    opt = Lookahead(torch.optim.Adam(model.parameters(), lr=5e-3))
    for step in range(STEPS):
        idx = torch.randint(0, len(x), (64,))
        losses = task_losses(model(x[idx]), {k: v[idx] for k, v in target.items()})
        opt.zero_grad()
        conflicts = pcgrad_backward(model, losses, rng)
        opt.step()
        print(step, " ".join(f"{k} {losses[k].item():.4f}" for k in TASKS), "conflicts", conflicts)
    print("valid", report(model, vx, vtarget))


if __name__ == "__main__":
    main()
