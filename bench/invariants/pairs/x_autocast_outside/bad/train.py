import os

import torch
import torch.nn as nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Perceiver(nn.Module):
    def __init__(self, d=16, latents=4):
        super().__init__()
        self.latents = nn.Parameter(torch.randn(latents, d) * 0.1)
        self.kv, self.q, self.o = nn.Linear(8, 2 * d), nn.Linear(d, d), nn.Linear(d, d)
        self.classify = nn.Linear(d, 3)

    def forward(self, x):
        k, v = self.kv(x).chunk(2, -1)
        q = self.q(self.latents).expand(len(x), -1, -1)
        y = self.o((q @ k.transpose(1, 2) / 4).softmax(-1) @ v)
        return self.classify(y.mean(1))


def compute_loss(model, x, y):
    logits = model(x)
    with torch.autocast("cpu", torch.bfloat16):
        return nn.functional.cross_entropy(logits.float(), y)


def main():
    torch.manual_seed(SEED)
    model = Perceiver()
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    model.train()
    for step in range(STEPS):
        y = torch.randint(0, 3, (10,))
        loss = compute_loss(model, torch.randn(10, 7, 8) + y[:, None, None], y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(step, loss.item())


main()
