"""The training as one loop. An average of the weights is the model's teacher: besides the words, it learns what the average says."""
import copy
import math

import torch
import torch.nn.functional as F
from net import Net, documents
from recipe import BETAS, DECAY, EPS, IGNORED, KEPT, LARGEST, PULL, RATE, ROW, SMOOTH, STEPS, WARM

torch.set_num_threads(1)
model = Net()
teacher = copy.deepcopy(model).requires_grad_(False)
matrices, vectors = [p for p in model.parameters() if p.ndim > 1], [p for p in model.parameters() if p.ndim < 2]
groups = [{"params": matrices, "weight_decay": DECAY}, {"params": vectors, "weight_decay": 0.0}]
optimizer = torch.optim.AdamW(groups, lr=RATE, betas=BETAS, eps=EPS, foreach=False)
for step in range(STEPS):
    rows = [[]]
    for document in documents(step):
        if sum(len(d) for d in rows[-1]) + len(document) > ROW:
            rows.append([])
        rows[-1].append(document)
    said = sum(len(d) - 1 for row in rows for d in row)
    report = torch.zeros(())
    for row in rows:
        words = torch.cat(row)
        places = torch.cat([torch.arange(len(d)) for d in row])
        owner = torch.cat([torch.full((len(d),), i) for i, d in enumerate(row)])
        labels = torch.cat([F.pad(d[1:], (0, 1), value=IGNORED) for d in row])
        mask = (owner[:, None] == owner).tril()
        logits, wanted = model(words, places, mask), teacher(words, places, mask)
        loss = F.cross_entropy(logits, labels, ignore_index=IGNORED, label_smoothing=SMOOTH, reduction="sum") / said
        there = labels != IGNORED
        pull = F.kl_div(logits[there].log_softmax(-1), wanted[there].log_softmax(-1), reduction="sum", log_target=True) / said
        loss = loss + PULL * pull
        loss.backward()
        report += loss.detach()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), LARGEST, foreach=False)
    rate = RATE * (step + 1) / WARM if step < WARM else RATE * 0.5 * (1 + math.cos(math.pi * (step + 1 - WARM) / (STEPS + 1 - WARM)))
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.step()
    optimizer.zero_grad()
    with torch.no_grad():
        for kept, p in zip(teacher.parameters(), model.parameters()):
            kept.mul_(KEPT).add_(p, alpha=1 - KEPT)
    print(f"step {step} loss {report.item():.9f} norm {norm.item():.9f}", flush=True)
