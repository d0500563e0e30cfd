"""A character language model trained in mixed precision: float32 weights, and bfloat16 copies to compute with."""
import os

import torch
from torch import nn
from torch.func import functional_call

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
TEXT = "the quick brown fox jumps over the lazy dog and the dog does not mind the fox at all " * 12


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (m.view(b, t, self.heads, -1).transpose(1, 2) for m in self.qkv(self.norm1(x)).chunk(3, dim=-1))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.norm2(x))


class LanguageModel(nn.Module):
    def __init__(self, vocabulary, context, width=32, layers=2):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList([Block(width, 4) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class MixedPrecision:
    """Calls a module with its parameters cast to param_dtype. Gradients come back in the dtype of the weights."""

    def __init__(self, module, param_dtype=torch.bfloat16):
        self.module, self.param_dtype = module, param_dtype

    def __call__(self, *args):
        cast = {name: p.to(self.param_dtype) for name, p in self.module.named_parameters()}
        return functional_call(self.module, cast, args)


class CLMCrossEntropyLoss:
    def __init__(self):
        self.loss_fun = nn.CrossEntropyLoss(reduction="mean")

    def __call__(self, logits, targets):
        logits = logits.reshape(-1, logits.shape[-1])
        return self.loss_fun(logits, targets.reshape(-1))


def main():
    torch.manual_seed(SEED)
    letters = sorted(set(TEXT))
    data = torch.tensor([letters.index(c) for c in TEXT])
    context = 32
    model = LanguageModel(len(letters), context)
    compute = MixedPrecision(model)
    criterion = CLMCrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    model.train()
    for step in range(STEPS):
        starts = torch.randint(0, len(data) - context - 1, (16,))
        ids = torch.stack([data[s : s + context + 1] for s in starts])
        loss = criterion(compute(ids[:, :-1]), ids[:, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step}: {loss.item():.6f}")


if __name__ == "__main__":
    main()
