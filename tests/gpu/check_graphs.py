"""CUDA graphs: nothing of the capture is recorded, one run's events a replay, with that replay's values."""

from program import Check, record

SOURCE = r"""
from opguard import _rt
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
x = torch.zeros(32, 512, device="cuda")
def step():
    optimizer.zero_grad(set_to_none=True)
    h = og("step.model", model)(x)
    loss = og("step.loss", h.square().mean)()
    og("step.backward", loss.backward)()
    optimizer.step()
    return h
warm = torch.cuda.Stream()
warm.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(warm):
    for _ in range(3): step()
torch.cuda.current_stream().wait_stream(warm)
og("mark", torch.relu)(x)
graph = torch.cuda.CUDAGraph()
optimizer.zero_grad(set_to_none=True)
with torch.cuda.graph(graph):
    out = step()
og("mark", torch.relu)(x)
for i in range(20):
    x.copy_(torch.randn(32, 512))
    print("in", *_rt.fingerprint(x.cpu()))
    og("replay", graph.replay)()
    print("out", *_rt.fingerprint(out.detach().cpu()))
"""
# Nothing waits for the device between the replays.
RUSH = SOURCE.replace('    print("in", *_rt.fingerprint(x.cpu()))\n', "").replace('    print("out", *_rt.fingerprint(out.detach().cpu()))\n', "").replace("range(20)", "range(500)")

MADE = r"""
torch.manual_seed(0)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(256, 256), torch.nn.Linear(256, 8)
    def forward(self, x):
        return og("net.b", self.b)(og("net.relu", torch.relu)(og("net.a", self.a)(x)))
net = Net().cuda()
x = torch.randn(16, 256, device="cuda", requires_grad=True)
graphed = torch.cuda.make_graphed_callables(net, (x,))
optimizer = torch.optim.SGD(net.parameters(), lr=.1)
for _ in range(5):
    optimizer.zero_grad()
    graphed(torch.randn(16, 256, device="cuda", requires_grad=True)).sum().backward()
    optimizer.step()
"""

with Check("graphs") as check:
    for mode in ("full", "default"):
        with check.part(mode):
            lines, log, _ = record(SOURCE, OPGUARD_MODE=mode)
            check.sound(log, mode)
            first, second = (e.index for e in log.of("mark"))
            check(not [e for e in log.events[first + 1 : second] if e.kind != "state"], f"{mode}: the capture is not recorded")
            replays = log.of("step.model")[3:]
            told = [tuple(map(int, line.split()[1:])) for line in lines]
            check([e.get("in", "arg0").value for e in replays] == told[::2], f"{mode}: inputs are each replay's own")
            check([e.get("out", "out0").value for e in replays] == told[1::2], f"{mode}: outputs are each replay's own")
            check([e.step for e in replays] == list(range(3, 23)), f"{mode}: steps count ({[e.step for e in replays]})")
            nodes = [e for e in log.events if e.kind == "node" and e.index > second]
            check(nodes and all(n.forward is not None and log.events[n.forward].step == n.step for n in nodes), f"{mode}: nodes belong to their replay's forward")
    with check.part("500 replays at once"):
        _, log, _ = record(RUSH, OPGUARD_MODE="full")
        check.sound(log, "500 replays at once")
        check(len(log.of("step.model")) == 503, "500 replays at once: all are there")
        check.figures["records"] = sum(len(e.slots) for e in log.events)
    with check.part("make_graphed_callables"):
        _, log, _ = record(MADE, OPGUARD_MODE="full")
        check.sound(log, "make_graphed_callables")
        check(len(log.of("net.relu")) >= 5, "make_graphed_callables: a forward each")
