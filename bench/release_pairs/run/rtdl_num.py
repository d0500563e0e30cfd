"""Tabular regression over embedded numerical features."""
import argparse
import torch
from torch import nn
import rtdl_num_embeddings as rtdl

p = argparse.ArgumentParser()
p.add_argument("--kind", default="periodic")
o = p.parse_args()
torch.manual_seed(0)
x, y = torch.randn(32, 5), torch.randn(32, 1)
if o.kind == "periodic":
    embed = rtdl.PeriodicEmbeddings(5, 8, n_frequencies=12, lite=False)
    width = 40
elif o.kind == "lite":
    embed = rtdl.PeriodicEmbeddings(5, 8, n_frequencies=12, lite=True)
    width = 40
elif o.kind == "linear":
    embed = rtdl.LinearReLUEmbeddings(5, 8)
    width = 40
else:
    embed = rtdl.PiecewiseLinearEncoding(rtdl.compute_bins(x, n_bins=6))
    width = 30
model = nn.Sequential(embed, nn.Flatten(1), nn.Linear(width, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
for i in range(4):
    loss = nn.functional.mse_loss(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"step {i} loss {loss.item()}", flush=True)
