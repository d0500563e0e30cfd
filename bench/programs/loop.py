"""The training loop the programs share: AdamW, clipping, a warm-up schedule, two micro-batches a step."""
import sys

import torch
from torch.nn.utils import clip_grad_norm_


def steps():
    return int(sys.argv[1]) if len(sys.argv) > 1 else 2


def train(model, micro_batches, optimizer=None, loss_of=None):
    """micro_batches: a list of dicts of keyword arguments, taken in turn; loss_of(model, micro_batch) -> scalar tensor."""
    optimizer = optimizer or torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 4))
    loss_of = loss_of or (lambda model, batch: model(**batch).loss)
    model.train()
    for step in range(steps()):
        optimizer.zero_grad()
        total = 0.0
        for batch in micro_batches:
            loss = loss_of(model, batch) / len(micro_batches)
            loss.backward()
            total += loss.item()
        norm = clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        print(f"step {step} loss {total!r} norm {norm.item()!r}", flush=True)
