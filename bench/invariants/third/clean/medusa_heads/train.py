"""Train speculative draft heads (Medusa-1) on top of a frozen language model, then decode with them."""
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
VOCAB, DIM, LENGTH, HEADS = 32, 48, 20, 3


def sample_batch(n, gen):
    """Arithmetic sequences modulo the vocabulary; the stride must be read from the context."""
    start = torch.randint(0, VOCAB, (n, 1), generator=gen)
    stride = torch.randint(1, 4, (n, 1), generator=gen)
    return (start + stride * torch.arange(LENGTH)) % VOCAB


class BaseLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.rnn = nn.GRU(DIM, DIM, batch_first=True)
        self.norm = nn.LayerNorm(DIM)
        self.lm_head = nn.Linear(DIM, VOCAB, bias=False)

    def hidden(self, ids):
        return self.norm(self.rnn(self.embed(ids))[0])

    def forward(self, ids):
        return self.lm_head(self.hidden(ids))


class MedusaHead(nn.Module):
    """Residual block that starts as the identity, and a vocabulary matrix copied from the base."""

    def __init__(self, base):
        super().__init__()
        self.block = nn.Linear(DIM, DIM)
        nn.init.zeros_(self.block.weight)
        nn.init.zeros_(self.block.bias)
        self.out = nn.Linear(DIM, VOCAB, bias=False)
        with torch.no_grad():
            self.out.weight.copy_(base.lm_head.weight)

    def forward(self, h):
        return self.out(h + F.silu(self.block(h)))


def train_base(base, steps, gen):
    opt = torch.optim.AdamW(base.parameters(), lr=2e-2)
    base.train()
    for step in range(steps):
        ids = sample_batch(64, gen)
        loss = F.cross_entropy(base(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(base.parameters(), 1.0)
        opt.step()
        print("base", step, f"{loss.item():.4f}")


def medusa_loss(heads, h, ids, decay=0.8):
    """Head k (from 0) at position t predicts token t + 2 + k; the base head predicts t + 1."""
    total, parts = 0.0, []
    for k, head in enumerate(heads):
        shift = k + 2
        logits = head(h[:, :-shift])
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, shift:].flatten())
        total = total + decay ** (k + 1) * loss
        parts.append(loss.item())
    return total, parts


@torch.no_grad()
def speculative_decode(base, heads, prompt, new_tokens=12):
    """Greedy; a drafted token is kept only while it equals what the base model would emit."""
    ids, calls = prompt, 0
    while ids.shape[1] < prompt.shape[1] + new_tokens:
        h = base.hidden(ids)[:, -1]
        draft = [base.lm_head(h).argmax(-1)] + [head(h).argmax(-1) for head in heads]
        candidate = torch.cat([ids, torch.stack(draft, dim=1)], dim=1)
        verify = base(candidate).argmax(-1)
        calls += 2
        n = ids.shape[1]
        accepted = 1
        while accepted < len(draft) and candidate[0, n + accepted] == verify[0, n + accepted - 1]:
            accepted += 1
        ids = candidate[:, :n + accepted]
    return ids[:, :prompt.shape[1] + new_tokens], calls


@torch.no_grad()
def greedy_decode(base, prompt, new_tokens=12):
    ids = prompt
    for _ in range(new_tokens):
        ids = torch.cat([ids, base(ids)[:, -1:].argmax(-1)], dim=1)
    return ids


def main():
    torch.manual_seed(SEED)
    gen = torch.Generator().manual_seed(SEED)
    base_steps = max(1, STEPS // 2)
    base = BaseLM()
    train_base(base, base_steps, gen)

    base.eval()
    base.requires_grad_(False)
    heads = nn.ModuleList(MedusaHead(base) for _ in range(HEADS))
    opt = torch.optim.AdamW(heads.parameters(), lr=1e-2, weight_decay=0.0)
    for step in range(STEPS - base_steps):
        ids = sample_batch(64, gen)
        with torch.no_grad():
            h = base.hidden(ids)
        loss, parts = medusa_loss(heads, h, ids)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print("heads", step, f"{loss.item():.4f}", " ".join(f"{p:.3f}" for p in parts))

    heads.eval()
    prompt = sample_batch(1, gen)[:, :6]
    fast, calls = speculative_decode(base, heads, prompt)
    assert torch.equal(fast, greedy_decode(base, prompt)), "speculation must not change the output"
    print("decoded", fast[0].tolist(), "base calls", calls)


if __name__ == "__main__":
    main()
