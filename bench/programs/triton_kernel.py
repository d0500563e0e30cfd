"""A Triton kernel with a backward of its own, run by Triton's interpreter on the CPU."""
import os

os.environ["TRITON_INTERPRET"] = "1"

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from loop import train
from torch import nn


@triton.jit
def silu_mul_forward(gate, up, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    g = tl.load(gate + at, mask=inside)
    u = tl.load(up + at, mask=inside)
    tl.store(out + at, g * tl.sigmoid(g) * u, mask=inside)


@triton.jit
def silu_mul_backward(gate, up, grad, grad_gate, grad_up, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    g = tl.load(gate + at, mask=inside)
    u = tl.load(up + at, mask=inside)
    d = tl.load(grad + at, mask=inside)
    s = tl.sigmoid(g)
    tl.store(grad_gate + at, d * u * s * (1 + g * (1 - s)), mask=inside)
    tl.store(grad_up + at, d * g * s, mask=inside)


class SiluMul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gate, up):
        ctx.save_for_backward(gate, up)
        out = torch.empty_like(gate)
        grid = (triton.cdiv(out.numel(), 64),)
        silu_mul_forward[grid](gate, up, out, out.numel(), BLOCK=64)
        return out

    @staticmethod
    def backward(ctx, grad):
        gate, up = ctx.saved_tensors
        grad = grad.contiguous()
        grad_gate, grad_up = torch.empty_like(gate), torch.empty_like(up)
        grid = (triton.cdiv(grad.numel(), 64),)
        silu_mul_backward[grid](gate, up, grad, grad_gate, grad_up, grad.numel(), BLOCK=64)
        return grad_gate, grad_up


class Gated(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(width, 32), nn.Linear(width, 32), nn.Linear(32, width)

    def forward(self, x):
        return x + self.down(SiluMul.apply(self.gate(x), self.up(x)))


torch.manual_seed(9)
model = nn.Sequential(Gated(), Gated(), nn.Linear(16, 4))
batches = [{"x": torch.randn(8, 16), "target": torch.randint(0, 4, (8,))} for _ in range(2)]
train(model, batches, loss_of=lambda model, batch: F.cross_entropy(model(batch["x"]), batch["target"]))
