"""Fine-tune a small decoder on worked additions, one problem per example."""
import math
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class CharTokenizer:
    bos_token, eos_token = "<s>", "</s>"

    def __init__(self, alphabet="0123456789+=; "):
        self.vocab = [self.bos_token, self.eos_token] + list(alphabet)
        self.ids = {t: i for i, t in enumerate(self.vocab)}
        self.bos_token_id = self.ids[self.bos_token]
        self.eos_token_id = self.ids[self.eos_token]
        self.pad_token = None

    @property
    def pad_token_id(self):
        return self.ids[self.pad_token]

    def __len__(self):
        return len(self.vocab)

    def __call__(self, text):
        return [self.bos_token_id] + [self.ids[c] for c in text] + [self.eos_token_id]

    def decode(self, ids):
        return "".join(self.vocab[i] for i in ids if i > 1)

    def pad(self, features):
        width = max(len(f) for f in features)
        input_ids = torch.full((len(features), width), self.pad_token_id)
        attention_mask = torch.zeros(len(features), width, dtype=torch.long)
        for row, ids in enumerate(features):
            input_ids[row, : len(ids)] = torch.tensor(ids)
            attention_mask[row, : len(ids)] = 1
        return {"input_ids": input_ids, "attention_mask": attention_mask}


class Additions(Dataset):
    def __init__(self, tokenizer, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.examples = []
        for _ in range(n):
            digits = int(torch.randint(1, 4, (), generator=g))
            a, b = torch.randint(0, 10 ** digits, (2,), generator=g).tolist()
            self.examples.append(tokenizer(f"{a}+{b}={a + b}"))

    def __len__(self):
        return len(self.examples)

    def __getitem__(self, i):
        return self.examples[i]


class DataCollatorForLanguageModeling:
    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    def __call__(self, features):
        batch = self.tokenizer.pad(features)
        labels = batch["input_ids"].clone()
        labels[batch["input_ids"] == self.tokenizer.pad_token_id] = -100
        batch["labels"] = labels
        return batch


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.c_attn, self.c_proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x, mask):
        b, t, d = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.c_attn(self.ln_1(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.c_proj(y.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.ln_2(x))


class CausalLM(nn.Module):
    def __init__(self, vocab, d=48, heads=4, layers=2, n_positions=32):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, d), nn.Embedding(n_positions, d)
        self.h = nn.ModuleList(Block(d, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(d)
        self.lm_head = nn.Linear(d, vocab, bias=False)
        self.lm_head.weight = self.wte.weight
        nn.init.normal_(self.wte.weight, std=0.02)

    def forward(self, input_ids, attention_mask, labels=None):
        t = input_ids.size(1)
        causal = torch.ones(t, t, dtype=torch.bool).tril()
        mask = causal & attention_mask.bool()[:, None, None, :]
        x = self.wte(input_ids) + self.wpe(torch.arange(t))
        for block in self.h:
            x = block(x, mask)
        logits = self.lm_head(self.ln_f(x))
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)
        return loss, logits

    @torch.no_grad()
    def generate(self, ids, eos_token_id, max_length=20):
        while len(ids) < max_length and ids[-1] != eos_token_id:
            x = torch.tensor([ids])
            ids = ids + [int(self(x, torch.ones_like(x))[1][0, -1].argmax())]
        return ids


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    losses = [float(model(**batch)[0]) for batch in loader]
    model.train()
    return sum(losses) / len(losses)


def main():
    torch.manual_seed(SEED)
    tokenizer = CharTokenizer()
    tokenizer.pad_token = tokenizer.eos_token
    collator = DataCollatorForLanguageModeling(tokenizer)
    train = DataLoader(Additions(tokenizer, 256, SEED), batch_size=16, shuffle=True, collate_fn=collator)
    valid = DataLoader(Additions(tokenizer, 64, SEED + 1000), batch_size=32, collate_fn=collator)
    model = CausalLM(len(tokenizer))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda s: min(1.0, (s + 1) / 2) * 0.5 * (1 + math.cos(math.pi * min(1.0, s / (2 * STEPS)))))
    model.train()
    step = 0
    while step < STEPS:
        for batch in train:
            optimizer.zero_grad()
            loss, _ = model(**batch)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            print(f"step {step} loss {loss.item():.4f} lr {scheduler.get_last_lr()[0]:.2e}")
            step += 1
            if step == STEPS:
                break
    print(f"eval loss {evaluate(model, valid):.4f}")
    model.eval()
    print("sample", tokenizer.decode(model.generate(tokenizer("12+30=")[:-1], tokenizer.eos_token_id)))
    with tempfile.TemporaryDirectory() as out:
        torch.save(model.state_dict(), os.path.join(out, "pytorch_model.bin"))


if __name__ == "__main__":
    main()
