"""A vision transformer as the papers with code have it: patches by reshape and Linear, separate query, key and value."""
import torch
from torch import nn
from weights import CLASSES, DIM, HEADS, LAYERS, PATCH, SIZE, batch, state

TOKENS = (SIZE // PATCH) ** 2 + 1


class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.output = (nn.Linear(DIM, DIM) for _ in range(4))

    def heads(self, x):
        return x.unflatten(-1, (HEADS, DIM // HEADS)).movedim(2, 1)

    def forward(self, x):
        query, key, value = self.heads(self.query(x)), self.heads(self.key(x)), self.heads(self.value(x))
        scores = query @ key.mT
        scores = scores / (DIM // HEADS) ** 0.5
        mixed = scores.softmax(dim=-1) @ value
        return self.output(mixed.movedim(1, 2).flatten(2))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.before_attention = nn.LayerNorm(DIM, eps=1e-6)
        self.attention = SelfAttention()
        self.before_mlp = nn.LayerNorm(DIM, eps=1e-6)
        self.mlp = nn.Sequential(nn.Linear(DIM, 2 * DIM), nn.GELU(), nn.Linear(2 * DIM, DIM))

    def forward(self, x):
        x = self.attention(self.before_attention(x)) + x
        return self.mlp(self.before_mlp(x)) + x


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(3 * PATCH * PATCH, DIM)
        self.class_token = nn.Parameter(torch.zeros(DIM))
        self.positions = nn.Parameter(torch.zeros(TOKENS, DIM))
        self.encoders = nn.ModuleList(Encoder() for _ in range(LAYERS))
        self.final = nn.LayerNorm(DIM, eps=1e-6)
        self.classifier = nn.Linear(DIM, CLASSES)

    def patches(self, images):
        b, c, h, w = images.shape
        grid = images.reshape(b, c, h // PATCH, PATCH, w // PATCH, PATCH)
        return grid.permute(0, 2, 4, 1, 3, 5).reshape(b, -1, c * PATCH * PATCH)

    def forward(self, images):
        x = self.embed(self.patches(images))
        first = self.class_token.expand(x.shape[0], 1, DIM)
        x = torch.cat((first, x), dim=1)
        x = x + self.positions
        for encoder in self.encoders:
            x = encoder(x)
        x = self.final(x)
        return self.classifier(x[:, 0])


def load(model, checkpoint):
    names = {"patch_embed.proj.bias": "embed.bias", "norm.weight": "final.weight", "norm.bias": "final.bias", "head.weight": "classifier.weight",
             "head.bias": "classifier.bias"}  # fmt: skip
    mine = {new: checkpoint[old] for old, new in names.items()}
    mine["embed.weight"] = checkpoint["patch_embed.proj.weight"].flatten(1)
    mine["class_token"], mine["positions"] = checkpoint["cls_token"][0, 0], checkpoint["pos_embed"][0]
    for i in range(LAYERS):
        theirs, ours = f"blocks.{i}.", f"encoders.{i}."
        for what in ("weight", "bias"):
            for part, value in zip(("query", "key", "value"), checkpoint[f"{theirs}attn.qkv.{what}"].chunk(3)):
                mine[f"{ours}attention.{part}.{what}"] = value
            for old, new in (("attn.proj", "attention.output"), ("norm1", "before_attention"), ("norm2", "before_mlp"), ("mlp.fc1", "mlp.0"), ("mlp.fc2", "mlp.2")):
                mine[f"{ours}{new}.{what}"] = checkpoint[f"{theirs}{old}.{what}"]
    model.load_state_dict(mine)


def fit():
    model, criterion = ViT(), nn.CrossEntropyLoss()
    load(model, state())
    optim = torch.optim.AdamW(model.parameters(), lr=1e-3, eps=1e-3, foreach=False)
    for epoch in range(2):
        pixels, target = batch(epoch)
        prediction = model(pixels)
        error = criterion(prediction, target)
        error.backward()
        size = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])
        optim.step()
        optim.zero_grad()
        print(f"step {epoch} loss {error.item():.9f} norm {size.item():.9f}", flush=True)


torch.set_num_threads(1)
fit()
