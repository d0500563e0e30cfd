import torch
import torch.nn.functional as F
from typing import List, Optional


def scale(x, k: float):
    return x * k + 1.0


@torch.jit.ignore
def outside(x: torch.Tensor) -> torch.Tensor:
    return x.mul(2.0) - x.sum()


@torch.jit.unused
def never(x: torch.Tensor) -> torch.Tensor:
    return x.exp()


class Inner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(4, 4) * 0.1)

    def forward(self, x):
        return F.relu(x @ self.w) + scale(x, 0.5)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.fc = torch.nn.Linear(4, 2)
        self.flag = True

    def helper(self, x, parts: List[torch.Tensor]):
        for p in parts:
            x = x + p.mean()
        return x

    @torch.jit.export
    def other(self, x):
        return self.fc(x) * 3

    @torch.jit.ignore
    def logged(self, x: torch.Tensor) -> torch.Tensor:
        return x - x.mean()

    @torch.jit.unused
    def unused(self, x: torch.Tensor) -> torch.Tensor:
        return x.exp() + x.numpy()

    def forward(self, x, y: Optional[torch.Tensor] = None):
        z = self.inner(x)
        if y is not None:
            z = z + y
        if not torch.jit.is_scripting():
            z = z + z.sum() * 0
        z = outside(z)
        z = self.logged(z)
        z = self.helper(z, [x, z * 2])
        return self.fc(z)


torch.manual_seed(0)
m = Model()
s = torch.jit.script(m)
x = torch.randn(3, 4)
print(m(x), s(x), s.other(x))
print(s.code)
print(s.inner.code)
print(s.graph)
o = torch.optim.SGD(s.parameters(), lr=0.1)
for i in range(3):
    o.zero_grad()
    loss = s(x, torch.ones(3, 4)).square().mean()
    loss.backward()
    o.step()
    print(loss.item())
f = torch.jit.script(scale)
print(f(x, 2.0), f.code)


@torch.jit.script
def calls(x):
    return scale(x, 3.0).relu()


print(calls(x), calls.graph)
