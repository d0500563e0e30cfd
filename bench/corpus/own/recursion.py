"""Recursion at the limit: caught, raised again, the limit set and read. What is printed is exact."""

import sys
import traceback

import torch

LIMIT = sys.getrecursionlimit()


def levels(n):
    """A tensor through n calls."""
    return torch.zeros(1) if n == 0 else levels(n - 1) + 1


def counted(x, n=0):
    try:
        return counted(x * 1.0, n + 1)
    except RecursionError:
        return n


def fits(n):
    try:
        return int(levels(n))
    except RecursionError as error:
        return type(error).__name__


print(LIMIT)
few = [k for k in range(1, 60) if fits(LIMIT - k) != "RecursionError"][0]
print("a program may leave out", few, "of its levels")
print([fits(LIMIT - few + d) for d in (-1, 0, 1)])


class Tree(torch.nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((2,), 1.0 / (depth + 1)))
        self.inner = Tree(depth - 1) if depth else None

    def forward(self, x):
        x = x * self.weight
        return x if self.inner is None else self.inner(x) + x


sys.setrecursionlimit(300)
print(sys.getrecursionlimit(), fits(400), fits(100))
tree = Tree(40)
loss = tree(torch.ones(2)).sum()
loss.backward()
print(loss.item(), sum(p.grad.sum().item() for p in tree.parameters()))
try:
    Tree(200)(torch.ones(2))
except RecursionError as error:
    print("RecursionError", len(traceback.extract_tb(error.__traceback__)) > 100)
sys.setrecursionlimit(5000)
print(fits(4000), torch.cat([levels(3000), levels(2000)]))
x = torch.ones(2, requires_grad=True)


def chain(x, n):
    return x if n == 0 else chain(torch.sin(x), n - 1) * 1.0


chain(x, 1500).sum().backward()
print(x.grad)
try:
    sys.setrecursionlimit(1)
except (RecursionError, ValueError) as error:
    print(type(error).__name__)
sys.setrecursionlimit(LIMIT)


def forever(x):
    yield x
    yield from forever(x + 1)


class Lazy:
    """An attribute that asks itself."""

    def __getattr__(self, name):
        return getattr(self, name) + torch.ones(1)


class Grows(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if Grows.deeper and function is torch.Tensor.add:
            return args[0].as_subclass(Grows).add(args[1])
        return super().__torch_function__(function, types, args, kwargs or {})


Grows.deeper = False
deep = (lambda: Lazy().there, lambda: list(forever(torch.ones(1))), lambda: torch.ones(1).as_subclass(Grows).add(1))
for what in deep:
    Grows.deeper = True
    try:
        print(what())
    except RecursionError as error:
        print(type(error).__name__, str(error).startswith("maximum recursion depth exceeded"))
    finally:
        Grows.deeper = False


try:
    for y in forever(torch.zeros(1)):
        last = y
except RecursionError:
    print("after some hundred", last.item() > 300)


def in_hook(gradient):
    return levels(50) * gradient


x = torch.ones(1, requires_grad=True)
x.register_hook(in_hook)
(x * 2).sum().backward()
print(x.grad)


def tidy(x, n):
    try:
        return tidy(x + 1, n + 1)
    finally:
        tidy.seen += 1


tidy.seen = 0
try:
    tidy(torch.zeros(1), 0)
except RecursionError as error:
    print("each level is left once", tidy.seen > 0.9 * LIMIT)
print(counted(torch.ones(1)) > 0.9 * LIMIT, levels(10))
