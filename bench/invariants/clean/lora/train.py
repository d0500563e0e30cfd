import io
import math
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class LoraLinear(nn.Module):
    def __init__(self, base, rank=2, alpha=4.0, dropout=0.05):
        super().__init__()
        self.base = base
        self.scale = alpha / rank
        self.dropout = nn.Dropout(dropout)
        self.lora_a = nn.Parameter(torch.empty(rank, base.in_features))
        self.lora_b = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.lora_a, a=math.sqrt(5))

    def forward(self, x):
        return self.base(x) + self.dropout(x) @ self.lora_a.T @ self.lora_b.T * self.scale


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.q_proj, self.v_proj, self.k_proj = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))

    def forward(self, x):
        h = self.ln1(x)
        x = x + F.scaled_dot_product_attention(self.q_proj(h), self.k_proj(h), self.v_proj(h), is_causal=True)
        return x + self.mlp(self.ln2(x))


class Lm(nn.Module):
    def __init__(self, vocab=40, d=16, layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, d)
        self.blocks = nn.ModuleList(Block(d) for _ in range(layers))
        self.head = nn.Linear(d, vocab, bias=False)

    def forward(self, ids):
        x = self.embed(ids)
        for b in self.blocks:
            x = b(x)
        return self.head(x)


def add_adapters(model, names=("q_proj", "v_proj")):
    model.requires_grad_(False)
    for block in model.blocks:
        for name in names:
            setattr(block, name, LoraLinear(getattr(block, name)))


def adapter_state(model):
    return {k: v for k, v in model.state_dict().items() if "lora_" in k}


def main():
    torch.manual_seed(SEED)
    model = Lm()
    add_adapters(model)
    trainable = [p for p in model.parameters() if p.requires_grad]
    print("trainable", sum(p.numel() for p in trainable), "of", sum(p.numel() for p in model.parameters()))
    opt = torch.optim.AdamW(trainable, lr=1e-2, weight_decay=0.0)
    model.train()
    for step in range(STEPS):
        ids = (torch.randint(0, 40, (4, 1)) + torch.arange(11)) % 40
        loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        opt.step()
        opt.zero_grad()
        print(step, f"{loss.item():.4f}")
    file = io.BytesIO()
    torch.save(adapter_state(model), file)
    file.seek(0)

    torch.manual_seed(SEED)
    fresh = Lm()
    add_adapters(fresh)
    left = fresh.load_state_dict(torch.load(file), strict=False)
    assert not left.unexpected_keys
    fresh.eval()
    with torch.no_grad():
        print("loaded", f"{F.cross_entropy(fresh(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()).item():.4f}")


main()
