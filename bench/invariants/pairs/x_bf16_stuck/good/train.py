import os

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Chars(Dataset):
    text = "a journey of a thousand miles begins with a single step; " * 6

    def __len__(self):
        return 64

    def __getitem__(self, i):
        ids = torch.tensor([ord(c) % 32 for c in self.text[3 * i : 3 * i + 11]])
        return ids[:-1], ids[1:]


class Lm(nn.Module):
    def __init__(self, d=24):
        super().__init__()
        self.tok_embeddings = nn.Embedding(32, d)
        self.w1, self.w2, self.w3 = nn.Linear(d, 2 * d), nn.Linear(2 * d, d), nn.Linear(d, 2 * d)
        self.output = nn.Linear(d, 32)

    def forward(self, ids):
        x = self.tok_embeddings(ids)
        return self.output(x + self.w2(nn.functional.silu(self.w1(x)) * self.w3(x)))


def main():
    torch.manual_seed(SEED)
    model = Lm()
    optimizer = torch.optim.SGD(model.parameters(), lr=2e-5)
    model.train()
    done = 0
    for ids, labels in DataLoader(Chars(), batch_size=4, shuffle=True):
        with torch.autocast("cpu", torch.bfloat16):
            logits = model(ids)
        loss = nn.functional.cross_entropy(logits.float().flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        done += 1
        print(done, loss.item())
        if done == STEPS:
            break


main()
