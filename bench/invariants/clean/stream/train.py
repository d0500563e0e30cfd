import os

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Stream(IterableDataset):
    """Numbered records, shared out among the workers."""

    def __init__(self, records):
        self.records = records

    def __iter__(self):
        info = get_worker_info()
        first, by = (0, 1) if info is None else (info.id, info.num_workers)
        for i in range(first, self.records, by):
            g = torch.Generator().manual_seed(SEED * 10_000 + i)
            x = torch.randn(15, generator=g)
            yield {"x": x, "y": (x > 0).sum() % 3, "id": i}


def collate(rows):
    return torch.stack([r["x"] for r in rows]), torch.stack([r["y"] for r in rows])


def main():
    torch.manual_seed(SEED)
    loader = DataLoader(Stream(STEPS * 8), batch_size=8, num_workers=2, collate_fn=collate)
    net = nn.Sequential(nn.Linear(15, 30), nn.GELU(), nn.Dropout(0.1), nn.Linear(30, 3))
    opt = torch.optim.Rprop(net.parameters(), lr=1e-3)
    net.train()
    for i, (x, y) in enumerate(loader):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        print(i, loss.item())


if __name__ == "__main__":
    main()
