"""GPT-2 in the style of nanoGPT: fused projections as Linear, so the checkpoint's Conv1D weights are transposed."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from weights import DIM, HEADS, LAYERS, VOCAB, batch, state


class CausalSelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.out = nn.Linear(DIM, DIM)
        self.register_buffer("causal", torch.tril(torch.ones(32, 32)).view(1, 1, 32, 32), persistent=False)

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.qkv(x).split(C, dim=2)
        q = q.view(B, T, HEADS, C // HEADS).transpose(1, 2)
        k = k.view(B, T, HEADS, C // HEADS).transpose(1, 2)
        v = v.view(B, T, HEADS, C // HEADS).transpose(1, 2)
        att = q @ k.transpose(-2, -1)
        att = att * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.causal[:, :, :T, :T] == 0, float("-inf"))
        att = F.softmax(att, dim=-1)
        y = att @ v
        y = y.transpose(1, 2).contiguous().view(B, T, C)
        return self.out(y)


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(DIM, 4 * DIM)
        self.down = nn.Linear(4 * DIM, DIM)

    def forward(self, x):
        x = self.up(x)
        x = F.gelu(x, approximate="tanh")
        return self.down(x)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(DIM, eps=1e-5), CausalSelfAttention()
        self.norm2, self.ffn = nn.LayerNorm(DIM, eps=1e-5), FeedForward()

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        x = x + self.ffn(self.norm2(x))
        return x


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(VOCAB, DIM), nn.Embedding(32, DIM)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(DIM, eps=1e-5)
        self.head = nn.Linear(DIM, VOCAB, bias=False)
        self.head.weight = self.tok.weight

    def forward(self, idx, targets):
        x = self.tok(idx) + self.pos(torch.arange(idx.size(1)))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, VOCAB), targets.view(-1))


RENAMED = (("transformer.", ""), ("wte", "tok"), ("wpe", "pos"), ("h.", "blocks."), ("ln_1", "norm1"), ("ln_2", "norm2"), ("ln_f", "norm"),
           ("attn.c_attn", "attn.qkv"), ("attn.c_proj", "attn.out"), ("mlp.c_fc", "ffn.up"), ("mlp.c_proj", "ffn.down"), ("lm_head", "head"))


def from_checkpoint(checkpoint):
    gpt, mine = GPT(), {}
    for name, value in checkpoint.items():
        conv1d = name.endswith("weight") and ".c_" in name
        for old, new in RENAMED:
            name = name.replace(old, new)
        mine[name] = value.t() if conv1d else value
    gpt.load_state_dict(mine)
    return gpt


def main():
    torch.set_num_threads(1)
    gpt = from_checkpoint(state())
    adamw = torch.optim.AdamW(gpt.parameters(), lr=1e-3, eps=1e-3, foreach=False)
    for it in range(2):
        adamw.zero_grad(set_to_none=True)
        loss = gpt(*batch(it))
        loss.backward()
        adamw.step()
        total = torch.nn.utils.get_total_norm([p.grad for p in gpt.parameters()])
        print(f"step {it} loss {loss.item():.9f} norm {total.item():.9f}", flush=True)


main()
