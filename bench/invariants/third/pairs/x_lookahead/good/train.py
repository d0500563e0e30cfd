"""Image patches are regressed by a small mixer trained with Lookahead over AdamW."""
import math
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
PATCHES, CHANNELS, OUT = 9, 12, 3


class Lookahead(torch.optim.Optimizer):
    """k steps of the base optimizer, then one step of the slow weights towards the fast ones."""

    def __init__(self, base, k=2, alpha=0.5):
        self.base, self.k, self.alpha = base, k, alpha
        self.param_groups = base.param_groups
        self.defaults = base.defaults
        self.counter = 0
        self.slow = {}
        for group in self.param_groups:
            for p in group["params"]:
                self.slow[p] = p.detach().clone()

    @property
    def state(self):
        return self.base.state

    def zero_grad(self, set_to_none=True):
        self.base.zero_grad(set_to_none)

    @torch.no_grad()
    def sync_lookahead(self):
        for group in self.param_groups:
            for p in group["params"]:
                slow = self.slow[p]
                slow.add_(p - slow, alpha=self.alpha)
                p.copy_(slow)

    def step(self, closure=None):
        loss = self.base.step(closure)
        self.counter += 1
        if self.counter % self.k == 0:
            self.sync_lookahead()
        return loss

    def state_dict(self):
        ordered = [self.slow[p] for group in self.param_groups for p in group["params"]]
        return {"base": self.base.state_dict(), "slow": ordered, "counter": self.counter}


class MixerBlock(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.token = nn.Sequential(nn.Linear(PATCHES, 18), nn.GELU(), nn.Linear(18, PATCHES))
        self.channel = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))

    def forward(self, x):
        x = x + self.token(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channel(self.norm2(x))


class Mixer(nn.Module):
    def __init__(self, d=32, depth=2):
        super().__init__()
        self.stem = nn.Linear(CHANNELS, d)
        self.blocks = nn.Sequential(*(MixerBlock(d) for _ in range(depth)))
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, OUT)

    def forward(self, x):
        return self.head(self.norm(self.blocks(self.stem(x))).mean(1))


def param_groups(model, weight_decay):
    decay = [p for p in model.parameters() if p.ndim > 1]
    rest = [p for p in model.parameters() if p.ndim <= 1]
    return [{"params": decay, "weight_decay": weight_decay}, {"params": rest, "weight_decay": 0.0}]


class WarmupCosine:
    def __init__(self, optimizer, base_lr, warmup, total):
        self.optimizer, self.base_lr, self.warmup, self.total = optimizer, base_lr, warmup, total
        self.t = 0
        self.apply()

    def lr(self):
        if self.t < self.warmup:
            return self.base_lr * (self.t + 1) / self.warmup
        progress = (self.t - self.warmup) / max(1, self.total - self.warmup)
        return self.base_lr * (0.1 + 0.45 * (1 + math.cos(math.pi * progress)))

    def apply(self):
        for group in self.optimizer.param_groups:
            group["lr"] = self.lr()

    def step(self):
        self.t += 1
        self.apply()


def make_split(n, seed):
    world = torch.Generator().manual_seed(4321 + SEED)
    mix = torch.randn(CHANNELS, OUT, generator=world)
    place = torch.softmax(2 * torch.randn(PATCHES, generator=world), 0)
    x = torch.randn(n, PATCHES, CHANNELS, generator=torch.Generator().manual_seed(seed))
    return x, torch.tanh(torch.einsum("npc,p,co->no", x, place, mix))


@torch.no_grad()
def evaluate(model, x, y):
    model.eval()
    loss = F.mse_loss(model(x), y).item()
    model.train()
    return loss


def main():
    torch.manual_seed(SEED)
    x, y = make_split(512, SEED)
    x_val, y_val = make_split(128, SEED + 31)
    model = Mixer()
    base_lr = 4e-3
    optimizer = Lookahead(torch.optim.AdamW(param_groups(model, 0.05), lr=base_lr), k=2, alpha=0.5)
    schedule = WarmupCosine(optimizer, base_lr, warmup=2, total=STEPS)
    model.train()
    order = torch.randperm(len(x))
    for step in range(STEPS):
        rows = order[step * 32:(step + 1) * 32]
        optimizer.zero_grad()
        loss = F.mse_loss(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
        schedule.step()
        print(f"step {step} loss {loss.item():.4f}")
    print(f"validation {evaluate(model, x_val, y_val):.4f}")
    with tempfile.TemporaryDirectory() as out:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, os.path.join(out, "last.pth"))


if __name__ == "__main__":
    main()
