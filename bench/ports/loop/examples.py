"""From a batch to micro-batches: mixing, smoothed labels, parts."""
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from recipe import CLASSES, MIX, SMOOTH

MOST = 5  # images in a micro-batch


@dataclass
class Examples:
    images: torch.Tensor
    targets: torch.Tensor

    def __len__(self):
        return len(self.images)


def smoothed(labels):
    """Chances: SMOOTH of each is shared out among all classes."""
    return F.one_hot(labels, CLASSES) * (1 - SMOOTH) + SMOOTH / CLASSES


class Mixer:
    """Every image is laid over another one of the batch, and so are the two labels."""
    def __init__(self):
        self.sizes = torch.distributions.Beta(MIX, MIX)

    def __call__(self, images, labels):
        share = self.sizes.sample()
        targets = smoothed(labels)
        return Examples(torch.lerp(images.flip(0), images, share), torch.lerp(targets.flip(0), targets, share))


def micro_batches(examples):
    """Parts of at most MOST examples; the last one is smaller."""
    for first in range(0, len(examples), MOST):
        part = slice(first, first + MOST)
        yield Examples(examples.images[part], examples.targets[part])
