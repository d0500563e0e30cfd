"""torchrun --nproc-per-node 2 ddp.py: DistributedDataParallel over gloo, gradient accumulation with no_sync."""
import contextlib

import torch
import torch.distributed as dist
from gpt import GPT, next_token_loss
from loop import steps
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import clip_grad_norm_

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(8)
model = DistributedDataParallel(GPT(), bucket_cap_mb=0.05)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
generator = torch.Generator().manual_seed(100 + rank)
for step in range(steps()):
    optimizer.zero_grad()
    for last in (False, True):
        tokens = torch.randint(0, 128, (2, 17), generator=generator)
        with contextlib.nullcontext() if last else model.no_sync():
            loss = next_token_loss(model, tokens) / 2
            loss.backward()
    norm = clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    if rank == 0:
        print(f"step {step} loss {mean.item() / dist.get_world_size()!r} norm {norm.item()!r}", flush=True)
dist.destroy_process_group()
