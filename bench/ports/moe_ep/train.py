"""python train.py, or torchrun --nproc-per-node 2 train.py: the same training, micro-batch by micro-batch or each rank with its own."""
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from moe import VOCAB, Model, rank, ranks

MICRO, LENGTH = 4, 12


def micro_batch(step, number):
    words = torch.randint(0, VOCAB, (2, LENGTH + 1), generator=torch.Generator().manual_seed(900 + 10 * step + number))
    return words[:, :-1].contiguous(), words[:, 1:].contiguous()


def finish(model):
    """The experts' gradients are of all ranks' rows already; the others are added up."""
    for p in model.parameters():
        if ranks() > 1 and not getattr(p, "own", False):
            dist.all_reduce(p.grad)
        p.grad.div_(MICRO)


def length(model):
    """Of the whole gradient: experts count on the rank that has them."""
    own = sum(p.grad.square().sum() for p in model.parameters() if getattr(p, "own", False))
    if ranks() > 1:
        dist.all_reduce(own)
    return (own + sum(p.grad.square().sum() for p in model.parameters() if not getattr(p, "own", False))).sqrt()


def main():
    torch.set_num_threads(1)
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, eps=1e-3, weight_decay=0.1, foreach=False)
    for step in range(3):
        report = torch.zeros(())
        for number in range(rank(), MICRO, ranks()):
            words, labels = micro_batch(step, number)
            loss = F.cross_entropy(model(words).flatten(0, 1), labels.flatten())
            loss.backward()
            report += loss.detach() / MICRO
        finish(model)
        norm = length(model)
        optimizer.step()
        optimizer.zero_grad()
        for experts in model.experts:
            experts.router.even_out()
        if ranks() > 1:
            dist.all_reduce(report)
        if rank() == 0:
            print(f"step {step} loss {report.item():.9f} norm {norm.item():.9f}", flush=True)
    if ranks() > 1:
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
