import copy
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class MoCo(nn.Module):
    def __init__(self, encoder, dim, size=64, momentum=0.97, temperature=0.2):
        super().__init__()
        self.m, self.t = momentum, temperature
        self.encoder_q = encoder
        self.encoder_k = copy.deepcopy(encoder)
        for p in self.encoder_k.parameters():
            p.requires_grad = False
        self.register_buffer("queue", F.normalize(torch.randn(dim, size), dim=0))
        self.register_buffer("at", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def momentum_update(self):
        for q, k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            k.data = k.data * self.m + q.data * (1 - self.m)

    @torch.no_grad()
    def enqueue(self, keys):
        n, at = len(keys), int(self.at)
        self.queue[:, at : at + n] = keys.T
        self.at[0] = (at + n) % self.queue.shape[1]

    def forward(self, im_q, im_k):
        q = F.normalize(self.encoder_q(im_q), dim=1)
        with torch.no_grad():
            self.momentum_update()
            k = F.normalize(self.encoder_k(im_k), dim=1)
        positive = (q * k).sum(1, keepdim=True)
        negative = q @ self.queue.clone().detach()
        logits = torch.cat([positive, negative], 1) / self.t
        self.enqueue(k)
        return logits, torch.zeros(len(logits), dtype=torch.long)


def augment(x):
    return (x + 0.1 * torch.randn_like(x)) * (torch.rand(len(x), 1, 1, 1) * 0.4 + 0.8)


def main():
    torch.manual_seed(SEED)
    encoder = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(128, 8))
    model = MoCo(encoder, 8)
    images = torch.randn(128, 3, 8, 8)
    opt = torch.optim.SGD(model.encoder_q.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-4)
    model.train()
    for step in range(STEPS):
        x = images[torch.randperm(128)[:16]]
        logits, labels = model(augment(x), augment(x))
        loss = F.cross_entropy(logits, labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(step, loss.item())


main()
