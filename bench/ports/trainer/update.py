"""From gradients to weights: loss scale, clipping, rate, AdamW, the average."""
import copy
import math

import torch
from recipe import BETAS, DECAY, EPS, KEPT, LARGEST, RATE, STEPS, WARM


class Scaler:
    """The loss is made large, as half precision wants it, and the gradients small again. By a power of two nothing is rounded."""
    SIZE = 2.0**12

    def backward(self, loss):
        (loss * self.SIZE).backward()

    def unscale(self, parameters):
        for p in parameters:
            p.grad.div_(self.SIZE)


def length(parameters):
    return torch.stack([p.grad.square().sum() for p in parameters]).sum().sqrt()


def clip(parameters):
    """The gradients' length before they are made shorter."""
    parameters = list(parameters)
    before = length(parameters)
    if before > LARGEST:
        for p in parameters:
            p.grad.mul_(LARGEST / (before + 1e-6))
    return before


class Schedule:
    """Up in a line, down as a cosine."""
    def __init__(self):
        self.taken = 0

    def rate(self):
        """Of the step that is to be taken, the first of which is 1."""
        number = self.taken + 1
        if number <= WARM:
            return RATE * number / WARM
        return RATE * 0.5 * (1 + math.cos(math.pi * (number - WARM) / (STEPS + 1 - WARM)))

    def advance(self):
        self.taken += 1


class Decoupled:
    """AdamW: matrices decay, vectors do not."""
    def __init__(self, model):
        self.number = 0
        self.rows = [(p, torch.zeros_like(p), torch.zeros_like(p), self.decay(name, p)) for name, p in model.named_parameters()]

    @staticmethod
    def decay(name, p):
        return DECAY if p.ndim > 1 else 0.0

    @torch.no_grad()
    def step(self, rate):
        self.number += 1
        first, second = BETAS
        for p, mean, square, decay in self.rows:
            mean.mul_(first).add_(p.grad, alpha=1 - first)
            square.mul_(second).add_(p.grad.square(), alpha=1 - second)
            size = (square / (1 - second**self.number)).sqrt() + EPS
            p.mul_(1 - rate * decay)
            p.sub_(mean / (1 - first**self.number) / size, alpha=rate)
            p.grad = None


class Average:
    """Of the weights after each step."""
    def __init__(self, model):
        self.model = copy.deepcopy(model).requires_grad_(False)

    @torch.no_grad()
    def follow(self, model):
        for kept, p in zip(self.model.parameters(), model.parameters()):
            kept.lerp_(p, 1 - KEPT)
