"""Click prediction from a log that is streamed: hashed features, embedding bags, two reading processes."""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
BUCKETS, FIELDS, BATCH, WORKERS = 64, 6, 8, 2


def write_log(rows):
    """Lines of text, as a server writes them: time, click, features."""
    generator = torch.Generator().manual_seed(SEED)
    taste = torch.randn(BUCKETS, generator=generator)
    lines = []
    for time in range(rows):
        features = torch.randint(0, BUCKETS, (FIELDS,), generator=generator)
        click = int(torch.rand((), generator=generator) < taste[features].sum().sigmoid())
        lines.append(f"{time} {click} " + " ".join(str(f) for f in features.tolist()))
    return lines


class ClickLog(IterableDataset):
    def __init__(self, lines):
        self.lines = lines

    def parse(self, line):
        time, click, *features = line.split()
        return {
            "time": torch.tensor(float(time) / len(self.lines)),
            "features": torch.tensor([int(f) for f in features]),
            "click": torch.tensor(float(click)),
        }

    def __iter__(self):
        for line in self.lines:
            yield self.parse(line)


class ClickModel(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.bag = nn.EmbeddingBag(BUCKETS, width, mode="sum")
        self.deep = nn.Sequential(nn.Linear(width + 1, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, features, time):
        return self.deep(torch.cat([self.bag(features), time[:, None]], 1))[:, 0]


def main():
    torch.manual_seed(SEED)
    loader = DataLoader(ClickLog(write_log(BATCH * STEPS)), batch_size=BATCH, num_workers=WORKERS)
    model = ClickModel()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
    model.train()
    seen, total = 0, 0.0
    for batch in loader:
        logits = model(batch["features"], batch["time"])
        loss = nn.functional.binary_cross_entropy_with_logits(logits, batch["click"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += len(logits)
        total += loss.item() * len(logits)
        print(f"rows {seen} loss {loss.item():.5f} mean {total / seen:.5f}")


if __name__ == "__main__":
    main()
