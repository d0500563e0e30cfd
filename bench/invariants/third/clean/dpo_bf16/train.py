"""SFT for a few steps, then direct preference optimisation against a frozen reference, in bf16 autocast."""
import copy
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
VOCAB, DIM, PROMPT, ANSWER = 24, 32, 6, 5
PAD = 0


class Block(nn.Module):
    def __init__(self, d, heads=4):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.ln2(x))


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, DIM)
        self.pos = nn.Embedding(PROMPT + ANSWER, DIM)
        self.blocks = nn.Sequential(Block(DIM), Block(DIM))
        self.norm = nn.LayerNorm(DIM)
        self.head = nn.Linear(DIM, VOCAB, bias=False)

    def forward(self, ids):
        x = self.tok(ids) + self.pos(torch.arange(ids.shape[1]))
        return self.head(self.norm(self.blocks(x)))


def make_pairs(n, gen):
    """Preferred answers repeat the prompt's end in order; rejected ones are in reversed order.
    Answers have varying lengths and are padded on the right."""
    prompt = torch.randint(1, VOCAB, (n, PROMPT), generator=gen)
    length = torch.randint(3, ANSWER + 1, (n, 1), generator=gen)
    keep = torch.arange(ANSWER) < length
    chosen = torch.where(keep, prompt[:, :ANSWER], PAD)
    rejected = torch.where(keep, prompt.flip(1)[:, :ANSWER], PAD)
    return prompt, chosen, rejected


def answer_logps(model, prompt, answer):
    """Sum of the log probabilities of the answer tokens (prompt and padding excluded)."""
    ids = torch.cat([prompt, answer], dim=1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(ids[:, :-1])
    logp = F.log_softmax(logits.float(), dim=-1)  # the softmax in full precision
    labels = ids[:, 1:]
    mask = torch.zeros_like(labels, dtype=torch.float32)
    mask[:, PROMPT - 1:] = (answer != PAD).float()
    token = logp.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    return (token * mask).sum(-1), mask.sum(-1)


def dpo_loss(policy, reference, batch, beta=0.2):
    prompt, chosen, rejected = batch
    both = torch.cat([chosen, rejected])
    prompts = torch.cat([prompt, prompt])
    pi, _ = answer_logps(policy, prompts, both)
    with torch.no_grad():
        ref, _ = answer_logps(reference, prompts, both)
    reward = beta * (pi - ref)
    good, bad = reward.chunk(2)
    loss = -F.logsigmoid(good - bad).mean()
    return loss, (good - bad).mean().detach(), (good > bad).float().mean()


def main():
    torch.manual_seed(SEED)
    gen = torch.Generator().manual_seed(SEED)
    policy = Policy()
    sft_steps = max(1, STEPS // 3)
    opt = torch.optim.AdamW(policy.parameters(), lr=3e-3)
    for step in range(sft_steps):
        prompt, chosen, _ = make_pairs(32, gen)
        logps, count = answer_logps(policy, prompt, chosen)
        loss = -logps.sum() / count.sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
        print("sft", step, f"{loss.item():.4f}")

    reference = copy.deepcopy(policy).eval().requires_grad_(False)
    opt = torch.optim.AdamW(policy.parameters(), lr=1e-3, weight_decay=0.0)
    sched = torch.optim.lr_scheduler.LinearLR(opt, start_factor=0.3, total_iters=3)
    for step in range(STEPS - sft_steps):
        loss, margin, acc = dpo_loss(policy, reference, make_pairs(32, gen))
        opt.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        opt.step()
        sched.step()
        print("dpo", step, f"loss {loss.item():.4f} margin {margin.item():.4f} acc {acc.item():.2f} norm {norm:.3f}")

    with torch.no_grad():
        loss, margin, acc = dpo_loss(policy, reference, make_pairs(128, torch.Generator().manual_seed(10_000 + SEED)))
    print("held out", f"loss {loss.item():.4f} acc {acc.item():.2f}")


if __name__ == "__main__":
    main()
