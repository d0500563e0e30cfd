"""Behaviour cloning from recorded episodes on two data-parallel ranks."""
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import BatchSampler, DataLoader, Dataset, Sampler

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
WORLD, BATCH, EPISODES, FRAMES = 2, 8, 6, 10


class EpisodeDataset(Dataset):
    """Frames of a reaching arm: joint angles, the goal, and the action of an expert."""

    def __init__(self, seed):
        g = torch.Generator().manual_seed(seed)
        self.state, self.action, self.episode_from, self.episode_to = [], [], [], []
        for _ in range(EPISODES):
            self.episode_from.append(len(self.state))
            joints, goal = torch.randn(4, generator=g), torch.randn(4, generator=g)
            for _ in range(FRAMES):
                action = 0.5 * (goal - joints)
                self.state.append(torch.cat([joints, goal]))
                self.action.append(action)
                joints = joints + 0.3 * action + 0.02 * torch.randn(4, generator=g)
            self.episode_to.append(len(self.state))

    def __len__(self):
        return len(self.state)

    def __getitem__(self, i):
        return {"index": i, "observation.state": self.state[i], "action": self.action[i]}


class EpisodeAwareSampler(Sampler):
    """Frames of all the episodes without the last ones of each."""

    def __init__(self, starts, ends, drop_n_last_frames=2, shuffle=True, generator=None):
        self.indices = [i for a, b in zip(starts, ends) for i in range(a, b - drop_n_last_frames)]
        self.shuffle = shuffle
        self.generator = generator

    def __len__(self):
        return len(self.indices)

    def __iter__(self):
        if self.shuffle:
            for i in torch.randperm(len(self.indices), generator=self.generator):
                yield self.indices[i]
        else:
            yield from self.indices


class BatchSamplerShard(Sampler):
    """Every WORLD-th batch of a batch sampler, beginning with the one of this rank."""

    def __init__(self, batch_sampler, rank, world):
        self.batch_sampler, self.rank, self.world = batch_sampler, rank, world

    def __len__(self):
        return len(self.batch_sampler) // self.world

    def __iter__(self):
        for i, batch in enumerate(self.batch_sampler):
            if i % self.world == self.rank:
                yield batch


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(8, 64), nn.LayerNorm(64), nn.ReLU(), nn.Dropout(0.05),
                                   nn.Linear(64, 64), nn.ReLU())
        self.head = nn.Linear(64, 4)

    def forward(self, batch):
        state = batch["observation.state"]
        if self.training:
            state = state + 0.01 * torch.randn_like(state)
        return F.mse_loss(self.head(self.trunk(state)), batch["action"])


def make_loader(dataset, rank):
    sampler = EpisodeAwareSampler(dataset.episode_from, dataset.episode_to)
    shard = BatchSamplerShard(BatchSampler(sampler, BATCH, drop_last=True), rank, WORLD)
    return DataLoader(dataset, batch_sampler=shard)


@torch.no_grad()
def evaluate(policy, dataset):
    policy.eval()
    losses = [policy(batch).item() for batch in DataLoader(dataset, batch_size=20)]
    policy.train()
    return sum(losses) / len(losses)


def train(rank, root):
    torch.manual_seed(SEED)
    dataset = EpisodeDataset(SEED)
    model = DistributedDataParallel(Policy())
    torch.manual_seed(SEED * 100 + rank)
    loader = make_loader(dataset, rank)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    model.train()
    step, epoch = 0, 0
    while step < STEPS:
        for batch in loader:
            optimizer.zero_grad()
            loss = model(batch)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 10.0)
            optimizer.step()
            mean = loss.detach().clone()
            dist.all_reduce(mean)
            if rank == 0:
                print(f"epoch {epoch} step {step} loss {mean.item() / WORLD:.4f}", flush=True)
            step += 1
            if step == STEPS:
                break
        epoch += 1
    if rank == 0:
        print(f"eval loss {evaluate(model.module, EpisodeDataset(SEED + 5)):.4f}")
        torch.save(model.module.state_dict(), os.path.join(root, "policy.pt"))


def entry(rank, root):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{root}/store", rank=rank, world_size=WORLD)
    try:
        train(rank, root)
        dist.barrier()
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as root:
        mp.start_processes(entry, args=(root,), nprocs=WORLD, start_method="fork")
