import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)
        self.fc = nn.Linear(2 * 36, 3)
        self.register_buffer("b", torch.ones(3))

    def forward(self, x):
        y = F.relu(self.conv(x))
        y = y.view(y.size(0), -1)
        y = self.fc(y) * self.b
        y += 1
        a, b = y.chunk(2, 1)
        return F.log_softmax(torch.cat([a, b * 2], 1), dim=1)


torch.manual_seed(1)
net = Net()
x = torch.randn(2, 1, 8, 8)
t = torch.jit.trace(net, x)
print(t.graph)
print(t.code)
print(torch.equal(t(x), net(x)))
print(t(torch.randn(5, 1, 8, 8)))


def f(x, n):
    for i in range(n.size(0)):
        x = x * 2 + n[i]
    return x.sum() / 2


tf = torch.jit.trace(f, (torch.ones(3), torch.arange(4.0)))
print(tf.graph, tf(torch.ones(3), torch.arange(4.0)))
tm = torch.jit.trace_module(net, {"forward": x})
print(tm.graph)
fz = torch.jit.freeze(torch.jit.script(net).eval())
print(fz.graph)
print(fz(x))
import io

buffer = io.BytesIO()
torch.jit.save(t, buffer)
buffer.seek(0)
print(torch.jit.load(buffer)(x))


@torch.jit.script
def uses_traced(x):
    return x * 2


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.t = torch.jit.trace(net.fc, torch.randn(2, 72))

    def forward(self, x):
        return self.t(x).relu() + uses_traced(x).sum()


print(torch.jit.script(Mixed())(torch.ones(2, 72)))
