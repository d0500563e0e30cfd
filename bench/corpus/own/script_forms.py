import dataclasses
import functools
import io
from typing import Any, Dict, Final, List, Optional, Tuple, Union

import torch
import torch.nn as nn

def old_signature(x, n):
    # type: (Tensor, int) -> Tuple[Tensor, List[int]]
    y = x * n
    return y + 3.0, y.size()


print(torch.jit.script(old_signature)(torch.ones(2), 3))


def outer(k):
    def inner(x: torch.Tensor) -> torch.Tensor:
        """A text with `og("x", y)` in it, and a # that is no comment."""
        r = (
            x  # first
            * 2.0
        ) \
            + 1.0
        return torch.clamp(r, 0.0, 4.0) if r.sum() > 0 else -r

    return torch.jit.script(inner)(torch.arange(3.0) * k)


print(outer(1), outer(-2))


@torch.jit.script
@dataclasses.dataclass
class Box:
    low: float
    high: float = 2.0

    def clip(self, x: torch.Tensor) -> torch.Tensor:
        return torch.clamp(x, self.low, self.high)


@torch.jit.script
def boxed(x: torch.Tensor) -> torch.Tensor:
    return Box(0.5).clip(x) + Box(0.0, 1.0).clip(x)


print(boxed(torch.linspace(-1, 3, 5)))


class Kinds(nn.Module):
    size: Final[int]
    names: List[str]

    def __init__(self):
        super().__init__()
        self.size = 4
        self.names = ["a", "b"]
        second = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Dropout(0.5))
        self.parts = nn.ModuleDict({"a": nn.Linear(4, 4), "b": second})
        self.weight = nn.Parameter(torch.full((4,), 0.5))
        self.state = torch.jit.Attribute({}, Dict[str, torch.Tensor])

    @torch.jit.export
    def kept(self, name: str) -> Optional[torch.Tensor]:
        return self.state[name] if name in self.state else None

    @torch.jit.ignore(drop=True)
    def summary(self, x: torch.Tensor) -> None:
        print("summary", x.mean().item())

    def forward(self, x: Union[torch.Tensor, List[torch.Tensor]], scale: Optional[float] = None) -> torch.Tensor:
        if torch.jit.isinstance(x, List[torch.Tensor]):
            y = torch.stack(x).sum(0)
        else:
            assert isinstance(x, torch.Tensor)
            y = x
        for name, part in self.parts.items():
            y = part(y) * self.weight
            self.state[name] = y.detach()
        if scale is not None:
            y *= scale
        rows = torch.jit.annotate(List[torch.Tensor], [])
        for i in range(y.size(0)):
            if i == 2:
                continue
            rows.append(y[i] - y[i].mean() if i % 2 else y[i])
        while y.sum() > 10:
            y = y / 2
        first, rest = rows[0].chunk(2, 0)
        a, b = y.max(dim=-1)
        return torch.cat(rows + [first, a, b.to(torch.float32)]) if len(rows) > 1 else y


torch.manual_seed(0)
kinds = torch.jit.script(Kinds().eval())
x = torch.randn(3, 4)
print(kinds(x), kinds([x, x], scale=0.5), kinds.kept("a"), kinds.kept("z"))
print(kinds.code)
buffer = io.BytesIO()
torch.jit.save(kinds, buffer, _extra_files={"notes": b"of two lines\nof two"})
buffer.seek(0)
again = torch.jit.load(buffer)
print(again(x), [n for n, _ in again.named_parameters()], sorted(n for n, _ in again.named_modules()))
print(torch.jit.optimize_for_inference(torch.jit.freeze(kinds))(x))


def with_grad(x: torch.Tensor):
    with torch.no_grad():
        y = x.exp()
    with torch.autograd.profiler.record_function("part"):
        z = x.sin()
    return y * z


scripted = torch.jit.script(with_grad)
x = torch.ones(2, requires_grad=True)
for _ in range(3):  # the second and third run are profiled and optimized
    scripted(x).sum().backward()
print(x.grad)


def several(x, table: Dict[str, int]):
    out: List[Tuple[int, torch.Tensor]] = []
    for i, (name, k) in enumerate(table.items()):
        out.append((i, x * k))
    keep = [t for _, t in out]
    return keep[-1] if True else x, {n: k + 1 for n, k in table.items()}, f"{len(out)} of {x.dim()}"


print(torch.jit.script(several)(torch.ones(1), {"a": 2, "b": 3}))
for bad in (lambda x: x + 1, functools.partial(with_grad)):
    try:
        print(type(torch.jit.script(bad)))
    except Exception as error:
        print(type(error).__name__, str(error).splitlines()[0])


def unknown(x):
    y = x.no_such_method(2)
    return y + 1


try:
    torch.jit.script(unknown)
except Exception as error:
    print(type(error).__name__, error)


def fails_late(x: torch.Tensor, i: int) -> torch.Tensor:
    y = x * 2
    return y[i] + torch.ones(3)[i]


try:
    torch.jit.script(fails_late)(torch.ones(2), 5)
except Exception as error:
    print(type(error).__name__, error)


# ---- traced


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = torch.jit.script(with_grad)
        self.cell = nn.GRUCell(3, 3)

    def forward(self, x, h):
        y = self.gate(x)
        h = self.cell(y, h)
        if h.sum() > 0:
            h = h * 2
        return {"h": h, "y": y[:, 0]}


torch.manual_seed(0)
branches = Branches()
traced = torch.jit.trace(branches, (torch.ones(2, 3), torch.ones(2, 3)), strict=False)
print(traced(torch.ones(2, 3), torch.zeros(2, 3)))
print(traced.graph)


def random_part(x):
    return torch.dropout(x, 0.5, True) + x


try:
    torch.jit.trace(random_part, torch.ones(8))
except Exception as error:
    print(type(error).__name__, str(error).splitlines()[0])
loose = torch.jit.trace(random_part, torch.ones(8), check_trace=False)
torch.manual_seed(1)
print(loose(torch.ones(8)))


def writes(x):
    y = torch.zeros(3)
    y[1] = x.sum()
    y[0:1] += x[0]
    y *= 2
    return y, x.shape[0] * x.mean(), [i for i in x.unbind()][-1]


print(torch.jit.trace(writes, torch.ones(4)).graph)
shaped = torch.jit.trace(lambda x: x.view(x.size(0), -1).sum(1) / x.shape[1], torch.ones(2, 3, 4))
print(shaped(torch.ones(5, 6, 4)), shaped.code)
