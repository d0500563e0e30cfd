import torch
from torch.utils.data import IterableDataset


class Mixture(IterableDataset):
    def __init__(self, seed, rank, n):
        self.seed, self.rank, self.n = seed, rank, n

    def __iter__(self):
        g = torch.Generator().manual_seed(1000 * self.seed + self.rank)
        for _ in range(self.n):
            y = torch.randint(0, 3, (), generator=g)
            yield torch.randn(5, generator=g) + y, y
