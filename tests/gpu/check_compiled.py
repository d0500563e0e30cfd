"""torch.compile on the GPU, with and without CUDA graphs: the same graphs, captures and results as the bare program, and eager's records.
Triton kernels of the program's own."""

import json

import torch
from program import Check, record, run_program

SOURCE = r"""
import json, torch.nn.functional as F
PROBED, MODE = SETTINGS
if not PROBED:
    def og(boundary, x): return x
torch.manual_seed(0)
class Block(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.norm, self.up, self.down = torch.nn.LayerNorm(n), torch.nn.Linear(n, 4 * n), torch.nn.Linear(4 * n, n)
    def forward(self, x):
        n = og("block.len", len)(x.shape)
        h = og("block.up", self.up)(og("block.norm", self.norm)(x))
        return og("block.add", x) + og("block.down", self.down)(og("block.gelu", F.gelu)(h))
model = torch.nn.Sequential(*[Block(128) for _ in range(3)]).cuda()
step = torch.compile(model, mode=MODE, fullgraph=True) if MODE != "eager" else model
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
losses = []
for i in range(8):
    torch.compiler.cudagraph_mark_step_begin()
    loss = step(torch.randn(16, 128, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.item().hex())
found = {"losses": losses}
if MODE != "eager":
    from torch._dynamo.utils import counters
    found.update(skips=counters["inductor"]["cudagraph_skips"], graphs=counters["stats"]["unique_graphs"], breaks=sum(counters["graph_break"].values()))
    from torch._inductor import cudagraph_trees
    manager = cudagraph_trees.get_container(0).tree_manager
    found["captured"] = len(list(manager.roots)) if manager is not None else 0
print(json.dumps(found))
"""

TRITON = r"""
import triton, triton.language as tl, tempfile, importlib.util, os
text = '''
import triton, triton.language as tl
@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)
'''
path = os.path.join(tempfile.mkdtemp(), "kernels.py")
open(path, "w").write(text)
spec = importlib.util.spec_from_file_location("kernels", path)
kernels = importlib.util.module_from_spec(spec)
spec.loader.exec_module(kernels)
from opguard import _rt
x, y = torch.randn(1000, device="cuda"), torch.zeros(1000, device="cuda")
og.writes("triton.double", kernels.double[(8,)])(x, y, 1000, BLOCK=128)
print(*_rt.fingerprint(x.cpu()), *_rt.fingerprint(y.cpu()))
"""


# Before 2.13 probes in compiled code are silent (docs/design/compile.md). Whether they would work is tried and written down, and fails nothing.
TRY_ANYWAY = "from opguard.compiled import probes; probes.ANY_TORCH = True\n"
HANDLED = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 13)


def program(probed, mode, before=""):
    return before + f"SETTINGS = {(probed, mode)!r}\n" + SOURCE


def events_are_eagers(check, log, sites, mode):
    mine = [e.boundary for e in log.events if e.kind == "op"]
    check(mine == sites, f"{mode}: eager's events in eager's order ({len(mine)} beside {len(sites)}; {log.settings.get('opguard_compiled_unprobed')})")
    nodes = [e for e in log.events if e.kind == "node"]
    check(nodes and all(e.forward is not None and log.events[e.forward].boundary == e.boundary for e in nodes), f"{mode}: nodes know their forward events")


with Check("compiled") as check:
    sites = []
    with check.part("eager"):
        _, eager, _ = record(program(True, "eager"), OPGUARD_MODE="full")
        check.sound(eager, "eager")
        sites = [e.boundary for e in eager.events if e.kind == "op"]
    for mode in ("default", "reduce-overhead"):
        with check.part(mode):
            bare = json.loads(run_program("import torch\n" + program(False, mode)).stdout.splitlines()[-1])
            lines, log, _ = record(program(True, mode), OPGUARD_MODE="full")
            probed = json.loads(lines[-1])
            check.figures[mode] = {"bare": bare, "probed": probed, "events": len(log.events)}
            if HANDLED:
                check.sound(log, mode)
            for name in ("skips", "graphs", "breaks"):
                check(probed[name] == bare[name], f"{mode}: {name}: {probed[name]} with probes, {bare[name]} without")
            check((probed["captured"] > 0) == (bare["captured"] > 0), f"{mode}: captured {probed['captured']} with probes, {bare['captured']} without")
            if HANDLED:
                events_are_eagers(check, log, sites, mode)
                continue
            check.figures[mode]["unprobed"] = log.settings.get("opguard_compiled_unprobed")
            tried = []
            try:
                _, log, _ = record(program(True, mode, TRY_ANYWAY), OPGUARD_MODE="full")
                events_are_eagers(lambda good, said: good or tried.append(said), log, sites, mode)
            except Exception as error:
                tried.append(f"{type(error).__name__}: {str(error)[-1500:]}")
            check.figures[mode]["tried on this torch"] = tried or "works"
    with check.part("triton"):
        try:
            import triton  # noqa: F401
        except ImportError:
            check.figures["triton"] = "not here"
        else:
            lines, log, _ = record(TRITON, OPGUARD_MODE="full")
            check.sound(log, "triton")
            (event,) = log.of("triton.double")
            numbers = list(map(int, lines[-1].split()))
            check(event.get("in", "arg0").value == tuple(numbers[:2]), "triton: what it read")
            check(event.names("written") == ["arg1"] and event.get("written", "arg1").value == tuple(numbers[2:]), "triton: what it wrote, and nothing else")
