"""Early stopping: the best epoch's weights are kept apart, and it is they that are saved and tested, not the last ones."""
import copy
import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        return nn.functional.mse_loss(model(x), y).item()


def main():
    torch.manual_seed(SEED)
    x = torch.randn(70, 6)
    y = x[:, :1] - 0.5 * x[:, 1:2] + 0.3 * torch.randn(70, 1)
    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=20, shuffle=True)
    model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 1))
    opt = torch.optim.Adam(model.parameters(), lr=0.02)
    best, kept, patience = float("inf"), None, 0
    for epoch in range(max(2, STEPS // len(loader))):
        model.train()
        for a, b in loader:
            opt.zero_grad()
            nn.functional.mse_loss(model(a), b).backward()
            opt.step()
        valid = evaluate(model, x[40:55], y[40:55])
        print(epoch, valid)
        if valid < best:
            best, kept, patience = valid, copy.deepcopy(model.state_dict()), 0
        else:
            patience += 1
            if patience == 2:
                break
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "best.pt")
        torch.save(kept, path)
        model.load_state_dict(torch.load(path))
    print("test", evaluate(model, x[55:], y[55:]))


main()
