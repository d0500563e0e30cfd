"""Gradual global magnitude pruning with masks (cubic schedule), momentum SGD, cyclical learning rate and momentum."""
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
FINAL_SPARSITY = 0.8


def make_data(n, gen):
    """Only 5 of 30 inputs matter, through a product and a threshold."""
    x = torch.randn(n, 30, generator=gen)
    target = x[:, 0] * x[:, 1] + 0.5 * x[:, 2] - (x[:, 3] > 0.3).float() + 0.7 * x[:, 4]
    return x, target + 0.05 * torch.randn(n, generator=gen)


class Pruner:
    """Keeps one mask per weight matrix; ranks all weights together."""

    def __init__(self, model, begin, end, final):
        self.weights = [m.weight for m in model.modules() if isinstance(m, nn.Linear) and m.out_features > 1]
        self.masks = [torch.ones_like(w, dtype=torch.bool) for w in self.weights]
        self.begin, self.end, self.final = begin, end, final

    def target(self, step):
        if step < self.begin:
            return 0.0
        progress = min(1.0, (step - self.begin + 1) / max(1, self.end - self.begin))
        return self.final * (1 - (1 - progress) ** 3)

    @torch.no_grad()
    def update(self, step):
        goal = self.target(step)
        if goal <= 0.0:
            return
        # pruned weights are exactly zero, so they stay among the smallest
        flat = torch.cat([w.abs().flatten() for w in self.weights])
        count = int(goal * flat.numel())
        if count == 0:
            return
        threshold = flat.kthvalue(count).values
        for mask, w in zip(self.masks, self.weights):
            mask &= w.abs() > threshold

    @torch.no_grad()
    def apply(self, opt):
        """Zero the pruned weights and their momentum, or they would drift back."""
        for mask, w in zip(self.masks, self.weights):
            w.mul_(mask)
            buf = opt.state[w].get("momentum_buffer")
            if buf is not None:
                buf.mul_(mask)

    @torch.no_grad()
    def mask_gradients(self):
        for mask, w in zip(self.masks, self.weights):
            w.grad.mul_(mask)

    def sparsity(self):
        kept = sum(m.sum().item() for m in self.masks)
        return 1 - kept / sum(m.numel() for m in self.masks)


@torch.no_grad()
def mse(model, x, y):
    model.eval()
    value = F.mse_loss(model(x).squeeze(-1), y).item()
    model.train()
    return value


def main():
    torch.manual_seed(SEED)
    gen = torch.Generator().manual_seed(SEED)
    (x, y), (vx, vy) = make_data(1024, gen), make_data(256, gen)
    model = nn.Sequential(nn.Linear(30, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
    half = max(1, STEPS // 4)
    sched = torch.optim.lr_scheduler.CyclicLR(opt, base_lr=0.02, max_lr=0.08, step_size_up=half, step_size_down=half,
                                              mode="triangular2", cycle_momentum=True,
                                              base_momentum=0.8, max_momentum=0.95)
    pruner = Pruner(model, begin=STEPS // 4, end=max(STEPS // 4 + 1, 3 * STEPS // 4), final=FINAL_SPARSITY)
    print("before", f"{mse(model, vx, vy):.4f}")
    for step in range(STEPS):
        idx = torch.randint(0, len(x), (128,))
        loss = F.mse_loss(model(x[idx]).squeeze(-1), y[idx])
        opt.zero_grad()
        loss.backward()
        pruner.mask_gradients()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        opt.step()
        sched.step()
        pruner.update(step)
        pruner.apply(opt)
        group = opt.param_groups[0]
        print(step, f"loss {loss.item():.4f} sparsity {pruner.sparsity():.3f} lr {group['lr']:.3f} momentum {group['momentum']:.3f}")

    for mask, w in zip(pruner.masks, pruner.weights):
        assert (w[~mask] == 0).all()
    print("after", f"{mse(model, vx, vy):.4f}", f"sparsity {pruner.sparsity():.3f}")


if __name__ == "__main__":
    main()
