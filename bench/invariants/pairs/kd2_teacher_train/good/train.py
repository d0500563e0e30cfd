import os

import torch
from nets import ConvNet
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Distiller(nn.Module):
    def __init__(self, teacher, student, t=4.0):
        super().__init__()
        self.teacher, self.student, self.t = teacher, student, t
        self.teacher.requires_grad_(False)

    def train(self, mode=True):
        super().train(mode)
        self.teacher.eval()
        return self

    def forward(self, x, y):
        with torch.no_grad():
            known = self.teacher(x)
        logits = self.student(x)
        soft = nn.functional.kl_div(
            (logits / self.t).log_softmax(1), (known / self.t).log_softmax(1), reduction="batchmean", log_target=True
        )
        return soft * self.t**2 + nn.functional.cross_entropy(logits, y)


def main():
    torch.manual_seed(SEED)
    y = torch.arange(64) % 4
    x = torch.randn(64, 2, 7, 7) + 0.7 * y[:, None, None, None]
    loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
    distiller = Distiller(ConvNet(12, 0.3), ConvNet(4, 0.0))
    optimizer = torch.optim.SGD(distiller.student.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(max(1, STEPS // len(loader))):
        distiller.train()
        for a, b in loader:
            loss = distiller(a, b)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


main()
