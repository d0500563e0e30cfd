"""Keyword spotting with a convolutional net on two ranks; the run is stopped half way and goes on from its file."""

import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
WORLD, BATCH, WORDS, BANDS, FRAMES = 2, 8, 5, 10, 16


def utterances(n):
    generator = torch.Generator().manual_seed(SEED)
    patterns = torch.randn(WORDS, BANDS, FRAMES, generator=generator)
    words = torch.randint(0, WORDS, (n,), generator=generator)
    return TensorDataset(patterns[words] + 1.5 * torch.randn(n, BANDS, FRAMES, generator=generator), words)


class Spotter(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.enter = nn.Conv1d(BANDS, width, 5, padding=2)
        self.norm = nn.GroupNorm(4, width)
        self.again = nn.Conv1d(width, width, 3, stride=2, padding=1)
        self.classify = nn.Linear(width, WORDS)

    def forward(self, x):
        x = torch.relu(self.norm(self.enter(x)))
        return self.classify(torch.relu(self.again(x)).mean(2))


class Trainer:
    def __init__(self, rank, total, resume_from=None):
        self.rank = rank
        torch.manual_seed(SEED)
        model = Spotter()
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        self.scheduler = LambdaLR(self.optimizer, lambda step: min((step + 1) / 3, (total - step) / total))
        if resume_from is not None:
            state = torch.load(resume_from)
            model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.scheduler.load_state_dict(state["scheduler"])
        self.model = DistributedDataParallel(model)
        data = utterances(WORLD * BATCH * 4)
        self.sampler = DistributedSampler(data, num_replicas=WORLD, rank=rank, seed=SEED)
        self.loader = DataLoader(data, batch_size=BATCH, sampler=self.sampler)

    def save(self, path):
        if self.rank == 0:
            state = {
                "model": self.model.module.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "scheduler": self.scheduler.state_dict(),
            }
            torch.save(state, path)
        dist.barrier()

    def train(self, epochs):
        self.model.train()
        for epoch in epochs:
            self.sampler.set_epoch(epoch)
            for x, y in self.loader:
                lr = self.scheduler.get_last_lr()[0]
                loss = nn.functional.cross_entropy(self.model(x), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.scheduler.step()
                dist.all_reduce(loss.detach_())
                if self.rank == 0:
                    print(f"epoch {epoch} lr {lr:.5f} loss {loss.item() / WORLD:.5f}", flush=True)


def main(rank, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=WORLD)
    path = os.path.join(folder, "last.pt")
    epochs = max(2, STEPS // 4)
    half = epochs // 2
    trainer = Trainer(rank, epochs * 4)
    trainer.train(range(half))
    trainer.save(path)
    trainer = Trainer(rank, epochs * 4, resume_from=path)
    trainer.train(range(half, epochs))
    trainer.save(path)
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(main, args=(folder,), nprocs=WORLD, start_method="fork")
