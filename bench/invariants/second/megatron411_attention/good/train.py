"""A sequence classifier with self-attention: which of the first four tokens is most frequent."""
import os

import torch
from model import Classifier
from torch.nn.functional import cross_entropy

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
EVAL_INTERVAL = 3
VOCABULARY, CLASSES, LENGTH = 12, 4, 20


def make_batch(n, generator):
    tokens = torch.randint(0, VOCABULARY, (n, LENGTH), generator=generator)
    counts = torch.stack([(tokens == c).sum(1) for c in range(CLASSES)], dim=1)
    return tokens, counts.argmax(1)


def evaluate(model, batches):
    model.eval()
    with torch.no_grad():
        losses = [cross_entropy(model(tokens), target).item() for tokens, target in batches]
    model.train()
    return sum(losses) / len(losses)


def train(model, optimizer, generator, valid):
    model.train()
    for iteration in range(1, STEPS + 1):
        tokens, target = make_batch(32, generator)
        optimizer.zero_grad()
        loss = cross_entropy(model(tokens), target)
        loss.backward()
        optimizer.step()
        print(f"iteration {iteration} lm loss {loss.item():.6f}")
        if iteration % EVAL_INTERVAL == 0:
            print(f"validation loss at iteration {iteration}: {evaluate(model, valid):.6f}")


def main():
    torch.manual_seed(SEED)
    generator = torch.Generator().manual_seed(SEED)
    valid = [make_batch(32, generator) for _ in range(2)]
    model = Classifier(VOCABULARY, CLASSES)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    train(model, optimizer, generator, valid)


if __name__ == "__main__":
    main()
