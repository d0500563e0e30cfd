"""A training program's calls of the CUDA driver, with probes and without: no wait, no event, no order between streams is added; eager (autograd, two
streams, copies, an optimizer), CUDA graphs, torch.compile with and without graphs. driver_recorder.cc records, driver_calls.py compares."""

import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from driver_calls import compare, figures, read
from program import Check, record

from conftest import build_dir, clean_environment

RECORDER = build_dir() / "tests" / "gpu" / "driver_recorder.so"
CONTROL = """
import ctypes, os
driver_recorder = ctypes.CDLL(os.environ["LD_PRELOAD"])
"""
WRITE = """
torch.cuda.synchronize()
driver_recorder.driver_recorder_stop()
assert driver_recorder.driver_recorder_write(os.environ["DRIVER_CALLS"].encode()) == 0
"""
EAGER = """
import torch.nn.functional as F
driver_recorder.driver_recorder_start()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Dropout(.1), torch.nn.LayerNorm(512), torch.nn.Linear(512, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
side, event = torch.cuda.Stream(), torch.cuda.Event()
inputs = [torch.randn(64, 256).pin_memory() for _ in range(4)]
targets = torch.randint(10, (64,)).pin_memory()
for step in range(4):
    x, y = inputs[step].cuda(non_blocking=True), targets.cuda(non_blocking=True)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        noise = og("train.noise", torch.mul)(x, 0.01)
        event.record()
    event.wait()
    # No record_stream: when the allocator then gives memory again is a matter of time, and so are its calls. The next step's wait_stream does.
    x = og("train.add", torch.add)(x, noise)
    loss = og("train.loss", F.cross_entropy)(og("train.model", model)(x), y)
    og("train.backward", loss.backward)()
    og("train.clip", torch.nn.utils.clip_grad_norm_)(model.parameters(), 1.0)
    og("train.step", optimizer.step)()
    optimizer.zero_grad()
    print(loss.item().hex())
"""
GRAPH = """
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
x = torch.zeros(32, 512, device="cuda")
def step():
    optimizer.zero_grad(set_to_none=True)
    loss = og("step.loss", og("step.model", model)(x).square().mean)()
    og("step.backward", loss.backward)()
    optimizer.step()
    return loss
warm = torch.cuda.Stream()
warm.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(warm):
    for _ in range(3): step()
torch.cuda.current_stream().wait_stream(warm)
og("mark", torch.relu)(x)
driver_recorder.driver_recorder_start()
graph = torch.cuda.CUDAGraph()
optimizer.zero_grad(set_to_none=True)
with torch.cuda.graph(graph):
    loss = step()
for i in range(10):
    x.copy_(torch.randn(32, 512))
    og("replay", graph.replay)()
    print(loss.item().hex())
"""
COMPILED = """
torch.manual_seed(0)
class Block(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.norm, self.up, self.down = torch.nn.LayerNorm(n), torch.nn.Linear(n, 4 * n), torch.nn.Linear(4 * n, n)
    def forward(self, x):
        return x + og("b.down", self.down)(og("b.gelu", torch.nn.functional.gelu)(og("b.up", self.up)(og("b.norm", self.norm)(x))))
model = torch.nn.Sequential(*[Block(128) for _ in range(2)]).cuda()
step = torch.compile(model, mode=MODE, fullgraph=True)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
inputs = [torch.randn(16, 128, device="cuda") for _ in range(12)]
for i, x in enumerate(inputs):
    if i == 8:  # compiled and captured
        torch.cuda.synchronize()
        driver_recorder.driver_recorder_start()
    torch.compiler.cudagraph_mark_step_begin()
    loss = step(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
PROGRAMS = {
    "eager": (EAGER, True),
    "graph": (GRAPH, True),
    "compiled": ("MODE = 'default'\n" + COMPILED, False),
    "reduce-overhead": ("MODE = 'reduce-overhead'\n" + COMPILED, False),
}


def both(source, folder):
    """(bare calls, probed calls, bare output, probed output)"""
    env = {"LD_PRELOAD": str(RECORDER), "DRIVER_RECORDER_OURS": "/opguard/_rt.", "DRIVER_CALLS": str(folder / "probed")}
    said, _, _ = record(CONTROL + source + WRITE, OPGUARD_MODE="full", **env)
    program = "import torch\ndef og(boundary, x): return x\n" + CONTROL + source + WRITE
    bare = subprocess.run([sys.executable, "-c", program], env={**clean_environment(), **env, "DRIVER_CALLS": str(folder / "bare")},
                          capture_output=True, text=True, timeout=120)  # fmt: skip
    if bare.returncode:
        raise RuntimeError(bare.stderr[-2000:])
    return read(folder / "bare"), read(folder / "probed"), bare.stdout.splitlines(), said


if platform.machine() != "x86_64":
    sys.exit(print("skipped: the recorder is for x86-64") or 77)
with Check("driver_calls") as check:
    for name, (source, kernels) in PROGRAMS.items():
        with check.part(name):
            bare, probed, expected, said = both(source, Path(tempfile.mkdtemp(prefix="opguard-calls-")))
            check(expected == said, f"{name}: the losses are the bare program's")
            for why in compare(bare, probed, kernels=kernels):
                check(False, f"{name}: {why}")
            check.figures[name] = figures(bare, probed)
