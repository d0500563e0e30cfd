"""Linear algebra from scratch: tensors that want gradients, no Module, no Optimizer."""
import os

import torch

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Layer:
    def __init__(self, i, o):
        self.w = (torch.randn(i, o) * (2 / i) ** 0.5).requires_grad_()
        self.b = torch.zeros(o, requires_grad=True)

    def __call__(self, x):
        return x @ self.w + self.b

    def parameters(self):
        return [self.w, self.b]


class Momentum:
    def __init__(self, parameters, lr, beta=0.9):
        self.parameters, self.lr, self.beta = parameters, lr, beta
        self.velocity = [torch.zeros_like(p) for p in parameters]

    def zero_grad(self):
        for p in self.parameters:
            p.grad = None

    @torch.no_grad()
    def step(self):
        for p, v in zip(self.parameters, self.velocity):
            v.mul_(self.beta).add_(p.grad)
            p -= self.lr * v


torch.manual_seed(SEED)
a, b = Layer(8, 16), Layer(16, 1)
opt = Momentum(a.parameters() + b.parameters(), lr=0.01)
for step in range(STEPS):
    x = torch.randn(32, 8)
    loss = (b(torch.tanh(a(x))) - x.prod(1, keepdim=True)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())
