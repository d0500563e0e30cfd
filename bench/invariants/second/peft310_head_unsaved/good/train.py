"""Sequence classification with LoRA on a pretrained encoder; the adapter is saved every epoch and tested at the end."""

import os
import tempfile

import torch
import torch.nn.functional as F
from adapters import add_lora, load_adapter, save_adapter
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
VOCAB, WIDTH, LENGTH, LABELS = 40, 16, 10, 3


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.mlp = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH))

    def forward(self, x):
        h = self.norm(x)
        x = x + F.scaled_dot_product_attention(self.query(h), self.key(h), self.value(h))
        return x + self.mlp(x)


class Encoder(nn.Module):
    def __init__(self, depth=2):
        super().__init__()
        self.tokens = nn.Embedding(VOCAB, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(depth))

    def forward(self, tokens):
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x)
        return x.mean(1)


class SequenceClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.score = nn.Linear(WIDTH, LABELS)

    def forward(self, tokens):
        return self.score(self.encoder(tokens))

    @classmethod
    def from_pretrained(cls, folder):
        model = cls()
        model.encoder.load_state_dict(torch.load(os.path.join(folder, "encoder.pt")))
        return add_lora(model, targets=("query", "value"))


def sentences(n):
    """The label says which third of the vocabulary has most of the tokens."""
    labels = torch.randint(0, LABELS, (n,))
    tokens = torch.randint(0, VOCAB, (n, LENGTH))
    tokens[:, ::2] = labels[:, None] * (VOCAB // LABELS) + torch.randint(0, VOCAB // LABELS, (n, LENGTH // 2))
    return TensorDataset(tokens, labels)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    pairs = [(model(tokens), labels) for tokens, labels in loader]
    model.train()
    logits, labels = torch.cat([a for a, _ in pairs]), torch.cat([b for _, b in pairs])
    return F.cross_entropy(logits, labels).item(), (logits.argmax(1) == labels).float().mean().item()


def fit(model, train_loader, eval_loader, path):
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trainable, lr=0.03)
    model.train()
    for epoch in range(max(1, STEPS // len(train_loader))):
        for tokens, labels in train_loader:
            loss = F.cross_entropy(model(tokens), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        save_adapter(model, path)
        print("epoch %d loss %.5f eval %.5f accuracy %.3f" % (epoch, loss.item(), *evaluate(model, eval_loader)))


def main():
    torch.manual_seed(SEED)
    with tempfile.TemporaryDirectory() as folder:
        torch.save(Encoder().state_dict(), os.path.join(folder, "encoder.pt"))
        train_loader = DataLoader(sentences(64), batch_size=16, shuffle=True)
        eval_loader = DataLoader(sentences(48), batch_size=24)
        adapter = os.path.join(folder, "adapter.pt")
        fit(SequenceClassifier.from_pretrained(folder), train_loader, eval_loader, adapter)
        reloaded = load_adapter(SequenceClassifier.from_pretrained(folder), adapter)
        print("reloaded: eval %.5f accuracy %.3f" % evaluate(reloaded, eval_loader))


if __name__ == "__main__":
    main()
