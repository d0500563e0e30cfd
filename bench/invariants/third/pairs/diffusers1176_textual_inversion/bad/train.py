"""Textual inversion: learn the embedding of one new token for a frozen diffusion model."""
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
WORDS = "a an photo picture of the small large red green blue square circle bright dark clean".split()
TEMPLATES = ["a photo of a {}", "a picture of the {}", "a bright photo of a {}", "a clean picture of a {}"]
SIZE, WIDTH = 8, 32


class Tokenizer:
    def __init__(self):
        self.vocab = {w: i for i, w in enumerate(WORDS)}

    def add_token(self, token):
        self.vocab[token] = len(self.vocab)
        return self.vocab[token]

    def __call__(self, text):
        return [self.vocab[w] for w in text.split()]


class TextEncoder(nn.Module):
    def __init__(self, vocab):
        super().__init__()
        self.token_embedding = nn.Embedding(vocab, WIDTH)
        self.position_embedding = nn.Embedding(8, WIDTH)
        self.encoder = nn.TransformerEncoderLayer(WIDTH, 4, 64, dropout=0.0, batch_first=True)

    def resize_token_embeddings(self, n):
        old = self.token_embedding
        self.token_embedding = nn.Embedding(n, WIDTH)
        self.token_embedding.weight.data[: old.num_embeddings] = old.weight.data

    def forward(self, ids, mask):
        x = self.token_embedding(ids) + self.position_embedding(torch.arange(ids.size(1)))
        x = self.encoder(x, src_key_padding_mask=~mask)
        return (x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv_in = nn.Conv2d(3, 32, 3, padding=1)
        self.time = nn.Linear(1, 32)
        self.cond = nn.Linear(WIDTH, 32)
        self.mid = nn.Conv2d(32, 32, 3, padding=1)
        self.conv_out = nn.Conv2d(32, 3, 3, padding=1)

    def forward(self, x, t, context):
        h = self.conv_in(x) + (self.time(t[:, None] / 100) + self.cond(context))[:, :, None, None]
        return self.conv_out(F.silu(h + self.mid(F.silu(h))))


class NoiseScheduler:
    def __init__(self, steps=100):
        self.steps = steps
        self.alphas_cumprod = torch.cumprod(1 - torch.linspace(1e-3, 4e-2, steps), 0)

    def add_noise(self, x, noise, t):
        a = self.alphas_cumprod[t][:, None, None, None]
        return a.sqrt() * x + (1 - a).sqrt() * noise


def picture(color, g):
    x = torch.randn(3, SIZE, SIZE, generator=g) * 0.1 - 0.5
    x[:, 2:6, 2:6] += torch.tensor(color)[:, None, None]
    return x


class ConceptImages(Dataset):
    def __init__(self, tokenizer, names, colors, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.items = []
        for i in range(n):
            text = TEMPLATES[i % len(TEMPLATES)].format(names[i % len(names)])
            self.items.append((picture(colors[i % len(names)], g), tokenizer(text)))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(items):
    width = max(len(ids) for _, ids in items)
    ids = torch.tensor([row + [0] * (width - len(row)) for _, row in items])
    mask = torch.tensor([[i < len(row) for i in range(width)] for _, row in items])
    return torch.stack([x for x, _ in items]), ids, mask


def denoising_loss(text_encoder, unet, scheduler, batch):
    x, ids, mask = batch
    noise = torch.randn_like(x)
    t = torch.randint(0, scheduler.steps, (len(x),))
    pred = unet(scheduler.add_noise(x, noise, t), t.float(), text_encoder(ids, mask))
    return F.mse_loss(pred, noise)


def pretrain(tokenizer, text_encoder, unet, scheduler):
    data = ConceptImages(tokenizer, ["red square", "green circle"], [[1.5, 0.0, 0.0], [0.0, 1.5, 0.0]], 64, SEED + 1)
    opt = torch.optim.Adam([*text_encoder.parameters(), *unet.parameters()], lr=3e-3)
    for batch in DataLoader(data, batch_size=8, shuffle=True, collate_fn=collate):
        opt.zero_grad()
        denoising_loss(text_encoder, unet, scheduler, batch).backward()
        opt.step()


def main():
    torch.manual_seed(SEED)
    tokenizer, scheduler = Tokenizer(), NoiseScheduler()
    text_encoder, unet = TextEncoder(len(WORDS)), UNet()
    pretrain(tokenizer, text_encoder, unet, scheduler)

    placeholder = tokenizer.add_token("<toy>")
    text_encoder.resize_token_embeddings(len(tokenizer.vocab))
    embeddings = text_encoder.token_embedding
    embeddings.weight.data[placeholder] = embeddings.weight.data[tokenizer.vocab["square"]]
    for p in [*unet.parameters(), *text_encoder.parameters()]:
        p.requires_grad_(False)
    embeddings.weight.requires_grad_(True)

    data = ConceptImages(tokenizer, ["<toy>"], [[0.3, 0.2, 1.8]], 48, SEED + 2)
    loader = DataLoader(data, batch_size=8, shuffle=True, collate_fn=collate)
    optimizer = torch.optim.AdamW(embeddings.parameters(), lr=2e-2, betas=(0.9, 0.999), weight_decay=1e-2, eps=1e-8)
    frozen = torch.arange(len(tokenizer.vocab)) != placeholder
    text_encoder.train()
    step = 0
    while step < STEPS:
        for batch in loader:
            loss = denoising_loss(text_encoder, unet, scheduler, batch)
            loss.backward()
            embeddings.weight.grad[frozen] = 0
            optimizer.step()
            optimizer.zero_grad()
            print(f"step {step} loss {loss.item():.4f}")
            step += 1
            if step == STEPS:
                break

    text_encoder.eval()
    with torch.no_grad():
        torch.manual_seed(SEED)
        losses = [denoising_loss(text_encoder, unet, scheduler, batch).item() for batch in loader]
    print(f"final loss {sum(losses) / len(losses):.4f}")
    with tempfile.TemporaryDirectory() as out:
        torch.save({"<toy>": embeddings.weight[placeholder].detach().clone()}, os.path.join(out, "learned_embeds.bin"))


if __name__ == "__main__":
    main()
