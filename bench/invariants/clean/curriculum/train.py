import os

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Copy(Dataset):
    def __init__(self, length, n, seed):
        self.x = torch.randint(1, 9, (n, length), generator=torch.Generator().manual_seed(seed))

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i]


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(9, 12)
        self.enc = nn.GRU(12, 24, batch_first=True)
        self.dec = nn.GRU(12, 24, batch_first=True)
        self.out = nn.Linear(24, 9)

    def forward(self, x):
        _, h = self.enc(self.emb(x))
        given = torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], 1)
        return self.out(self.dec(self.emb(given), h)[0])


def main():
    torch.manual_seed(SEED)
    model = Reader()
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    each = max(1, STEPS // 3)
    for stage, length in enumerate((3, 5, 9)):
        # Shorter examples are many, so their batches are larger.
        size = {3: 16, 5: 12, 9: 8}[length]
        loader = DataLoader(Copy(length, size * each, SEED + stage), batch_size=size, shuffle=True)
        for x in loader:
            loss = nn.functional.cross_entropy(model(x).flatten(0, 1), x.flatten())
            opt.zero_grad()
            loss.backward()
            opt.step()
        print("length", length, "loss", loss.item())


main()
