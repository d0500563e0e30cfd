"""From gradients to weights: clipping, rates by layer and step, Nesterov's momentum, the average."""
import copy
import math

import torch
from net import BLOCKS, depth
from recipe import DECAY, KEPT, LARGEST, LAST, LAYER, MOMENTUM, RATE, STEPS, WARM


def clip(parameters):
    """The gradients' norm; from then on it is LARGEST at most."""
    grads = [p.grad for p in parameters]
    norm = sum(g.square().sum() for g in grads).sqrt()
    if norm > LARGEST:
        for g in grads:
            g.mul_(LARGEST / (norm + 1e-6))
    return norm


class Schedule:
    """What of the rate is used: up in a line, down along half a cosine."""
    def __init__(self):
        self.done = 0

    def factor(self):
        if self.done < WARM:
            return (self.done + 1) / WARM
        return LAST + (1 - LAST) * 0.5 * (1 + math.cos(math.pi * (self.done - WARM) / (STEPS - WARM)))

    def advance(self):
        self.done += 1


class Row:
    """A parameter, its speed, and what is its own in the update."""
    def __init__(self, name, p):
        self.p, self.speed = p, None
        self.rate = RATE * LAYER ** (BLOCKS + 1 - depth(name))
        self.decay = DECAY if self.decays(name, p) else 0.0

    @staticmethod
    def decays(name, p):
        return p.ndim > 1 and name != "places"


class Nesterov:
    def __init__(self, model):
        self.rows = [Row(name, p) for name, p in model.named_parameters()]

    @torch.no_grad()
    def step(self, factor):
        for row in self.rows:
            pull = row.p.grad + row.decay * row.p
            row.speed = pull.clone() if row.speed is None else row.speed * MOMENTUM + pull
            row.p -= factor * row.rate * (pull + MOMENTUM * row.speed)
            row.p.grad = None


class Average:
    """Of the weights after each step. The first ones are its own; then it keeps more of itself from step to step."""
    def __init__(self, model):
        self.model, self.steps = copy.deepcopy(model), 0

    @torch.no_grad()
    def follow(self, model):
        for kept, p in zip(self.model.parameters(), model.parameters()):
            kept.copy_(p if self.steps == 0 else self.between(kept, p))
        self.steps += 1

    def between(self, kept, p):
        keep = min(KEPT, (1 + self.steps) / (4 + self.steps))
        return keep * kept + (1 - keep) * p
