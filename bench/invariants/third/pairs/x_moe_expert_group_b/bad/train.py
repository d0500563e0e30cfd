"""Mixture of experts on four ranks: expert parallel 2, each expert in two replicas."""
import os
import socket
import types

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
WORLD, EP = 4, 2
EXPERTS, DIM, VOCAB, SEQ, BATCH = 4, 16, 12, 8, 8


def build_groups(rank):
    groups = types.SimpleNamespace(world=dist.group.WORLD)
    for start in range(0, WORLD, EP):
        ranks = list(range(start, start + EP))
        group = dist.new_group(ranks)
        if rank in ranks:
            groups.expert = group
    for offset in range(EP):
        ranks = list(range(offset, WORLD, EP))
        group = dist.new_group(ranks)
        if rank in ranks:
            groups.expert_data = group
    return groups


class AllToAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx, group, x):
        ctx.group = group
        out = torch.empty_like(x)
        dist.all_to_all_single(out, x.contiguous(), group=group)
        return out

    @staticmethod
    def backward(ctx, grad):
        return None, AllToAll.apply(ctx.group, grad)


class Expert(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1 = nn.Linear(DIM, 4 * DIM)
        self.w2 = nn.Linear(4 * DIM, DIM)

    def forward(self, x):
        return self.w2(F.gelu(self.w1(x)))


class MoeLayer(nn.Module):
    def __init__(self, group, ep_rank):
        super().__init__()
        self.group = group
        self.gate = nn.Linear(DIM, EXPERTS, bias=False)
        self.local = EXPERTS // EP
        with torch.random.fork_rng():
            torch.manual_seed(1000 * SEED + ep_rank)
            self.experts = nn.ModuleList(Expert() for _ in range(self.local))
        for p in self.experts.parameters():
            p.expert = True

    def forward(self, x):
        shape, x = x.shape, x.reshape(-1, DIM)
        capacity = 2 * len(x) // EXPERTS
        probs = self.gate(x).softmax(-1)
        weight, index = probs.max(-1)
        choice = F.one_hot(index, EXPERTS).float()
        place = (choice.cumsum(0) * choice).sum(-1).long() - 1
        slots = F.one_hot(place.clamp(max=capacity), capacity + 1)[:, :capacity].float()
        dispatch = choice[:, :, None] * slots[:, None, :]
        sent = torch.einsum("nec,nd->ecd", dispatch, x)
        got = AllToAll.apply(self.group, sent).view(EP, self.local, capacity, DIM)
        out = torch.stack([e(got[:, i]) for i, e in enumerate(self.experts)], 1)
        back = AllToAll.apply(self.group, out.reshape(EXPERTS, capacity, DIM))
        y = torch.einsum("nec,ecd->nd", dispatch * weight[:, None, None], back)
        balance = EXPERTS * (choice.mean(0) * probs.mean(0)).sum()
        return y.view(shape), balance


class MoeLm(nn.Module):
    def __init__(self, group, ep_rank):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.mix = nn.GRU(DIM, DIM, batch_first=True)
        self.norm = nn.LayerNorm(DIM)
        self.moe = MoeLayer(group, ep_rank)
        self.head = nn.Linear(DIM, VOCAB)

    def forward(self, ids):
        h, _ = self.mix(self.embed(ids))
        y, balance = self.moe(self.norm(h))
        return self.head(h + y), balance


def batch(step, rank):
    """Sequences that count up or down by one, modulo the vocabulary."""
    g = torch.Generator().manual_seed(100000 * SEED + 100 * step + rank)
    start = torch.randint(VOCAB, (BATCH, 1), generator=g)
    sign = 2 * torch.randint(2, (BATCH, 1), generator=g) - 1
    return (start + sign * torch.arange(SEQ + 1)) % VOCAB


def reduce_gradients(model, groups):
    for p in model.parameters():
        group = groups.expert if getattr(p, "expert", False) else groups.world
        dist.all_reduce(p.grad, group=group)
        p.grad.div_(WORLD)


def evaluate(model, rank):
    model.eval()
    with torch.no_grad():
        ids = batch(10 ** 6, rank)
        logits, _ = model(ids[:, :-1])
        hits = (logits.argmax(-1) == ids[:, 1:]).float().sum()
    dist.all_reduce(hits)
    model.train()
    return hits.item() / (WORLD * BATCH * SEQ)


def main(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=WORLD)
    groups = build_groups(rank)
    torch.manual_seed(SEED)
    model = MoeLm(groups.expert, rank % EP)
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    model.train()
    for step in range(STEPS):
        ids = batch(step, rank)
        logits, balance = model(ids[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        opt.zero_grad()
        (loss + 0.01 * balance).backward()
        reduce_gradients(model, groups)
        opt.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        if rank == 0:
            print(f"step {step} loss {mean.item() / WORLD:.4f} balance {balance.item():.3f}")
    accuracy = evaluate(model, rank)
    if rank == 0:
        print(f"accuracy {accuracy:.3f}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        free = s.getsockname()[1]
    mp.start_processes(main, args=(free,), nprocs=WORLD, start_method="fork")
