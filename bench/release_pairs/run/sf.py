"""A small classifier trained with a schedule-free optimizer, evaluated between epochs."""
import argparse
import torch
from torch import nn
import schedulefree

p = argparse.ArgumentParser(); p.add_argument("--kind", default="adamw"); p.add_argument("--steps", type=int, default=5)
p.add_argument("--warmup", type=int, default=0); p.add_argument("--foreach", type=int, default=1); o = p.parse_args()
torch.manual_seed(3)
model = nn.Sequential(nn.Linear(10, 20), nn.Tanh(), nn.Linear(20, 3))
if o.kind == "adamw":
    opt = schedulefree.AdamWScheduleFree(model.parameters(), lr=0.01, weight_decay=0.01, warmup_steps=o.warmup, foreach=bool(o.foreach))
elif o.kind == "sgd":
    opt = schedulefree.SGDScheduleFree(model.parameters(), lr=0.5, warmup_steps=o.warmup)
else:
    opt = schedulefree.ScheduleFreeWrapper(torch.optim.SGD(model.parameters(), lr=0.5), momentum=0.9, weight_decay_at_y=0.01)
x, y = torch.randn(32, 10), torch.randint(0, 3, (32,))
for step in range(o.steps):
    model.train(); opt.train()
    loss = nn.functional.cross_entropy(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"step {step} loss {loss.item()}", flush=True)
model.eval(); opt.eval()
with torch.no_grad():
    print("final", nn.functional.cross_entropy(model(x), y).item())
