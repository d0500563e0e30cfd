"""Fine-tune a small causal language model on dialogues after adding speaker tokens."""
import math
import os
import tempfile
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
BATCH, SEQ = 16, 20


@dataclass
class Config:
    vocab_size: int = 20
    dim: int = 32
    layers: int = 2
    heads: int = 4
    positions: int = 32
    tie_word_embeddings: bool = True


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads = c.heads
        self.ln1, self.ln2 = nn.LayerNorm(c.dim), nn.LayerNorm(c.dim)
        self.qkv = nn.Linear(c.dim, 3 * c.dim)
        self.proj = nn.Linear(c.dim, c.dim)
        self.mlp = nn.Sequential(nn.Linear(c.dim, 4 * c.dim), nn.GELU(), nn.Linear(4 * c.dim, c.dim))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (z.view(b, t, self.heads, -1).transpose(1, 2) for z in self.qkv(self.ln1(x)).chunk(3, -1))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.ln2(x))


class CausalLM(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.wte = nn.Embedding(config.vocab_size, config.dim)
        self.wpe = nn.Embedding(config.positions, config.dim)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.ln_f = nn.LayerNorm(config.dim)
        self.lm_head = nn.Linear(config.dim, config.vocab_size, bias=False)
        self.apply(self._init_weights)
        self.tie_weights()

    @staticmethod
    def _init_weights(m):
        if isinstance(m, (nn.Linear, nn.Embedding)):
            nn.init.normal_(m.weight, std=0.05)
        if isinstance(m, nn.Linear) and m.bias is not None:
            nn.init.zeros_(m.bias)

    def tie_weights(self):
        if self.config.tie_word_embeddings:
            self.lm_head.weight = self.wte.weight

    @torch.no_grad()
    def resize_token_embeddings(self, size):
        old = self.config.vocab_size
        wte = nn.Embedding(size, self.config.dim)
        lm_head = nn.Linear(self.config.dim, size, bias=False)
        for new, before in ((wte, self.wte), (lm_head, self.lm_head)):
            nn.init.normal_(new.weight, std=0.05)
            new.weight[:old] = before.weight[:old]
        self.wte, self.lm_head = wte, lm_head
        self.config.vocab_size = size

    def forward(self, ids, labels=None):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        if labels is None:
            return logits
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)


def dialogue(g, config, user, bot):
    """A turn of three words by the user, and the bot that says them in reverse."""
    ids = []
    while len(ids) < SEQ:
        words = torch.randint(config.vocab_size - 2, (3,), generator=g).tolist()
        ids += [user] + words + [bot] + words[::-1]
    return ids[:SEQ]


def batches(config, user, bot, seed, count):
    g = torch.Generator().manual_seed(seed)
    for _ in range(count):
        ids = torch.tensor([dialogue(g, config, user, bot) for _ in range(BATCH)])
        labels = ids.clone()
        labels[ids == user] = -100
        yield ids, labels


def param_groups(model, decay):
    named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    return [
        {"params": [p for n, p in named if p.ndim > 1], "weight_decay": decay},
        {"params": [p for n, p in named if p.ndim <= 1], "weight_decay": 0.0},
    ]


def schedule(step):
    if step < 2:
        return (step + 1) / 2
    return 0.1 + 0.45 * (1 + math.cos(math.pi * (step - 2) / 20))


def main():
    torch.manual_seed(SEED)
    with tempfile.TemporaryDirectory() as d:
        torch.save(CausalLM(Config()).state_dict(), d + "/base.pt")
        model = CausalLM(Config())
        model.load_state_dict(torch.load(d + "/base.pt"))
    user, bot = model.config.vocab_size, model.config.vocab_size + 1
    model.resize_token_embeddings(model.config.vocab_size + 2)
    for p in model.wpe.parameters():
        p.requires_grad_(False)
    opt = torch.optim.AdamW(param_groups(model, 0.01), lr=5e-3)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, schedule)
    model.train()
    for step, (ids, labels) in enumerate(batches(model.config, user, bot, 10 + SEED, STEPS)):
        loss = model(ids, labels)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
        print(f"step {step} loss {loss.item():.4f}")
    model.eval()
    with torch.no_grad():
        losses = [model(ids, labels).item() for ids, labels in batches(model.config, user, bot, 999, 4)]
    print(f"perplexity {math.exp(sum(losses) / len(losses)):.3f}")


if __name__ == "__main__":
    main()
