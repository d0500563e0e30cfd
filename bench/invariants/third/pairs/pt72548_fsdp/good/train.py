"""Fully sharded training of a small tagger: flat parameters are split over the ranks."""
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
WORLD = 2
VOCAB, TAGS, WIDTH = 40, 5, 32
MAX_NORM = 0.2


class FlatShard(nn.Module):
    """Holds this rank's slice of the flattened parameters of one wrapped module."""

    def __init__(self, module):
        super().__init__()
        self.rank = dist.get_rank()
        self.names = [(n, p.shape, p.numel()) for n, p in module.named_parameters()]
        flat = torch.cat([p.detach().flatten() for p in module.parameters()])
        self.numel = flat.numel()
        flat = F.pad(flat, (0, -self.numel % WORLD))
        self.flat_param = nn.Parameter(flat.chunk(WORLD)[self.rank].clone())
        self.inner = (module.to("meta"),)
        self.full = None

    def unshard(self):
        parts = [torch.empty_like(self.flat_param) for _ in range(WORLD)]
        dist.all_gather(parts, self.flat_param.detach())
        return torch.cat(parts)

    def forward(self, *args):
        self.full = self.unshard().requires_grad_(torch.is_grad_enabled())
        views, offset = {}, 0
        for name, shape, numel in self.names:
            views[name] = self.full[offset:offset + numel].view(shape)
            offset += numel
        return functional_call(self.inner[0], views, args)

    def reduce_scatter_grad(self):
        grad = self.full.grad
        dist.all_reduce(grad)
        self.flat_param.grad = grad.chunk(WORLD)[self.rank].div(WORLD)
        self.full = None


class Mixer(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.conv = nn.Conv1d(d, d, 3, padding=1)
        self.out = nn.Linear(d, d)

    def forward(self, x):
        y = self.conv(self.norm(x).transpose(1, 2)).transpose(1, 2)
        return x + self.out(F.gelu(y))


class ShardedTagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = FlatShard(nn.Embedding(VOCAB, WIDTH))
        self.layers = nn.ModuleList(FlatShard(Mixer(WIDTH)) for _ in range(2))
        self.head = FlatShard(nn.Linear(WIDTH, TAGS))

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)

    def units(self):
        return [m for m in self.modules() if isinstance(m, FlatShard)]

    def sync_gradients(self):
        for unit in self.units():
            unit.reduce_scatter_grad()

    @torch.no_grad()
    def clip_grad_norm_(self, max_norm):
        total = torch.stack([p.grad.pow(2).sum() for p in self.parameters()]).sum()
        dist.all_reduce(total)
        norm = total.sqrt()
        scale = (max_norm / (norm + 1e-6)).clamp(max=1.0)
        for p in self.parameters():
            p.grad.mul_(scale)
        return norm

    def full_state_dict(self):
        return {i: unit.unshard()[: unit.numel] for i, unit in enumerate(self.units())}


def batch(step, rank, n=16, length=12):
    g = torch.Generator().manual_seed(SEED * 7919 + step * WORLD + rank)
    ids = torch.randint(0, VOCAB, (n, length), generator=g)
    left = F.pad(ids, (1, 0))[:, :-1]
    return ids, (ids + left) % TAGS


@torch.no_grad()
def evaluate(model, rank):
    model.eval()
    ids, tags = batch(10_000, rank, n=32)
    correct = (model(ids).argmax(-1) == tags).float().mean()
    dist.all_reduce(correct)
    model.train()
    return float(correct) / WORLD


def train(rank):
    torch.manual_seed(SEED)
    model = ShardedTagger()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    model.train()
    for step in range(STEPS):
        ids, tags = batch(step, rank)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(ids).flatten(0, 1), tags.flatten())
        loss.backward()
        model.sync_gradients()
        grad_norm = model.clip_grad_norm_(MAX_NORM)
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        if rank == 0:
            print(f"step {step} loss {mean.item() / WORLD:.4f} grad_norm {grad_norm.item():.3f}", flush=True)
    accuracy = evaluate(model, rank)
    state = model.full_state_dict()
    if rank == 0:
        print(f"accuracy {accuracy:.3f}")
        with tempfile.TemporaryDirectory() as out:
            torch.save(state, os.path.join(out, "full.pt"))


def entry(rank, store):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=WORLD)
    try:
        train(rank)
        dist.barrier()
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(entry, args=(os.path.join(folder, "store"),), nprocs=WORLD, start_method="fork")
