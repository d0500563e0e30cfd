"""Operators in every form: an autograd.Function, augmented assignments, subscripts written, tests, an activation checkpoint, einsum, Adam."""

import torch
from ending import arguments, tell_loss, tell_model
from torch import nn
from torch.utils.checkpoint import checkpoint


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 2 * x * gradient


class Model(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.weights = nn.Parameter(torch.randn(3, width, width) / width**0.5)
        self.gain, self.out = nn.Parameter(torch.ones(width)), nn.Linear(width, 1)
        self.register_buffer("seen", torch.zeros(()))

    def mix(self, x, weight):
        h = torch.einsum("bi,ij->bj", x, weight)
        h += x
        h[:, 0] = 0.5
        return torch.tanh(h * self.gain)

    def forward(self, x):
        for weight in self.weights:
            x = self.mix(x, weight)
        lowest, _ = x.min(dim=1, keepdim=True)
        x = x - lowest
        return self.out(Square.apply(x))


def main():
    options = arguments()
    model = Model()
    run = torch.compile(model, backend=options.compile) if options.compile else model
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(options.steps):
        x, y = torch.randn(6, 12), torch.randn(6, 1)
        # Recomputed in the backward pass, but not where a compiler decides what is.
        guess = run(x) if options.compile else checkpoint(run, x, use_reentrant=False)
        loss = ((guess - y) ** 2).mean()
        if not torch.isfinite(loss):
            raise SystemExit("the loss is not finite")
        model.seen += len(x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        tell_loss(step, loss)
    tell_model(model, optimizer)


if __name__ == "__main__":
    main()
