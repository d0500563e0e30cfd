"""Population based training: members train side by side; the worst copies the best and perturbs its settings."""
import copy
import os
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
READY_EVERY = 3


def spirals(n, gen, noise=0.08):
    """Three interleaved spiral arms."""
    y = torch.randint(0, 3, (n,), generator=gen)
    r = torch.rand(n, generator=gen).sqrt()
    angle = 4.0 * r + y.float() * 2 * torch.pi / 3
    x = torch.stack([r * torch.cos(angle), r * torch.sin(angle)], 1)
    return x + noise * torch.randn(n, 2, generator=gen), y


def build_net():
    return nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Dropout(0.05), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 3))


class Member:
    def __init__(self, index, lr, weight_decay, smoothing):
        self.index = index
        self.net = build_net()
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=lr, weight_decay=weight_decay)
        self.smoothing = smoothing
        self.score = float("-inf")

    def train_step(self, x, y):
        self.net.train()
        loss = F.cross_entropy(self.net(x), y, label_smoothing=self.smoothing)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()

    @torch.no_grad()
    def evaluate(self, x, y):
        self.net.eval()
        # plain cross entropy: members with other smoothing must stay comparable
        self.score = -F.cross_entropy(self.net(x), y).item()
        return self.score

    def exploit(self, other):
        self.net.load_state_dict(other.net.state_dict())
        # a deep copy: load_state_dict of an optimizer may keep references to the given tensors
        self.opt.load_state_dict(copy.deepcopy(other.opt.state_dict()))
        self.smoothing = other.smoothing
        self.score = other.score

    def explore(self, rng):
        for group in self.opt.param_groups:
            group["lr"] = min(0.1, max(1e-4, group["lr"] * rng.choice((0.8, 1.25))))
            group["weight_decay"] *= rng.choice((0.8, 1.25))
        self.smoothing = min(0.2, max(0.0, self.smoothing + rng.choice((-0.02, 0.02))))

    def describe(self):
        return f"lr {self.opt.param_groups[0]['lr']:.5f} smooth {self.smoothing:.3f}"


def main():
    torch.manual_seed(SEED)
    rng = random.Random(SEED)
    gen = torch.Generator().manual_seed(SEED)
    train, valid, test = spirals(600, gen), spirals(200, gen), spirals(200, gen)
    population = [Member(i, lr=10 ** rng.uniform(-3.0, -1.5), weight_decay=10 ** rng.uniform(-4, -2),
                         smoothing=rng.uniform(0.0, 0.1)) for i in range(4)]

    for step in range(STEPS):
        losses = []
        for m in population:
            idx = torch.randint(0, 600, (64,))
            losses.append(m.train_step(train[0][idx], train[1][idx]))
        print(step, " ".join(f"{v:.4f}" for v in losses))

        if (step + 1) % READY_EVERY == 0 and step + 1 < STEPS:
            for m in population:
                m.evaluate(*valid)
            ranked = sorted(population, key=lambda m: m.score, reverse=True)
            best, worst = ranked[0], ranked[-1]
            worst.exploit(best)
            worst.explore(rng)
            print(f"  member {worst.index} copies {best.index}:", worst.describe())

    for m in population:
        m.evaluate(*valid)
    best = max(population, key=lambda m: m.score)
    print("best", best.index, best.describe(), f"valid {-best.score:.4f} test {-best.evaluate(*test):.4f}")


if __name__ == "__main__":
    main()
