"""Supervised fine-tuning of a small decoder: FSDP2 on two ranks, prompts masked out of the loss."""

import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
WORLD = 2
VOCAB, PROMPT, ANSWER, IGNORE = 32, 6, 4, -100


class DecoderLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.input_norm = nn.RMSNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.post_norm = nn.RMSNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.input_norm(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.post_norm(x))


class Decoder(nn.Module):
    def __init__(self, width=32, depth=2, heads=4):
        super().__init__()
        self.embed_tokens = nn.Embedding(VOCAB, width)
        self.embed_positions = nn.Embedding(PROMPT + ANSWER, width)
        self.layers = nn.ModuleList(DecoderLayer(width, heads) for _ in range(depth))
        self.norm = nn.RMSNorm(width)
        self.lm_head = nn.Linear(width, VOCAB, bias=False)

    def forward(self, tokens):
        x = self.embed_tokens(tokens) + self.embed_positions(torch.arange(tokens.shape[1]))
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(self.norm(x))


def shard(model):
    mesh = init_device_mesh("cpu", (WORLD,))
    for module in (*model.layers, model):
        fully_shard(module, mesh=mesh)
    return model


def conversations(n):
    """The answer repeats the end of the prompt backwards."""
    prompt = torch.randint(0, VOCAB, (n, PROMPT), generator=torch.Generator().manual_seed(SEED))
    tokens = torch.cat([prompt, prompt[:, -ANSWER:].flip(1)], 1)
    labels = tokens.clone()
    labels[:, :PROMPT] = IGNORE
    return TensorDataset(tokens, labels)


def main(rank, store):
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=WORLD)
    torch.manual_seed(SEED)
    model = shard(Decoder())
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.0)
    data = conversations(64)
    sampler = DistributedSampler(data, num_replicas=WORLD, rank=rank, shuffle=True, seed=SEED)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    model.train()
    for epoch in range(max(1, STEPS // len(loader))):
        sampler.set_epoch(epoch)
        for tokens, labels in loader:
            logits = model(tokens)
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=IGNORE)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            mean = loss.detach().clone()
            dist.all_reduce(mean)
            if rank == 0:
                print(f"epoch {epoch} loss {mean.item() / WORLD:.5f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(main, args=(folder + "/store",), nprocs=WORLD, start_method="fork")
