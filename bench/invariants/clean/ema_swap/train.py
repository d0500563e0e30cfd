"""Weights' moving average; evaluation swaps it in and the trained weights back."""
import contextlib
import os

import torch
import torch.nn as nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class ExponentialMovingAverage:
    def __init__(self, parameters, decay=0.9):
        self.parameters = [p for p in parameters if p.requires_grad]
        self.decay, self.updates = decay, 0
        self.shadow = [p.detach().clone() for p in self.parameters]

    @torch.no_grad()
    def update(self):
        self.updates += 1
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        for s, p in zip(self.shadow, self.parameters):
            s.sub_((1 - decay) * (s - p))

    @contextlib.contextmanager
    def average(self):
        kept = [p.detach().clone() for p in self.parameters]
        with torch.no_grad():
            for p, s in zip(self.parameters, self.shadow):
                p.copy_(s)
        try:
            yield
        finally:
            with torch.no_grad():
                for p, k in zip(self.parameters, kept):
                    p.copy_(k)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.EmbeddingBag(50, 16)
        self.fc = nn.Linear(16, 2)
        self.drop = nn.Dropout(0.3)

    def forward(self, ids):
        return self.fc(self.drop(self.embed(ids)))


def main():
    torch.manual_seed(SEED)
    net = Net()
    ema = ExponentialMovingAverage(net.parameters())
    opt = torch.optim.RAdam(net.parameters(), lr=1e-2)
    test = torch.randint(0, 50, (40, 6))
    for step in range(STEPS):
        net.train()
        ids = torch.randint(0, 50, (16, 6))
        loss = nn.functional.cross_entropy(net(ids), (ids.sum(1) > 150).long())
        opt.zero_grad()
        loss.backward()
        opt.step()
        ema.update()
        if step % 3 == 2:
            net.eval()
            with ema.average(), torch.no_grad():
                ok = (net(test).argmax(1) == (test.sum(1) > 150)).float().mean()
            print(step, f"loss {loss.item():.4f} accuracy of the average {ok.item():.3f}")


main()
