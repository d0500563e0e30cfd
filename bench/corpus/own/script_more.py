import torch
from typing import Dict, List, NamedTuple, Tuple, Optional
from enum import Enum
from torch import Tensor


class Color(Enum):
    RED = 1
    BLUE = 2


@torch.jit.script
class Pair:
    def __init__(self, a: Tensor, b: int):
        self.a = a
        self.b = b

    def add(self, x: Tensor) -> Tensor:
        return self.a * self.b + x


class State(NamedTuple):
    h: Tensor
    c: Tensor


def cell(x: Tensor, s: State) -> State:
    h = torch.tanh(x + s.h)
    return State(h, s.c * h)


@torch.jit.script_if_tracing
def loop(x: Tensor):
    for i in range(x.size(0)):
        x = x + i
    return x


@torch.jit.interface
class Does(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


class A(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2


class LSTM(torch.nn.Module):
    __constants__ = ["n"]
    sub: Does

    def __init__(self):
        super().__init__()
        self.n = 3
        self.sub = A()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(4, 4) for _ in range(2)])

    def forward(self, xs: Tensor, state: State, table: Dict[str, Tensor]) -> Tuple[Tensor, State]:
        out: List[Tensor] = []
        for x in xs.unbind(0):
            state = cell(x, state)
            for i, layer in enumerate(self.layers):
                state = State(layer(state.h), state.c)
            out += [state.h]
        r = torch.stack(out)
        r += table["a"]
        r[0] = 5.0
        r = self.sub(r)
        assert r.size(0) == self.n, f"no {r.size(0)}"
        return torch.stack([o * 2 for o in out]) + r, state

    @property
    def twice(self):
        return self.n * 2


m = torch.jit.script(LSTM())
torch.manual_seed(0)
for p in m.parameters():
    torch.nn.init.normal_(p)
print(m(torch.randn(3, 2, 4), State(torch.zeros(2, 4), torch.ones(2, 4)), {"a": torch.ones(4)}))
print(m.code)
print(torch.jit.trace(lambda x: loop(x) * 2, torch.ones(4)).graph)
print(Pair(torch.ones(2), 3).add(torch.ones(2)))


class Hooked(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.neg(x) + x


def hook(self, input: Tuple[Tensor], output: Tensor) -> Tensor:
    return output * 2


h = Hooked()
h.register_forward_hook(hook)
print(torch.jit.script(h)(torch.ones(2)))


def fork_me(x: Tensor) -> Tensor:
    return x.relu() + 1


@torch.jit.script
def forks(x: Tensor) -> Tensor:
    a = torch.jit.fork(fork_me, x)
    b = torch.jit.fork(fork_me, x * 2)
    return torch.jit.wait(a) + torch.jit.wait(b)


print(forks(torch.ones(3)))


class WithLambda(torch.nn.Module):
    @staticmethod
    def helper(x: Tensor) -> Tensor:
        return x + 3

    @torch.jit._overload_method
    def over(self, x: int) -> int:
        ...

    @torch.jit._overload_method  # noqa: F811
    def over(self, x: Tensor) -> Tensor:
        ...

    def over(self, x):  # noqa: F811
        return x + 1

    def forward(self, x: Tensor) -> Tensor:
        return self.helper(x) * self.over(2) + self.over(x)


print(torch.jit.script(WithLambda())(torch.ones(2)))
try:
    @torch.jit.script
    def bad(x):
        return x + "a"
except RuntimeError as error:
    print(error)
def raises(x: Tensor) -> Tensor:
    if x.sum() > 0:
        raise ValueError("positive")
    return x
try:
    torch.jit.script(raises)(torch.ones(1))
except Exception as error:
    print(type(error).__name__, error)
