import torch
from contextlib import contextmanager


def gen(x):
    for i in range(3):
        got = yield x * i
        if got is not None:
            x = x + got
    return x.sum()


def outer(x):
    r = yield from gen(x * 2)
    yield r * 10


print(list(outer(torch.ones(2))))
g = gen(torch.ones(2))
print(next(g), g.send(torch.tensor(5.0)))
try:
    g.throw(ValueError("x"))
except ValueError as e:
    print(e)
print([t * 2 for t in (torch.ones(i) + i for i in range(3)) if t.numel()], {k: v.sum() for k, v in {"a": torch.ones(2)}.items()}, {int(v.sum()) for v in torch.eye(3)})


@contextmanager
def scaled(x):
    try:
        yield x * 3
    finally:
        print("closed", x + 1)


with scaled(torch.ones(1)) as y, scaled(y) as z:
    print(y + z)


def m(v):
    match v:
        case torch.Tensor(shape=[a, b]) if a > b:
            return v.sum() * a
        case torch.Tensor(ndim=1) as t if t.sum() > 1:
            return t * 2
        case [x, *rest]:
            return x + len(rest)
        case {"k": torch.Tensor() as x, **rest}:
            return x - len(rest)
        case int() | float():
            return v + 1
        case _:
            return None


for v in (torch.ones(3, 2), torch.ones(2), [torch.ones(1), 2, 3], {"k": torch.ones(1), "j": 2}, 3, "x", torch.zeros(1)):
    print(m(v))
if (n := torch.ones(3).sum()) > 2:
    print(n)
f = lambda x, y=torch.ones(1): [x + i for i in y]
print(f(torch.ones(2)))


class C:
    x = torch.ones(2)
    y = [i * 2 for i in x]
    z = sum(y)

    def __init_subclass__(cls, k=1):
        cls.k = cls.z * k


class D(C, k=torch.tensor(3)):
    pass


print(D.k, C.y)


async def agen(x):
    for i in range(2):
        yield x + i


async def main():
    print([v * 2 async for v in agen(torch.ones(1))])
    async for v in agen(torch.zeros(1)):
        print(v - 1)


import asyncio

asyncio.run(main())
a, (b, *c) = torch.arange(2), torch.arange(3)
print(a, b, c)
x = torch.arange(6.0).view(2, 3)
x[0], x[1, 0] = x[1] * 2, 9
x[..., -1] += 1
x[x > 3] *= 2
print(x, x.T[0].sum().item())
print(c)
d = {}
d["a"] = d["b"] = torch.ones(1)
d["a"] += 1
print(d, d["a"] is d["b"])
for i, (p, q) in enumerate(zip(torch.eye(2), torch.ones(2))):
    print(i, p @ p + q)
else:
    print("else")
while (s := x.sum()) > 5:
    x = x / 2
print(s)
print(f"{x.sum():.2f} {x.shape!r} {x.mean()=}")
assert (x < 100).all(), x
try:
    raise ExceptionGroup("g", [ValueError(torch.ones(1)), TypeError("t")])
except* ValueError as eg:
    print(eg.exceptions[0].args[0] + 1)
except* TypeError as eg:
    print("T")
print(*[t + 1 for t in torch.ones(2)], sep=";")
