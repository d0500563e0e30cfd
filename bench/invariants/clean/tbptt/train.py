import argparse
import os

import torch
from torch import nn

STEPS = int(os.environ.get("STEPS", "8"))


class CharModel(nn.Module):
    def __init__(self, vocab, hidden, layers, dropout):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(vocab, hidden)
        self.rnn = nn.LSTM(hidden, hidden, layers, dropout=dropout)
        self.decoder = nn.Linear(hidden, vocab)
        self.decoder.weight = self.encoder.weight
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)

    def forward(self, x, state):
        out, state = self.rnn(self.drop(self.encoder(x)), state)
        return self.decoder(self.drop(out)), state


def detach(state):
    return tuple(s.detach() for s in state)


def batchify(data, size):
    n = len(data) // size
    return data[: n * size].view(size, n).t().contiguous()


def evaluate(model, source, bptt, criterion):
    model.eval()
    state, total = None, 0.0
    with torch.no_grad():
        for i in range(0, len(source) - 1, bptt):
            n = min(bptt, len(source) - 1 - i)
            out, state = model(source[i : i + n], state)
            total += n * criterion(out.flatten(0, 1), source[i + 1 : i + 1 + n].flatten()).item()
    return total / (len(source) - 1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--bptt", type=int, default=10)
    p.add_argument("--batch", type=int, default=4)
    p.add_argument("--lr", type=float, default=1.0)
    p.add_argument("--clip", type=float, default=0.25)
    p.add_argument("--seed", type=int, default=int(os.environ.get("SEED", "0")))
    a = p.parse_args()
    torch.manual_seed(a.seed)
    text = torch.tensor([ord(c) % 30 for c in "the quick brown fox jumps over the lazy dog. " * 20])
    train, valid = batchify(text[:700], a.batch), batchify(text[700:], a.batch)
    model, criterion = CharModel(30, 16, 2, 0.2), nn.CrossEntropyLoss()
    lr, best, step = a.lr, float("inf"), 0
    opt = torch.optim.SGD(model.parameters(), lr=lr)
    while step < STEPS:
        model.train()
        state = None
        for i in range(0, len(train) - 1, a.bptt):
            if step == STEPS:
                break
            n = min(a.bptt, len(train) - 1 - i)
            if state is not None:
                state = detach(state)
            out, state = model(train[i : i + n], state)
            loss = criterion(out.flatten(0, 1), train[i + 1 : i + 1 + n].flatten())
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), a.clip)
            opt.step()
            step += 1
        val = evaluate(model, valid, a.bptt, criterion)
        print(f"step {step} train {loss.item():.3f} valid {val:.3f}")
        if val >= best:
            for g in opt.param_groups:
                g["lr"] /= 4
        best = min(best, val)


main()
