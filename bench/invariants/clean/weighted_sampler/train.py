import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


def main():
    torch.manual_seed(SEED)
    y = (torch.rand(160) < 0.1).long()
    y[:4] = 1
    x = torch.randn(160, 6) + 1.5 * y[:, None]
    weights = (1.0 / torch.bincount(y).float())[y]
    sampler = WeightedRandomSampler(weights, num_samples=len(y), replacement=True)
    loader = DataLoader(TensorDataset(x, y), batch_size=20, sampler=sampler)
    model = nn.Sequential(nn.Linear(6, 12), nn.ELU(), nn.Linear(12, 1))
    criterion = nn.BCEWithLogitsLoss()
    opt = torch.optim.Adadelta(model.parameters(), lr=1.0)
    step = 0
    while step < STEPS:
        for a, b in loader:
            pred = model(a).squeeze(1)
            loss = criterion(pred, b.float())
            model.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            print(step, loss.item(), b.float().mean().item())
            if step >= STEPS:
                break


main()
