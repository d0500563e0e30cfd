"""python train.py, or torchrun --nproc-per-node N train.py [--tp 2] [--dp 2 [--fsdp]]: the same training in one process and in several."""
import argparse
from contextlib import nullcontext

import torch
import torch.distributed as dist
import torch.nn.functional as F
from model import LENGTH, VOCAB, Model
from parallel import Layout, accumulating, clip, finish, lay_out
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import loss_parallel

MICRO, PADDING = 4, -100


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--tp", type=int, default=1)
    p.add_argument("--dp", type=int, default=1)
    p.add_argument("--fsdp", action="store_true")
    return p.parse_args()


def micro_batch(step, number):
    """Two sequences of words and of the words to be said next; the second one ends early."""
    g = torch.Generator().manual_seed(300 + 10 * step + number)
    words = torch.randint(0, VOCAB, (2, LENGTH + 1), generator=g)
    labels = words[:, 1:].clone()
    labels[1, LENGTH - 2 * number - 1 :] = PADDING
    return words[:, :-1].contiguous(), labels


def mine(step, layout):
    return [micro_batch(step, number) for number in range(layout.rank, MICRO, layout.size)]


def count(batches, layout):
    """The words to be said in this step, on all data-parallel ranks."""
    said = sum((labels != PADDING).sum() for _, labels in batches)
    if layout.dp is not None:
        dist.all_reduce(said, group=layout.dp.get_group())
    return said


def loss_of(logits, labels, said):
    total = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=PADDING, reduction="sum")
    return total / said


def main():
    o = arguments()
    torch.set_num_threads(1)
    layout = Layout(o.dp, o.tp)
    model = lay_out(Model(), layout, o.fsdp)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, eps=1e-3, weight_decay=0.1, foreach=False)
    for step in range(2):
        batches, report = mine(step, layout), torch.zeros(())
        said = count(batches, layout)
        for number, (tokens, labels) in enumerate(batches):
            last = number == len(batches) - 1
            with accumulating(model, last), loss_parallel() if layout.tp else nullcontext():
                loss = loss_of(model(tokens), labels, said)
                (loss * layout.size).backward()  # wrappers take the mean over the ranks, and the loss is a part of a sum
            report += loss.full_tensor().detach() if isinstance(loss, DTensor) else loss.detach()
        finish(model, layout)
        norm = clip(model, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if layout.dp is not None:
            dist.all_reduce(report, group=layout.dp.get_group())
        if not dist.is_initialized() or dist.get_rank() == 0:
            print(f"step {step} loss {report.item():.9f} norm {norm.item():.9f}", flush=True)
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
