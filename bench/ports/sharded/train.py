"""python train.py, or torchrun --nproc-per-node N train.py [--tp 2] [--fsdp 2 | --ddp 2]: the same training in one process and in several."""
import argparse

import torch
import torch.distributed as dist
import torch.nn.functional as F
from layout import Layout, raw, whole
from model import LENGTH, VOCAB, Model
from torch.distributed.tensor import DTensor, Partial, Replicate

STEPS, MICRO, NOTHING, LARGEST = 3, 4, 0, 0.5  # NOTHING: a word that is never said
CALM = 0.01  # how strongly the logarithm of the sum over words is pulled to 0


def arguments():
    p = argparse.ArgumentParser()
    for name in ("tp", "fsdp", "ddp"):
        p.add_argument(f"--{name}", type=int, default=1)
    return p.parse_args()


def micro_batch(step, number):
    """Two sequences, and the words that come next; in some the first few are a question that is not learned."""
    g = torch.Generator().manual_seed(4100 + 10 * step + number)
    words = 1 + (torch.rand(2, LENGTH + 1, generator=g).square() * (VOCAB - 1)).long()  # some words are much more frequent
    labels = words[:, 1:].clone()
    labels[0, : 3 * number] = NOTHING
    return words[:, :-1].contiguous(), labels


def my_batches(step, layout):
    return [micro_batch(step, number) for number in range(layout.rank, MICRO, layout.data)]


def loss_of(logits, labels, seen, said):
    """The part of these words in the loss of the step, which has `said` words."""
    rare = (1 + seen).rsqrt()
    missed = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), weight=rare, ignore_index=NOTHING, reduction="sum")
    total = whole(logits).logsumexp(-1)
    calm = total[labels != NOTHING].square().sum()
    return (whole(missed) + CALM * calm) / said


def frequencies(batches):
    labels = torch.cat([labels.flatten() for _, labels in batches])
    return torch.bincount(labels[labels != NOTHING], minlength=VOCAB).float()


def square_of(grad):
    """The sum of squares. Over ranks that have other parts of the gradient it is a sum, too; a whole one counts once."""
    if not isinstance(grad, DTensor):
        return grad.square().sum()
    square = grad.to_local().square().sum()
    parts = [Replicate() if p.is_replicate() else Partial() for p in grad.placements]
    return DTensor.from_local(square, grad.device_mesh, parts).full_tensor()


def clip(parameters):
    """The norm of all gradients, before those are scaled down to LARGEST."""
    grads = [p.grad for p in parameters]
    norm = torch.stack([square_of(g) for g in grads]).sum().sqrt()
    scale = (LARGEST / norm).clamp(max=1.0)
    for g in grads:
        g.mul_(scale.item())
    return norm


def step_of(model, optimizer, layout, step):
    batches = my_batches(step, layout)
    counts, report = frequencies(batches), torch.zeros(())
    said = layout.add_up(counts.sum())
    for number, (tokens, labels) in enumerate(batches):
        with layout.accumulating(model, number == len(batches) - 1), layout.losses():
            logits = model(tokens)
            loss = loss_of(logits, labels, raw(model).seen, said)
            (loss * layout.averages).backward()
        report += loss.detach()
    parameters = list(model.parameters())
    for p in parameters:
        if isinstance(p, DTensor):
            p.grad = p.grad.redistribute(placements=p.placements)  # a norm's weight is whole on each rank, its gradient a sum's part
    norm = clip(parameters)
    optimizer.step()
    optimizer.zero_grad()
    raw(model).seen += layout.add_up(counts)
    return layout.add_up(report), norm


def main():
    o = arguments()
    torch.set_num_threads(1)
    layout = Layout(max(o.fsdp, o.ddp), o.tp, "ddp" if o.ddp > 1 else "fsdp")
    model = layout.wrap(Model())
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, eps=1e-3, weight_decay=0.1, foreach=False)
    for step in range(STEPS):
        loss, norm = step_of(model, optimizer, layout, step)
        if layout.says():
            print(f"step {step} loss {loss.item():.9f} norm {norm.item():.9f}", flush=True)
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
