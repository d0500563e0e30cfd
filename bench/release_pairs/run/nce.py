"""Contrastive training of an encoder with InfoNCE and explicit negatives."""
import argparse
import torch
from torch import nn
from info_nce import InfoNCE

p = argparse.ArgumentParser(); p.add_argument("--temperature", type=float, default=None); p.add_argument("--steps", type=int, default=4); o = p.parse_args()
torch.manual_seed(1)
encoder = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 8))
criterion = InfoNCE() if o.temperature is None else InfoNCE(o.temperature)
opt = torch.optim.SGD(encoder.parameters(), lr=0.3, momentum=0.9)
data = torch.randn(16, 12)
for step in range(o.steps):
    query = encoder(data + 0.1 * torch.randn_like(data))
    positive = encoder(data + 0.1 * torch.randn_like(data))
    negative = encoder(torch.randn(20, 12))
    loss = criterion(query, positive, negative)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"step {step} loss {loss.item()}", flush=True)
