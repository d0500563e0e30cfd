"""A small denoising net whose residual blocks are checkpointed by an own autograd function."""
import math
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
BATCH, SIZE, TIMES = 16, 12, 50


class CheckpointFunction(torch.autograd.Function):
    """Run without a graph in the forward pass; run again with one in the backward pass."""

    @staticmethod
    def forward(ctx, run_function, length, *args):
        ctx.run_function = run_function
        ctx.input_tensors = list(args[:length])
        ctx.input_params = list(args[length:])
        with torch.no_grad():
            output = ctx.run_function(*ctx.input_tensors)
        ctx.rng_state = torch.get_rng_state()
        return output

    @staticmethod
    def backward(ctx, grad_output):
        inputs = [x.detach().requires_grad_(True) for x in ctx.input_tensors]
        with torch.enable_grad(), torch.random.fork_rng(devices=[]):
            torch.set_rng_state(ctx.rng_state)
            output = ctx.run_function(*[x.view_as(x) for x in inputs])
        grads = torch.autograd.grad(output, inputs + ctx.input_params, grad_output)
        return (None, None) + grads


def checkpoint(func, inputs, params, flag):
    if flag:
        return CheckpointFunction.apply(func, len(inputs), *inputs, *params)
    return func(*inputs)


def timestep_embedding(t, dim):
    freqs = torch.exp(-math.log(1000) * torch.arange(dim // 2) / (dim // 2))
    args = t[:, None].float() * freqs
    return torch.cat([args.cos(), args.sin()], -1)


class ResBlock(nn.Module):
    def __init__(self, channels, emb, dropout, use_checkpoint):
        super().__init__()
        self.use_checkpoint = use_checkpoint
        self.in_layers = nn.Sequential(nn.GroupNorm(4, channels), nn.SiLU(), nn.Conv2d(channels, channels, 3, padding=1))
        self.emb_layers = nn.Sequential(nn.SiLU(), nn.Linear(emb, channels))
        self.out_layers = nn.Sequential(nn.GroupNorm(4, channels), nn.SiLU(), nn.Dropout(dropout),
                                        nn.Conv2d(channels, channels, 3, padding=1))

    def forward(self, x, emb):
        flag = self.use_checkpoint and self.training
        return checkpoint(self._forward, (x, emb), tuple(self.parameters()), flag)

    def _forward(self, x, emb):
        h = self.in_layers(x) + self.emb_layers(emb)[:, :, None, None]
        return x + self.out_layers(h)


class Denoiser(nn.Module):
    def __init__(self, channels=16, emb=32, blocks=3, dropout=0.2, use_checkpoint=True):
        super().__init__()
        self.time_embed = nn.Sequential(nn.Linear(channels, emb), nn.SiLU(), nn.Linear(emb, emb))
        self.channels = channels
        self.stem = nn.Conv2d(1, channels, 3, padding=1)
        self.blocks = nn.ModuleList(ResBlock(channels, emb, dropout, use_checkpoint) for _ in range(blocks))
        self.out = nn.Sequential(nn.GroupNorm(4, channels), nn.SiLU(), nn.Conv2d(channels, 1, 3, padding=1))

    def forward(self, x, t):
        emb = self.time_embed(timestep_embedding(t, self.channels))
        h = self.stem(x)
        for block in self.blocks:
            h = block(h, emb)
        return self.out(h)


class Diffusion:
    def __init__(self):
        self.alphas = torch.cumprod(1 - torch.linspace(1e-3, 0.08, TIMES), 0)

    def losses(self, model, x, generator):
        t = torch.randint(TIMES, (len(x),), generator=generator)
        noise = torch.randn(x.shape, generator=generator)
        a = self.alphas[t][:, None, None, None]
        return F.mse_loss(model(a.sqrt() * x + (1 - a).sqrt() * noise, t), noise)


def crosses(generator):
    """Images with one horizontal and one vertical bar."""
    x = -torch.ones(BATCH, 1, SIZE, SIZE)
    rows, cols = torch.randint(SIZE, (2, BATCH), generator=generator)
    for i in range(BATCH):
        x[i, 0, rows[i]] = 1
        x[i, 0, :, cols[i]] = 1
    return x


def main():
    torch.manual_seed(SEED)
    model, diffusion = Denoiser(), Diffusion()
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    g = torch.Generator().manual_seed(100 + SEED)
    model.train()
    for step in range(STEPS):
        loss = diffusion.losses(model, crosses(g), g)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"step {step} loss {loss.item():.4f}")
    model.eval()
    g = torch.Generator().manual_seed(9)
    with torch.no_grad():
        print(f"eval loss {diffusion.losses(model, crosses(g), g).item():.4f}")
    with tempfile.TemporaryDirectory() as d:
        torch.save(model.state_dict(), os.path.join(d, "denoiser.pt"))


if __name__ == "__main__":
    main()
