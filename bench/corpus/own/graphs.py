"""A program read as a graph: torch.export, torch.fx, make_fx, functionalize. What is printed is the graph."""

import io

import torch
import torch.fx
import torch.nn as nn
import torch.nn.functional as F
from torch.fx.experimental.proxy_tensor import make_fx


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(4)
        self.fc = nn.Linear(4, 4)
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x, scale=2.0):
        y = F.gelu(self.fc(self.norm(x))) * scale
        self.count += 1
        y = y + x
        a, b = y.chunk(2, -1)
        return torch.cat([a, b * 2], -1).transpose(0, 1)[0]


torch.manual_seed(0)
block = Block()
x = torch.randn(3, 4)
exported = torch.export.export(block, (x,))
print(exported.graph_module.code)
print(exported.graph_signature.user_outputs, sorted(exported.state_dict))
print(exported.module()(x), block(x))
rows = torch.export.Dim("rows", min=2, max=64)
free = torch.export.export(Block(), (x,), dynamic_shapes={"x": {0: rows}})
print(free.graph_module.code, free.module()(torch.ones(5, 4)).shape)
print(torch.export.export(block, (x,), strict=True).graph_module.code)
print(exported.run_decompositions().graph_module.code)
buffer = io.BytesIO()
torch.export.save(exported, buffer)
buffer.seek(0)
print(torch.export.load(buffer).module()(x))


class Branch(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x.sin() + 1, lambda x: x.cos() * 2, (x,))


print(torch.export.export(Branch(), (torch.ones(2),)).graph_module.code)


class Data(nn.Module):
    def forward(self, x):
        return x * 2 if x.sum() > 0 else x


try:
    torch.export.export(Data(), (torch.ones(2),))
except Exception as error:
    print(type(error).__name__)

traced = torch.fx.symbolic_trace(block)
print(traced.code)
for node in traced.graph.nodes:
    print(node.op, node.target if isinstance(node.target, str) else node.target.__name__, len(node.args))
print(traced(x))


def function(x, y):
    z = torch.relu(x) @ y
    z += 1
    return z.sum(-1)[None] * x.shape[0], z


print(torch.fx.symbolic_trace(function).code)
print(make_fx(function)(torch.ones(2, 3), torch.ones(3, 2)).code)
print(make_fx(torch.func.functionalize(function))(torch.ones(2, 3), torch.ones(3, 2)).code)
print(make_fx(torch.func.grad(lambda w: function(w, torch.ones(3, 2))[1].sum()))(torch.ones(2, 3)).code)


class Doubled(torch.fx.Transformer):
    def call_function(self, target, args, kwargs):
        return super().call_function(target, args, kwargs) * 2


print(Doubled(torch.fx.symbolic_trace(function)).transform().code)
seen = []


def backend(graph, inputs):
    seen.append([n.op for n in graph.graph.nodes])
    return graph.forward


print(torch.compile(function, backend=backend)(torch.ones(2, 3), torch.ones(3, 2))[1], len(seen))
explained = torch._dynamo.explain(function)(torch.ones(2, 3), torch.ones(3, 2))
print(explained.graph_count, explained.graph_break_count)


class Counting(torch.utils._python_dispatch.TorchDispatchMode):
    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        calls.append(str(op))
        return op(*args, **(kwargs or {}))


calls = []
with Counting():
    function(torch.ones(2, 3), torch.ones(3, 2))
print(calls)


class Named(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, called, types, args=(), kwargs=None):
        calls.append(called.__name__)
        return called(*args, **(kwargs or {}))


with Named():
    print(function(torch.ones(1, 3), torch.ones(3, 1)))
print(calls)
with torch._subclasses.FakeTensorMode():
    print(function(torch.ones(2, 3), torch.ones(3, 2))[1])
with torch.device("meta"):
    print(Block()(torch.ones(3, 4)))
with torch.profiler.profile() as profile:
    function(torch.ones(2, 3), torch.ones(3, 2))
print(sorted({e.key for e in profile.key_averages() if e.key.startswith("aten::")}))
