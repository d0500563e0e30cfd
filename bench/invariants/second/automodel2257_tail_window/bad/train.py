"""A draft model for speculative decoding learns to follow its target: gradients are accumulated over micro-batches."""

import os

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
VOCAB, WIDTH, LENGTH = 24, 16, 9
MICRO_BATCH, ACCUMULATE = 2, 4


class Target(nn.Module):
    """Gives its hidden states and the scores of the next token."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, WIDTH)
        self.rnn = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.head = nn.Linear(WIDTH, VOCAB)

    def forward(self, tokens):
        hidden, _ = self.rnn(self.embed(tokens))
        return hidden, self.head(hidden)


class Draft(nn.Module):
    """From a token and the hidden state before it to the scores that the target would give."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, WIDTH)
        self.fuse = nn.Linear(2 * WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, VOCAB)

    def forward(self, tokens, hidden):
        x = self.fuse(torch.cat([self.embed(tokens[:, 1:]), hidden[:, :-1]], -1))
        return self.head(x.tanh())


class Samples(Dataset):
    def __init__(self, n):
        self.tokens = torch.randint(0, VOCAB, (n, LENGTH))

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, i):
        return self.tokens[i]


def draft_loss(draft, target, tokens):
    with torch.no_grad():
        hidden, scores = target(tokens)
        wanted = (4 * scores[:, 1:]).softmax(-1)
    return F.cross_entropy(draft(tokens, hidden).flatten(0, 1), wanted.flatten(0, 1))


def window_of(i, n):
    """How many micro-batches share the optimizer step that micro-batch i takes part in."""
    first = i // ACCUMULATE * ACCUMULATE
    return min(ACCUMULATE, n - first)


def train_epoch(draft, target, loader, optimizer):
    draft.train()
    optimizer.zero_grad()
    losses, steps = [], 0
    for i, tokens in enumerate(loader):
        loss = draft_loss(draft, target, tokens)
        (loss / window_of(i, len(loader))).backward()
        losses.append(loss.item())
        if (i + 1) % ACCUMULATE == 0:
            nn.utils.clip_grad_norm_(draft.parameters(), 5.0)
            optimizer.step()
            optimizer.zero_grad()
            steps += 1
    return sum(losses) / len(losses), steps


def main():
    torch.manual_seed(SEED)
    target = Target().eval().requires_grad_(False)
    draft = Draft()
    loader = DataLoader(Samples(20), batch_size=MICRO_BATCH, shuffle=True)
    optimizer = torch.optim.AdamW(draft.parameters(), lr=0.01)
    for epoch in range(max(2, STEPS // 3)):
        loss, steps = train_epoch(draft, target, loader, optimizer)
        print(f"epoch {epoch} steps {steps} loss {loss:.6f}")


if __name__ == "__main__":
    main()
