"""Skip-gram with negative samples: SparseAdam for the tables, AdamW for the projection."""
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
VOCAB, DIM, NEGATIVES = 60, 12, 4


class SkipGram(nn.Module):
    def __init__(self):
        super().__init__()
        self.center = nn.Embedding(VOCAB, DIM, sparse=True)
        self.context = nn.Embedding(VOCAB, DIM, sparse=True)
        self.project = nn.Linear(DIM, DIM, bias=False)
        nn.init.uniform_(self.center.weight, -0.5 / DIM, 0.5 / DIM)
        nn.init.zeros_(self.context.weight)

    def forward(self, word, around, wrong):
        v = self.project(self.center(word))
        good = F.logsigmoid((v * self.context(around)).sum(-1))
        bad = F.logsigmoid(-(self.context(wrong) @ v.unsqueeze(-1)).squeeze(-1)).sum(-1)
        return -(good + bad).mean()


def pairs(text, window=2):
    for i, w in enumerate(text):
        for j in range(max(0, i - window), min(len(text), i + window + 1)):
            if i != j:
                yield w, text[j]


def main():
    torch.manual_seed(SEED)
    text = torch.randint(0, VOCAB, (200,)).tolist()
    data = torch.tensor(list(pairs(text)))
    model = SkipGram()
    sparse = torch.optim.SparseAdam([model.center.weight, model.context.weight], lr=5e-3)
    dense = torch.optim.AdamW(model.project.parameters(), lr=5e-3)
    order = torch.randperm(len(data))
    for step in range(STEPS):
        rows = data[order[step * 32 : (step + 1) * 32]]
        loss = model(rows[:, 0], rows[:, 1], torch.randint(0, VOCAB, (len(rows), NEGATIVES)))
        for o in (sparse, dense):
            o.zero_grad()
        loss.backward()
        for o in (sparse, dense):
            o.step()
        print(step, loss.item())


main()
