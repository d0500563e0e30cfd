"""What every program here does alike: its command line, its steps, and the digest of what it trained."""

import argparse
import hashlib

import torch


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compile", metavar="BACKEND", help="by torch.compile")
    parser.add_argument("--steps", type=int, default=2)
    options = parser.parse_args()
    torch.manual_seed(3)
    torch.set_num_threads(1)
    return options


def tell_loss(step, loss):
    print("step", step, "loss", loss.item().hex(), flush=True)


def tell_model(model, optimizer):
    """One digest over every parameter, gradient, buffer and optimizer state."""
    total = hashlib.sha256()
    state = [value for of_one in optimizer.state.values() for value in of_one.values() if isinstance(value, torch.Tensor)]
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    for tensor in [*model.parameters(), *gradients, *model.buffers(), *state]:
        total.update(tensor.detach().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    print("model", total.hexdigest())
