import os

import torch
from torch import nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Sequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm1 = nn.LSTMCell(1, 16)
        self.linear = nn.Linear(16, 1)

    def forward(self, x, future=0):
        outputs = []
        h = c = torch.zeros(x.size(0), 16, dtype=x.dtype)
        for t in x.split(1, dim=1):
            h, c = self.lstm1(t, (h, c))
            y = self.linear(h)
            outputs.append(y)
        for _ in range(future):
            h, c = self.lstm1(y, (h, c))
            y = self.linear(h)
            outputs.append(y)
        return torch.cat(outputs, dim=1)


if __name__ == "__main__":
    torch.manual_seed(SEED)
    t = torch.arange(30, dtype=torch.float64) + torch.randint(-20, 20, (6, 1))
    data = torch.sin(t / 5)
    seq = Sequence().double()
    criterion = nn.MSELoss()
    optimizer = torch.optim.LBFGS(seq.parameters(), lr=0.8, max_iter=4)
    for i in range(max(2, STEPS // 2)):
        def closure():
            optimizer.zero_grad()
            out = seq(data[1:, :-1])
            loss = criterion(out, data[1:, 1:])
            loss.backward()
            return loss

        print("loss", optimizer.step(closure).item())
        with torch.no_grad():
            pred = seq(data[:1, :-1], future=10)
            print("test", criterion(pred[:, :-10], data[:1, 1:]).item())
