"""python train.py [--bf16] [--sdpa] [--flash] [--compile] [--fused] [--together]: the same training in float32 and formulas, or not."""
import argparse

import torch
import torch.nn.functional as F
from flash import blocked
from model import VOCAB, Model, formula, fused

MICRO, LENGTH = 2, 300


def arguments():
    p = argparse.ArgumentParser()
    for name in ("bf16", "sdpa", "flash", "compile", "fused", "together"):
        p.add_argument(f"--{name}", action="store_true")
    return p.parse_args()


def batch(step, number):
    tokens = torch.randint(0, VOCAB, (1, LENGTH + 1), generator=torch.Generator().manual_seed(step * 10 + number))
    return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


def whole_batch(step):
    """All micro-batches of a step in one."""
    tokens, labels = zip(*(batch(step, number) for number in range(MICRO)))
    return torch.cat(tokens), torch.cat(labels)


def make_optimizer(parameters, o):
    if o.fused:
        return torch.optim.AdamW(parameters, lr=1e-3, eps=1e-3, weight_decay=0.1, fused=True)
    return torch.optim.AdamW(parameters, lr=1e-3, eps=1e-3, weight_decay=0.1, foreach=False)


def loss_of(logits, labels):
    return F.cross_entropy(logits.float().flatten(0, 1), labels.flatten()) / MICRO


def whole_loss(logits, labels):
    return F.cross_entropy(logits.float().flatten(0, 1), labels.flatten())


def train(o):
    model = Model(fused if o.sdpa else blocked if o.flash else formula)
    if o.bf16:
        model.bfloat16()
    forward = torch.compile(model) if o.compile else model
    optimizer = make_optimizer(model.parameters(), o)
    for step in range(2):
        report = torch.zeros(())
        for number in range(1 if o.together else MICRO):
            tokens, labels = whole_batch(step) if o.together else batch(step, number)
            loss = (whole_loss if o.together else loss_of)(forward(tokens), labels)
            loss.backward()
            report += loss.detach()
        norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step} loss {report.item():.9f} norm {norm.item():.9f}", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    train(arguments())
