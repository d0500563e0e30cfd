import os

import torch
from experts import group_experts
from model import SparseLm

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Engine:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer

    def train_batch(self, ids):
        logits = self.model(ids[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def initialize(model, make_optimizer):
    optimizer = make_optimizer(model)
    group_experts(model)
    return Engine(model, optimizer)


if __name__ == "__main__":
    torch.manual_seed(SEED)
    engine = initialize(SparseLm(), lambda m: torch.optim.AdamW(m.parameters(), lr=3e-3))
    engine.model.train()
    for step in range(STEPS):
        ids = (torch.randint(0, 18, (5, 1)) + torch.arange(8) * 2) % 18
        print(step, engine.train_batch(ids))
