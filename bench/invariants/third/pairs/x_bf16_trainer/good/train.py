"""A masked language model whose weights live in bfloat16, with a hand-written optimizer wrapper."""
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
VOCAB, MASK, LENGTH, BATCH, ACCUM = 24, 0, 16, 16, 2
DTYPE = torch.bfloat16


class EncoderLayer(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.ffn = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(self.norm1(x)).chunk(3, -1))
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d))
        return x + self.ffn(self.norm2(x))


class MaskedLM(nn.Module):
    def __init__(self, d=48, layers=2):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCAB, d), nn.Embedding(LENGTH, d)
        self.layers = nn.ModuleList(EncoderLayer(d, 4) for _ in range(layers))
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, VOCAB)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.size(1)))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


class BF16Optimizer:
    """Steps master copies of the low-precision weights and copies them back."""

    def __init__(self, model, optimizer_class, max_norm=1.0, **kwargs):
        self.model_params = [p for p in model.parameters() if p.requires_grad]
        self.master_params = [nn.Parameter(p.detach().clone().float()) for p in self.model_params]
        self.optimizer = optimizer_class(self.master_params, **kwargs)
        self.max_norm = max_norm

    def zero_grad(self):
        for p in self.model_params:
            p.grad = None

    def step(self):
        for p, master in zip(self.model_params, self.master_params):
            master.grad = p.grad.to(master.dtype)
        norm = nn.utils.clip_grad_norm_(self.master_params, self.max_norm)
        self.optimizer.step()
        with torch.no_grad():
            for p, master in zip(self.model_params, self.master_params):
                p.copy_(master)
        self.optimizer.zero_grad()
        return norm

    def state_dict(self):
        return {"optimizer": self.optimizer.state_dict(), "master": [m.detach() for m in self.master_params]}


def sample_batch(index):
    g = torch.Generator().manual_seed(SEED * 65_537 + index)
    start = torch.randint(1, VOCAB, (BATCH, 1), generator=g)
    ids = 1 + (start + torch.arange(LENGTH)) % (VOCAB - 1)
    masked = torch.rand(ids.shape, generator=g) < 0.25
    masked[:, 0] = True
    return ids.masked_fill(masked, MASK), ids.masked_fill(~masked, -100)


def lm_loss(model, ids, labels):
    logits = model(ids)
    return F.cross_entropy(logits.float().flatten(0, 1), labels.flatten(), ignore_index=-100)


@torch.no_grad()
def evaluate(model):
    model.eval()
    losses = [lm_loss(model, *sample_batch(50_000 + i)).item() for i in range(4)]
    model.train()
    return sum(losses) / len(losses)


def main():
    torch.manual_seed(SEED)
    model = MaskedLM().to(DTYPE)
    optimizer = BF16Optimizer(model, torch.optim.AdamW, lr=2e-3, betas=(0.9, 0.98), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer.optimizer, 1.0, 0.2, total_iters=2 * STEPS)
    model.train()
    for step in range(STEPS):
        optimizer.zero_grad()
        total = 0.0
        for micro in range(ACCUM):
            loss = lm_loss(model, *sample_batch(step * ACCUM + micro)) / ACCUM
            loss.backward()
            total += loss.item()
        norm = optimizer.step()
        schedule.step()
        print(f"step {step} loss {total:.4f} norm {norm.item():.3f}")
    print(f"eval {evaluate(model):.4f}")
    with tempfile.TemporaryDirectory() as out:
        torch.save({"model": model.state_dict(), "optim": optimizer.state_dict()}, os.path.join(out, "ckpt.pt"))


if __name__ == "__main__":
    main()
