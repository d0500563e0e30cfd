"""Quantization-aware training: observers, straight-through fake quantization, then real integer inference."""
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


def make_data(n, gen):
    """Damped oscillations; the class is the frequency band."""
    y = torch.randint(0, 4, (n,), generator=gen)
    freq = 0.3 + 0.25 * y.float() + 0.08 * torch.rand(n, generator=gen)
    phase = 6.28 * torch.rand(n, generator=gen)
    t = torch.arange(24.0)
    x = torch.exp(-0.03 * t) * torch.sin(freq[:, None] * t + phase[:, None])
    return x + 0.1 * torch.randn(n, 24, generator=gen), y


class FakeQuantFn(torch.autograd.Function):
    """Round to the grid; the gradient passes where the value was inside the range."""

    @staticmethod
    def forward(ctx, x, scale, zero, lo, hi):
        q = torch.round(x / scale + zero)
        ctx.save_for_backward((q >= lo) & (q <= hi))
        return (q.clamp(lo, hi) - zero) * scale

    @staticmethod
    def backward(ctx, grad):
        inside, = ctx.saved_tensors
        return grad * inside, None, None, None, None


class ActivationQuant(nn.Module):
    """Asymmetric 8 bit, range followed by a moving average."""

    def __init__(self, momentum=0.1):
        super().__init__()
        self.momentum = momentum
        self.observe, self.quantize = False, False
        self.register_buffer("low", torch.tensor(0.0))
        self.register_buffer("high", torch.tensor(0.0))
        self.register_buffer("seen", torch.tensor(False))

    def qparams(self):
        low, high = self.low.clamp(max=0.0), self.high.clamp(min=0.0)
        scale = ((high - low) / 255).clamp(min=1e-8)
        return scale, torch.round(-low / scale).clamp(0, 255)

    def forward(self, x):
        if self.observe and self.training:
            with torch.no_grad():
                low, high = x.min(), x.max()
                if self.seen:
                    self.low.lerp_(low, self.momentum)
                    self.high.lerp_(high, self.momentum)
                else:
                    self.low.copy_(low)
                    self.high.copy_(high)
                    self.seen.fill_(True)
        if self.quantize and self.seen:
            scale, zero = self.qparams()
            return FakeQuantFn.apply(x, scale, zero, 0, 255)
        return x


class QuantLinear(nn.Linear):
    """Symmetric, per output channel, 8 bit weights."""

    def __init__(self, i, o):
        super().__init__(i, o)
        self.act = ActivationQuant()
        self.quantize = False

    def weight_scale(self):
        return (self.weight.detach().abs().amax(1, keepdim=True) / 127).clamp(min=1e-8)

    def forward(self, x):
        x = self.act(x)
        w = self.weight
        if self.quantize:
            w = FakeQuantFn.apply(w, self.weight_scale(), 0.0, -127, 127)
        return F.linear(x, w, self.bias)

    @torch.no_grad()
    def integer_forward(self, x):
        """What a device would compute: integer products, int32 sums, one rescale."""
        scale, zero = self.act.qparams()
        xq = (torch.round(x / scale + zero).clamp(0, 255) - zero).to(torch.int32)
        ws = self.weight_scale()
        wq = torch.round(self.weight / ws).clamp(-127, 127).to(torch.int32)
        acc = (xq.unsqueeze(1) * wq.unsqueeze(0)).sum(-1)
        return acc.float() * scale * ws.T + self.bias


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([QuantLinear(24, 32), QuantLinear(32, 32), QuantLinear(32, 4)])

    def forward(self, x, integer=False):
        for i, layer in enumerate(self.layers):
            x = layer.integer_forward(x) if integer else layer(x)
            if i < len(self.layers) - 1:
                x = F.relu(x)
        return x

    def set_phase(self, observe, quantize):
        for layer in self.layers:
            layer.act.observe, layer.act.quantize, layer.quantize = observe, quantize, quantize


def phase_at(step):
    if step < STEPS // 4:
        return "float", False, False
    if step < STEPS // 2:
        return "observe", True, False
    if step < 3 * STEPS // 4:
        return "quantize", True, True
    return "frozen", False, True


def main():
    torch.manual_seed(SEED)
    gen = torch.Generator().manual_seed(SEED)
    (x, y), (tx, ty) = make_data(512, gen), make_data(256, gen)
    net = Net()
    opt = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9, nesterov=True)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, STEPS, eta_min=0.01)
    for step in range(STEPS):
        name, observe, quantize = phase_at(step)
        net.set_phase(observe, quantize)
        net.train()
        idx = torch.randint(0, len(x), (64,))
        loss = F.cross_entropy(net(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        print(step, name, f"{loss.item():.4f}")
    net.eval()
    with torch.no_grad():
        fake, real = net(tx), net(tx, integer=True)
    print("fake", f"{(fake.argmax(-1) == ty).float().mean().item():.3f}",
          "integer", f"{(real.argmax(-1) == ty).float().mean().item():.3f}",
          "largest gap", f"{(fake - real).abs().max().item():.1e}")


if __name__ == "__main__":
    main()
