"""python train.py, or torchrun --nproc-per-node 2 train.py: a small classifier, four micro-batches a step."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

EPOCHS, MICRO_BATCHES = 2, 4


def main():
    torch.manual_seed(7)
    torch.set_num_threads(1)
    ranks, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))

    points = torch.randn(64, 16)
    labels = (points.sum(1) > 0).long()
    sampler = DistributedSampler(TensorDataset(points, labels), num_replicas=ranks, rank=rank)
    loader = DataLoader(sampler.dataset, batch_size=16, sampler=sampler)

    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 2))
    if ranks > 1:
        dist.init_process_group("gloo")
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        for batch, target in loader:
            total = 0.0
            for part, wanted in zip(batch.chunk(MICRO_BATCHES), target.chunk(MICRO_BATCHES)):
                loss = nn.functional.cross_entropy(model(part), wanted) / MICRO_BATCHES
                loss.backward()
                total += loss.item()
                nn.utils.clip_grad_norm_(model.parameters(), 0.2)
            optimizer.step()
            optimizer.zero_grad()
        if rank == 0:
            print(f"epoch {epoch} loss {total:.4f}")

    if ranks > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
