"""Compiled transformer; hidden matrices trained by Muon, embeddings, head and gains by AdamW."""
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
CHARS = "abcdefghijklmnopqrstuvwxyz ."
LENGTH, BATCH = 24, 16


def make_text(gen, sentences=400):
    """Sentences of a tiny grammar."""
    parts = (("the", "a", "one"), ("old", "red", "tiny", "quick"), ("fox", "cart", "river", "stone"),
             ("sees", "moves", "holds"), ("the", "a"), ("hill", "door", "lamp"))
    out = []
    for _ in range(sentences):
        out.append(" ".join(p[torch.randint(len(p), (1,), generator=gen).item()] for p in parts) + ". ")
    return torch.tensor([CHARS.index(c) for c in "".join(out)])


def orthogonalize(g, steps=5, eps=1e-7):
    """Quintic Newton-Schulz iteration: moves all singular values of g near one."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = g / (g.norm() + eps)
    tall = x.shape[0] > x.shape[1]
    if tall:
        x = x.T
    for _ in range(steps):
        s = x @ x.T
        x = a * x + (b * s + c * s @ s) @ x
    return x.T if tall else x


class Muon(torch.optim.Optimizer):
    def __init__(self, params, lr=0.02, momentum=0.95, weight_decay=0.0):
        super().__init__(params, dict(lr=lr, momentum=momentum, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "momentum_buffer" not in state:
                    state["momentum_buffer"] = torch.zeros_like(p)
                buf = state["momentum_buffer"]
                buf.lerp_(p.grad, 1 - group["momentum"])
                update = orthogonalize(p.grad.lerp(buf, group["momentum"]))  # Nesterov
                scale = max(1.0, p.shape[0] / p.shape[1]) ** 0.5
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_(update, alpha=-group["lr"] * scale)
        return loss


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.RMSNorm(d), nn.RMSNorm(d)
        self.qkv, self.proj = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)
        self.up, self.down = nn.Linear(d, 4 * d, bias=False), nn.Linear(4 * d, d, bias=False)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.relu(self.up(self.n2(x))).square())


class Gpt(nn.Module):
    def __init__(self, d=32, heads=4, layers=1):
        super().__init__()
        self.tok, self.pos = nn.Embedding(len(CHARS), d), nn.Embedding(LENGTH, d)
        self.blocks = nn.ModuleList(Block(d, heads) for _ in range(layers))
        self.norm = nn.RMSNorm(d)
        self.head = nn.Linear(d, len(CHARS), bias=False)

    def forward(self, ids, targets):
        x = self.tok(ids) + self.pos.weight[:ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def get_batch(text, gen):
    start = torch.randint(0, len(text) - LENGTH, (BATCH, 1), generator=gen)
    window = text[start + torch.arange(LENGTH + 1)]
    return window[:, :-1], window[:, 1:]


def main():
    torch.manual_seed(SEED)
    gen = torch.Generator().manual_seed(SEED)
    text = make_text(gen)
    split = int(0.9 * len(text))
    train, valid = text[:split], text[split:]
    model = Gpt()
    matrices = [p for p in model.blocks.parameters() if p.ndim == 2]
    ids = {id(p) for p in matrices}
    rest = [p for p in model.parameters() if id(p) not in ids]
    optimizers = [Muon(matrices, lr=0.02, weight_decay=0.01),
                  torch.optim.AdamW(rest, lr=6e-3, betas=(0.9, 0.95), weight_decay=0.0)]
    cooldown = max(1, int(0.4 * STEPS))  # constant, then linear towards zero
    schedulers = [torch.optim.lr_scheduler.LambdaLR(o, lambda s: min(1.0, (STEPS - s) / cooldown)) for o in optimizers]

    compiled = torch.compile(model, dynamic=False)
    for step in range(STEPS):
        loss = compiled(*get_batch(train, gen))
        loss.backward()
        for opt, sched in zip(optimizers, schedulers):
            opt.step()
            sched.step()
        model.zero_grad(set_to_none=True)
        print(step, f"loss {loss.item():.4f} lr {optimizers[0].param_groups[0]['lr']:.4f}")

    model.eval()
    with torch.no_grad():
        vgen = torch.Generator().manual_seed(SEED + 1)
        losses = [model(*get_batch(valid, vgen)).item() for _ in range(4)]
    print("valid", f"{sum(losses) / len(losses):.4f}")


if __name__ == "__main__":
    main()
