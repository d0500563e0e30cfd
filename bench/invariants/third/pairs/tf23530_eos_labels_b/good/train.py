"""Train a causal language model on short sentences, padded with the end-of-text token."""
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
BATCH = 16
SUBJECTS = ["the cat", "a small dog", "my old friend", "she", "they"]
VERBS = ["sees", "likes", "walks with", "never trusts"]
OBJECTS = ["it", "the red house", "a bird", "him today"]


class Tokenizer:
    def __init__(self, phrases):
        words = sorted({w for p in phrases for w in p.split()})
        self.vocab = {"<|endoftext|>": 0, **{w: i + 1 for i, w in enumerate(words)}}
        self.words = {i: w for w, i in self.vocab.items()}
        self.eos_token_id = self.vocab["<|endoftext|>"]
        self.pad_token_id = self.eos_token_id

    def __call__(self, text):
        return [self.vocab[w] for w in text.split()] + [self.eos_token_id]

    def pad(self, examples):
        width = max(len(e) for e in examples)
        ids = torch.full((len(examples), width), self.pad_token_id)
        mask = torch.zeros(len(examples), width, dtype=torch.long)
        for row, e in enumerate(examples):
            ids[row, :len(e)] = torch.tensor(e)
            mask[row, :len(e)] = 1
        return {"input_ids": ids, "attention_mask": mask}

    def decode(self, ids):
        return " ".join(self.words[i] for i in ids)


class CollatorForLanguageModeling:
    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    def __call__(self, examples):
        batch = self.tokenizer.pad(examples)
        labels = batch["input_ids"].clone()
        labels[batch["attention_mask"] == 0] = -100
        batch["labels"] = labels
        return batch


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x, mask):
        b, t, d = x.shape
        q, k, v = (z.view(b, t, self.heads, -1).transpose(1, 2) for z in self.qkv(self.norm1(x)).chunk(3, -1))
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.out(a.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class CausalLM(nn.Module):
    def __init__(self, vocab, dim=32, heads=4, layers=2, positions=32):
        super().__init__()
        self.tokens = nn.Embedding(vocab, dim)
        self.positions = nn.Embedding(positions, dim)
        self.layers = nn.ModuleList(Layer(dim, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab, bias=False)

    def forward(self, input_ids, attention_mask, labels=None):
        t = input_ids.shape[1]
        place = (attention_mask.cumsum(-1) - 1).clamp(min=0)
        mask = torch.ones(t, t, dtype=torch.bool).tril() & attention_mask[:, None, None, :].bool()
        x = self.tokens(input_ids) + self.positions(place)
        for layer in self.layers:
            x = layer(x, mask)
        logits = self.head(self.norm(x))
        if labels is None:
            return logits
        loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)
        return loss, logits


def sentences(count, seed):
    g = torch.Generator().manual_seed(seed)
    pick = lambda options: options[int(torch.randint(len(options), (1,), generator=g))]
    return [f"{pick(SUBJECTS)} {pick(VERBS)} {pick(OBJECTS)}" for _ in range(count)]


@torch.no_grad()
def generate(model, tokenizer, prompt, limit=12):
    model.eval()
    ids = tokenizer(prompt)[:-1]
    while len(ids) < limit:
        x = torch.tensor([ids])
        ids.append(int(model(x, torch.ones_like(x))[0, -1].argmax()))
        if ids[-1] == tokenizer.eos_token_id:
            break
    model.train()
    return tokenizer.decode(ids)


def main():
    torch.manual_seed(SEED)
    tokenizer = Tokenizer(SUBJECTS + VERBS + OBJECTS)
    data = [tokenizer(s) for s in sentences(BATCH * STEPS, 1 + SEED)]
    collate = CollatorForLanguageModeling(tokenizer)
    loader = DataLoader(data, BATCH, shuffle=True, collate_fn=collate)
    model = CausalLM(len(tokenizer.vocab))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
    model.train()
    for step, batch in enumerate(loader):
        loss, _ = model(**batch)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"step {step} loss {loss.item():.4f}")
    with torch.no_grad():
        model.eval()
        held = collate([tokenizer(s) for s in sentences(32, 777)])
        print(f"eval loss {model(**held)[0].item():.4f}")
    for prompt in ("the cat", "she"):
        print(generate(model, tokenizer, prompt))
    with tempfile.TemporaryDirectory() as d:
        torch.save({"model": model.state_dict(), "vocab": tokenizer.vocab}, os.path.join(d, "lm.pt"))


if __name__ == "__main__":
    main()
