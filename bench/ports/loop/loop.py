"""The training as one loop, of torch's own parts. At last the average of the weights sees a batch that was not trained on."""
import math

import torch
import torch.nn.functional as F
from net import BLOCKS, Net, batch, depth
from recipe import BATCH, CLASSES, DECAY, KEPT, LARGEST, LAST, LAYER, MIX, MOMENTUM, RATE, SMOOTH, STEPS, WARM

torch.set_num_threads(1)
torch.manual_seed(3)
model = Net()
groups = []
for name, p in model.named_parameters():
    decay = 0.0 if p.ndim == 1 or name == "places" else DECAY
    groups.append({"params": [p], "weight_decay": decay, "lr": RATE * LAYER ** (BLOCKS + 1 - depth(name))})
optimizer = torch.optim.SGD(groups, lr=RATE, momentum=MOMENTUM, nesterov=True, foreach=False)
fall = 0.5 * (1 - LAST)
scheduler = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda n: (n + 1) / WARM if n < WARM else LAST + fall * (1 + math.cos(math.pi * (n - WARM) / (STEPS - WARM))))  # fmt: skip
average = torch.optim.swa_utils.AveragedModel(model, avg_fn=lambda old, new, n: torch.lerp(new, old, min(KEPT, (1 + n) / (4 + n)).item()))
for step in range(STEPS):
    images, labels = batch(step)
    part = torch.distributions.Beta(MIX, MIX).sample()
    images = part * images + (1 - part) * images.flip(0)
    targets = F.one_hot(labels, CLASSES).float() * (1 - SMOOTH) + SMOOTH / CLASSES
    targets = part * targets + (1 - part) * targets.flip(0)
    loss = F.cross_entropy(model(images), targets)
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), LARGEST, foreach=False)
    optimizer.step()
    optimizer.zero_grad()
    scheduler.step()
    average.update_parameters(model)
    print(f"step {step} loss {loss.item():.9f} norm {norm.item():.9f}", flush=True)
with torch.no_grad():
    images, labels = batch(STEPS)
    loss = F.cross_entropy(average(images), labels)
    norm = torch.nn.utils.get_total_norm(average.module.parameters(), foreach=False)
print(f"step {STEPS} loss {loss.item():.9f} norm {norm.item():.9f}", flush=True)
