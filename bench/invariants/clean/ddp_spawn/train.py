import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Lm(nn.Module):
    def __init__(self, vocab=32, d=16):
        super().__init__()
        self.embed = nn.Embedding(vocab, d)
        self.block = nn.TransformerEncoderLayer(d, 2, 32, dropout=0.1, batch_first=True)
        self.unused = nn.Linear(d, d)  # kept for old checkpoints
        self.out = nn.Linear(d, vocab)

    def forward(self, ids):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.size(1))
        return self.out(self.block(self.embed(ids), src_mask=mask, is_causal=True))


def main(rank, world, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(world))
    seed, steps = int(os.environ.get("SEED", "0")), int(os.environ.get("STEPS", "8"))
    dist.init_process_group("gloo")
    torch.manual_seed(seed)
    model = DDP(Lm(), find_unused_parameters=True)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    sched = torch.optim.lr_scheduler.PolynomialLR(opt, total_iters=steps)
    data = torch.Generator().manual_seed(1000 * seed + rank)
    accumulate = 2
    model.train()
    for step in range(steps):
        for micro in range(accumulate):
            start = torch.randint(0, 32, (4, 1), generator=data)
            ids = (start + 5 * torch.arange(9)) % 32
            model.require_backward_grad_sync = micro == accumulate - 1
            loss = nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()) / accumulate
            loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
        opt.zero_grad()
        mean = loss.detach().clone() * accumulate
        dist.all_reduce(mean)
        if rank == 0:
            print(step, mean.item() / world, flush=True)
            if step == steps - 1:
                torch.save(model.module.state_dict(), os.devnull)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(main, args=(2, free_port()), nprocs=2)
