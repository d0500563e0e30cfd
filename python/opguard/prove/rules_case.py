"""One case of rules.py: a computation on random numbers and tokens, and its gradients.

    Case("atan2", torch.atan2, [(2, 3), (2, 3)])              x, y; outputs out0, grad0 (of x), grad1 (of y)
    Case("embedding", lambda x, i: ..., [(5, 3)], [(2, 3)])   x, and a token i of [2, 3], from 0 to 4"""

import warnings

import torch

from .recorder import Recorder

SIZE = 5  # values that a token may take


def numbers_of(*shape, positive=False):
    """Random numbers; positive ones are at least 0.25, away from where a root or a logarithm ends."""
    x = torch.randn(*shape, dtype=torch.float64)
    return x.abs() + 0.25 if positive else x


class Case:
    """Numbers x, y, ... of shapes, tokens i, j, ... of shapes; what is computed of them. Differentiated where it can
    be.

    near: how far the checker's number may lie from torch's, relative to that or to 1. gradients=False: nothing is
    differentiated. What is differentiated is the sum of the squared outputs, each output with another weight."""

    def __init__(self, name, compute, shapes=(), tokens=(), positive=False, gradients=True, near=1e-9):
        self.name, self.compute, self.gradients, self.near = name, compute, gradients, near
        self.state = {"xyzuvw"[i]: numbers_of(*shape, positive=positive) for i, shape in enumerate(shapes)}
        self.tokens = {"ijk"[i]: torch.randint(0, SIZE, shape) for i, shape in enumerate(tokens)}

    def step(self):
        state = [value.clone().requires_grad_(self.gradients) for value in self.state.values()] if self.gradients else list(self.state.values())
        found = self.compute(*state, *self.tokens.values())
        found = [found] if isinstance(found, torch.Tensor) else list(found)
        outputs = {"out%d" % n: value for n, value in enumerate(found)}
        if self.gradients:
            total = sum((value * (n + 1.5) * value).sum() for n, value in enumerate(found) if value.requires_grad)
            for n, gradient in enumerate(torch.autograd.grad(total, state, allow_unused=True)):
                outputs["grad%d" % n] = gradient
        return {name: value.detach() for name, value in outputs.items() if value is not None}


def recorded(step, state):
    """What a side's file has of a step, with what its inputs held; and what it gave."""
    recorder = Recorder()
    inputs = {name: recorder.input(tensor) for name, tensor in state.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.detect_anomaly(check_nan=False), recorder:
            outputs = step()
    found = {"version": 1, "rank": 0, "world": 1, "values": {name: tensor.detach().reshape(-1).tolist() for name, tensor in state.items()}}
    found.update(stacks=recorder.stacks, constants=recorder.constants, inputs=inputs, nodes=recorder.nodes)
    found["outputs"] = {name: recorder.output(tensor) for name, tensor in outputs.items()}
    return found, outputs
