import os

import torch
import torch.nn.functional as F
from retrieval import DualEncoder

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


def in_batch_loss(q, p, t=0.1):
    scores = q @ p.T / t
    return F.cross_entropy(scores, torch.arange(len(q)))


if __name__ == "__main__":
    torch.manual_seed(SEED)
    model = DualEncoder(vocab=50, d=16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    model.train()
    for step in range(STEPS):
        passage = torch.randint(1, 50, (8, 12))
        query = passage[:, torch.randperm(12)[:4]]
        optimizer.zero_grad()
        loss = in_batch_loss(*model(query, passage))
        loss.backward()
        optimizer.step()
        print(f"{step:3d} {loss.item():.4f}")
