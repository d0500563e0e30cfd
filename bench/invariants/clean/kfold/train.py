import os

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, SubsetRandomSampler, TensorDataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
FOLDS = 3


def reset_weights(m):
    if hasattr(m, "reset_parameters"):
        m.reset_parameters()


torch.manual_seed(SEED)
x = torch.randn(60, 1, 12)
y = (x[:, 0, :6].sum(1) > x[:, 0, 6:].sum(1)).long()
data = TensorDataset(x, y)
order = torch.randperm(60)
results = []
for fold in range(FOLDS):
    test_ids = order[fold::FOLDS].tolist()
    train_ids = [i for i in order.tolist() if i not in test_ids]
    train = DataLoader(data, batch_size=10, sampler=SubsetRandomSampler(train_ids))
    test = DataLoader(data, batch_size=10, sampler=SubsetRandomSampler(test_ids))
    net = nn.Sequential(nn.Conv1d(1, 6, 3), nn.ReLU(), nn.Flatten(), nn.Linear(60, 2))
    net.apply(reset_weights)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for epoch in range(max(1, STEPS // 8)):
        for inputs, targets in train:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(inputs), targets)
            loss.backward()
            optimizer.step()
    net.eval()
    correct = 0
    with torch.no_grad():
        for inputs, targets in test:
            correct += (net(inputs).argmax(1) == targets).sum().item()
    results.append(correct / len(test_ids))
    print("fold", fold, "loss", loss.item(), "accuracy", results[-1])
print("mean", sum(results) / FOLDS)
