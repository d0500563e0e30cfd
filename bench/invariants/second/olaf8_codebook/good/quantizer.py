from typing import NamedTuple

import torch
from torch import nn


class Quantized(NamedTuple):
    z_q: torch.Tensor  # straight through: the values of the codes, passed on with the gradient of the input
    codes: torch.Tensor
    indices: torch.Tensor


class VectorQuantizer(nn.Module):
    def __init__(self, n_codes, width):
        super().__init__()
        self.codebook = nn.Embedding(n_codes, width)
        nn.init.uniform_(self.codebook.weight, -1.0, 1.0)

    def forward(self, x):
        with torch.no_grad():
            indices = torch.cdist(x, self.codebook.weight).argmin(-1)
        codes = self.codebook(indices)
        return Quantized(x + (codes - x).detach(), codes, indices)
