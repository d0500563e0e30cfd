import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Policy(nn.Module):
    def __init__(self, vocab=20, d=16):
        super().__init__()
        self.embed = nn.Embedding(vocab, d)
        self.rnn = nn.GRU(d, d, batch_first=True)
        self.out = nn.Linear(d, vocab)

    def forward(self, ids):
        return self.out(self.rnn(self.embed(ids))[0])


@torch.no_grad()
def rollout(policy, n, length, g):
    ids = torch.randint(0, 20, (n, 1), generator=g)
    for _ in range(length):
        p = policy(ids)[:, -1].softmax(-1)
        ids = torch.cat([ids, torch.multinomial(p, 1, generator=g)], 1)
    return ids


def main(rank, store):
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2)
    torch.manual_seed(SEED)
    model = DDP(Policy())
    opt = torch.optim.AdamW(model.parameters(), lr=5e-3)
    g = torch.Generator().manual_seed(10 * SEED + rank)
    for step in range(STEPS):
        plain = model.module
        plain.eval()
        ids = rollout(plain, 6, 7, g)
        reward = (ids[:, 1:] == ids[:, :-1] + 1).float().mean(1)
        advantage = (reward - reward.mean()) / (reward.std() + 1e-4)
        model.train()
        logits = plain(ids[:, :-1])
        logp = logits.log_softmax(-1).gather(-1, ids[:, 1:, None]).squeeze(-1)
        loss = -(logp * advantage[:, None]).mean()
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        if rank == 0:
            print(step, loss.item(), reward.mean().item(), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(main, args=(os.path.join(folder, "store"),), nprocs=2, start_method="fork")
