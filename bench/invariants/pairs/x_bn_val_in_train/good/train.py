import os

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Subset, TensorDataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class SpeechNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv1d(1, 8, 9, stride=3)
        self.bn1 = nn.BatchNorm1d(8)
        self.conv2 = nn.Conv1d(8, 16, 3)
        self.bn2 = nn.BatchNorm1d(16)
        self.fc1 = nn.Linear(16, 4)

    def forward(self, x):
        x = nn.functional.relu(self.bn1(self.conv1(x)))
        x = nn.functional.relu(self.bn2(self.conv2(x)))
        return nn.functional.log_softmax(self.fc1(x.mean(-1)), dim=-1)


class Trainer:
    def __init__(self, model, train_set, val_set):
        self.model = model
        self.train_loader = DataLoader(train_set, batch_size=10, shuffle=True)
        self.val_loader = DataLoader(val_set, batch_size=10)
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)

    def _train_epoch(self):
        self.model.train()
        for data, target in self.train_loader:
            loss = nn.functional.nll_loss(self.model(data), target)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return loss.item()

    def _valid_epoch(self):
        self.model.eval()
        right = 0
        with torch.no_grad():
            for data, target in self.val_loader:
                right += self.model(data).argmax(1).eq(target).sum().item()
        return right / len(self.val_loader.dataset)

    def run(self, epochs):
        for epoch in range(epochs):
            print(epoch, self._train_epoch(), self._valid_epoch())


if __name__ == "__main__":
    torch.manual_seed(SEED)
    y = torch.arange(60) % 4
    t = torch.linspace(0, 1, 64)
    x = torch.sin(2 * 3.14 * (3 + 3 * y[:, None]) * t + 6 * torch.rand(60, 1)).unsqueeze(1)
    data = TensorDataset(x, y)
    Trainer(SpeechNet(), Subset(data, range(40)), Subset(data, range(40, 60))).run(max(2, STEPS // 4))
