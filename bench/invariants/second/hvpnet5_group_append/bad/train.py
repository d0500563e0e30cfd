"""A named entity tagger: a recurrent encoder, emission scores and a linear-chain CRF. Each part has its own rate."""
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
VOCABULARY, TAGS, LENGTH = 40, 5, 12


class CRF(nn.Module):
    def __init__(self, tags):
        super().__init__()
        self.start = nn.Parameter(torch.empty(tags).uniform_(-0.1, 0.1))
        self.end = nn.Parameter(torch.empty(tags).uniform_(-0.1, 0.1))
        self.transitions = nn.Parameter(torch.empty(tags, tags).uniform_(-0.1, 0.1))

    def score(self, emissions, tags):
        score = self.start[tags[:, 0]] + emissions[:, 0].gather(1, tags[:, :1]).squeeze(1)
        for t in range(1, tags.shape[1]):
            score = score + self.transitions[tags[:, t - 1], tags[:, t]]
            score = score + emissions[:, t].gather(1, tags[:, t : t + 1]).squeeze(1)
        return score + self.end[tags[:, -1]]

    def partition(self, emissions):
        alpha = self.start + emissions[:, 0]
        for t in range(1, emissions.shape[1]):
            alpha = torch.logsumexp(alpha.unsqueeze(2) + self.transitions, dim=1) + emissions[:, t]
        return torch.logsumexp(alpha + self.end, dim=1)

    def forward(self, emissions, tags):
        return (self.partition(emissions) - self.score(emissions, tags)).mean()


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, 16)
        self.encoder = nn.GRU(16, 12, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(24, TAGS)
        self.crf = CRF(TAGS)

    def forward(self, words, tags):
        states, _ = self.encoder(self.embed(words))
        return self.crf(self.fc(states), tags)


def build_optimizer(model, lr=2e-3, head_lr=5e-2):
    groups = []
    params = {"lr": lr, "weight_decay": 1e-2, "params": []}
    for name, param in model.named_parameters():
        if name.startswith(("embed", "encoder")):
            params["params"].append(param)
    groups.append(params)

    params = {"lr": head_lr, "weight_decay": 0.0, "params": []}
    for name, param in model.named_parameters():
        if name.startswith(("crf", "fc")):
            params["params"].append(param)
    return torch.optim.AdamW(groups)


def sentences(n):
    words = torch.randint(0, VOCABULARY, (n, LENGTH))
    tags = (words + words.roll(1, dims=1)) % TAGS
    return TensorDataset(words, tags)


def main():
    torch.manual_seed(SEED)
    loader = DataLoader(sentences(64), batch_size=16, shuffle=True)
    model = Tagger()
    optimizer = build_optimizer(model)
    step = 0
    model.train()
    while step < STEPS:
        for words, tags in loader:
            optimizer.zero_grad()
            loss = model(words, tags)
            loss.backward()
            optimizer.step()
            step += 1
            print(f"step {step} nll {loss.item():.4f}")
            if step == STEPS:
                break


if __name__ == "__main__":
    main()
