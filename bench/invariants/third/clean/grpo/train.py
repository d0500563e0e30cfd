"""GRPO: groups of sampled completions, group-normalised advantages, clipped ratios, KL to a frozen reference."""
import copy
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
DIGITS, PROMPT, ANSWER = 10, 4, 4
GROUP, PROMPTS, INNER = 8, 8, 2  # completions per prompt, prompts per rollout, updates per rollout


class Lm(nn.Module):
    def __init__(self, d=48):
        super().__init__()
        self.embed = nn.Embedding(DIGITS, d)
        self.pos = nn.Parameter(0.02 * torch.randn(PROMPT + ANSWER, d))
        layer = nn.TransformerEncoderLayer(d, 4, 2 * d, dropout=0.0, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(d, DIGITS)

    def forward(self, ids):
        t = ids.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(t)
        return self.head(self.body(self.embed(ids) + self.pos[:t], mask=mask, is_causal=True))


def token_logps(model, ids):
    logits = model(ids[:, :-1])[:, PROMPT - 1:]
    return F.log_softmax(logits, -1).gather(-1, ids[:, PROMPT:].unsqueeze(-1)).squeeze(-1)


@torch.no_grad()
def rollout(policy, prompts):
    ids = prompts.repeat_interleave(GROUP, dim=0)
    for _ in range(ANSWER):
        probs = policy(ids)[:, -1].softmax(-1)
        ids = torch.cat([ids, torch.multinomial(probs, 1)], dim=1)
    return ids


def reward_fn(ids):
    """Verifiable: the answer should be the prompt sorted; partial credit for close digits and for order."""
    want = ids[:, :PROMPT].sort(dim=1).values
    got = ids[:, PROMPT:]
    close = 1 - (want - got).abs().float().mean(1) / (DIGITS - 1)
    ordered = (got[:, 1:] >= got[:, :-1]).float().mean(1)
    return close + 0.5 * ordered


def group_advantages(rewards):
    r = rewards.view(-1, GROUP)
    return ((r - r.mean(1, keepdim=True)) / (r.std(1, keepdim=True) + 1e-4)).flatten()


def grpo_loss(policy, batch, clip=0.2, kl_coef=0.02):
    logp = token_logps(policy, batch["ids"])
    ratio = (logp - batch["old"]).exp()
    adv = batch["adv"].unsqueeze(1)
    surrogate = torch.minimum(ratio * adv, ratio.clamp(1 - clip, 1 + clip) * adv)
    gap = batch["ref"] - logp
    kl = gap.exp() - gap - 1  # the k3 estimator, non-negative
    loss = -(surrogate - kl_coef * kl).mean()
    return loss, kl.mean().item(), (ratio - 1).abs().gt(clip).float().mean().item()


def warm_start(policy, opt, steps, gen):
    """Supervised on copying the prompt, so the answers are not noise at the start."""
    for step in range(steps):
        prompt = torch.randint(0, DIGITS, (64, PROMPT), generator=gen)
        loss = -token_logps(policy, torch.cat([prompt, prompt], dim=1)).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        print("warm", step, f"{loss.item():.4f}")


def main():
    torch.manual_seed(SEED)
    gen = torch.Generator().manual_seed(SEED)
    policy = Lm()
    warm = max(1, STEPS // 4)
    warm_start(policy, torch.optim.Adam(policy.parameters(), lr=3e-3), warm, gen)
    reference = copy.deepcopy(policy).requires_grad_(False).eval()
    opt = torch.optim.AdamW(policy.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.0)

    batch = None
    for step in range(STEPS - warm):
        if step % INNER == 0:
            prompts = torch.randint(0, DIGITS, (PROMPTS, PROMPT), generator=gen)
            policy.eval()
            ids = rollout(policy, prompts)
            rewards = reward_fn(ids)
            with torch.no_grad():
                batch = {"ids": ids, "adv": group_advantages(rewards),
                         "old": token_logps(policy, ids), "ref": token_logps(reference, ids)}
            policy.train()
            print("rollout", f"reward {rewards.mean().item():.4f}")
        loss, kl, clipped = grpo_loss(policy, batch)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        opt.step()
        print(step, f"loss {loss.item():.5f} kl {kl:.5f} clipped {clipped:.3f} norm {norm.item():.3f}")

    policy.eval()
    final = reward_fn(rollout(policy, torch.randint(0, DIGITS, (32, PROMPT), generator=gen)))
    print("final reward", f"{final.mean().item():.4f}")


if __name__ == "__main__":
    main()
