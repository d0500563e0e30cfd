"""python train.py, or torchrun --nproc-per-node N train.py --tp 2 [--sp [--scatter]] --pp 2 [--in-first N] --cp 2 --dp 2 [--moe] [--zero] [--checkpoint]: the same training."""
import argparse

import torch
import torch.distributed as dist
from groups import make_groups
from model import VOCAB, Model, loss_of, shape_between
from pipeline import Stage
from update import ShardedAdamW, clip, finish_gradients

BATCH, LENGTH, MICRO = 2, 16, 4


def arguments():
    p = argparse.ArgumentParser()
    for name in ("dp", "pp", "cp", "tp"):
        p.add_argument(f"--{name}", type=int, default=1)
    for name in ("sp", "scatter", "moe", "zero", "checkpoint"):
        p.add_argument(f"--{name}", action="store_true")
    p.add_argument("--in-first", type=int, default=0, metavar="N", help="layers in the first stage of a pipeline")
    p.add_argument("--clip", type=float, default=1.0)
    return p.parse_args()


def micro_batch(step, number):
    tokens = torch.randint(0, VOCAB, (BATCH, LENGTH + 1), generator=torch.Generator().manual_seed(700 + 10 * step + number))
    return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


def batches(step, groups):
    """Each data-parallel rank takes every so many-th; a context-parallel one its part of the sequence."""
    dp, cp = groups["dp"], groups["cp"]
    found = []
    for number in range(dp.rank, MICRO, dp.size):
        tokens, labels = micro_batch(step, number)
        found.append((cp.mine(tokens, 1), cp.mine(labels, 1)))
    return found


def main():
    o = arguments()
    torch.set_num_threads(1)
    groups = make_groups(dp=o.dp, pp=o.pp, cp=o.cp, tp=o.tp)
    groups["tp"].scatter = o.scatter
    model = Model(groups, o)
    for p in model.parameters():
        p.cut = getattr(p, "cut", False)
    if o.zero:
        optimizer = ShardedAdamW(model.parameters(), groups["dp"])
    else:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, eps=1e-3, weight_decay=0.1, foreach=False)
    stage = Stage(model, groups["pp"])
    places = groups["cp"].mine(torch.arange(LENGTH), 0)
    shape, _ = shape_between(BATCH, LENGTH // o.cp, groups, o)
    for step in range(2):
        for p in model.parameters():
            p.grad = None
        report = stage.run(batches(step, groups), places, shape, lambda logits, labels: loss_of(logits, labels, groups["tp"]))
        finish_gradients(model, groups, o.sp)
        norm = clip(model, groups, o.clip)
        optimizer.step()
        for name in ("pp", "dp", "cp"):
            groups[name].sum(report)
        if not dist.is_initialized() or dist.get_rank() == 0:
            print(f"step {step} loss {report.item() / (o.dp * o.cp):.9f} norm {norm.item():.9f}", flush=True)
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
