"""What probes cost: a GPT of about 350M parameters, bfloat16, seconds a step, bare and in each mode, eager and compiled.

overhead.py [--layers N] [--width N] [--batch N] [--length N] [--steps N] [--only eager|compiled] [--profile]. Prints one JSON object: {"check": "overhead", "passed": true,
"parameters", "steps": {"eager": {"bare": seconds, "off", "sdc", "default", "full"}, "compiled": {...}}, "times": the same divided by bare}.
--profile: one step more of each under torch.profiler, "kernels": {"eager": {"full": {"ours": [number, ms], "theirs": [number, ms], "thread_ms": ms of
the program's thread until all is launched}}}. Passed where every program ran; the goals are the reader's to compare: full 1.3, default 1.15, sdc 1.00."""

import argparse
import json
import sys

from program import Check, record, run_program

SOURCE = r"""
import json, math, time, torch.nn.functional as F
PROBED, COMPILED, LAYERS, WIDTH, BATCH, LENGTH, STEPS, PROFILED = SETTINGS
if not PROBED:
    def og(boundary, x): return x
torch.manual_seed(0)
torch.backends.cuda.matmul.allow_tf32 = True
class Block(torch.nn.Module):
    def __init__(self, n, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = torch.nn.LayerNorm(n), torch.nn.LayerNorm(n)
        self.qkv, self.out = torch.nn.Linear(n, 3 * n), torch.nn.Linear(n, n)
        self.up, self.down = torch.nn.Linear(n, 4 * n), torch.nn.Linear(4 * n, n)
    def forward(self, x):
        B, T, C = x.shape
        q, k, v = og("b.split", og("b.qkv", self.qkv)(og("b.ln1", self.ln1)(x)).split)(C, dim=2)
        q = og("b.tq", og("b.vq", q.view)(B, T, self.heads, C // self.heads).transpose)(1, 2)
        k = og("b.tk", og("b.vk", k.view)(B, T, self.heads, C // self.heads).transpose)(1, 2)
        v = og("b.tv", og("b.vv", v.view)(B, T, self.heads, C // self.heads).transpose)(1, 2)
        y = og("b.attention", F.scaled_dot_product_attention)(q, k, v, is_causal=True)
        y = og("b.join", og("b.ty", y.transpose)(1, 2).reshape)(B, T, C)
        x = og("b.add1", x) + og("b.out", self.out)(y)
        return og("b.add2", x) + og("b.down", self.down)(og("b.gelu", F.gelu)(og("b.up", self.up)(og("b.ln2", self.ln2)(x))))
class GPT(torch.nn.Module):
    def __init__(self, vocab=50304):
        super().__init__()
        self.wte, self.wpe = torch.nn.Embedding(vocab, WIDTH), torch.nn.Embedding(LENGTH, WIDTH)
        self.blocks = torch.nn.ModuleList(Block(WIDTH, WIDTH // 64) for _ in range(LAYERS))
        self.ln, self.head = torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, vocab, bias=False)
        self.head.weight = self.wte.weight
    def forward(self, ids, targets):
        x = og("g.add", og("g.wte", self.wte)(ids)) + og("g.wpe", self.wpe)(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = og("g.block", block)(x)
        logits = og("g.head", self.head)(og("g.ln", self.ln)(x))
        return og("g.loss", F.cross_entropy)(og("g.view", logits.view)(-1, logits.size(-1)), og("g.targets", targets.view)(-1))
model = GPT().cuda().bfloat16()
step = torch.compile(model) if COMPILED else model
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
ids = torch.randint(50304, (BATCH, LENGTH), device="cuda")
targets = torch.randint(50304, (BATCH, LENGTH), device="cuda")
def train():
    loss = og("t.model", step)(ids, targets)
    og("t.backward", loss.backward)()
    og("t.step", optimizer.step)()
    og("t.zero", optimizer.zero_grad)()
    return loss
times = []
for i in range(STEPS + 3):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    loss = train()
    torch.cuda.synchronize()
    times.append(time.perf_counter() - begin)
times = sorted(times[3:])
kernels = {"ours": [0, 0.0], "theirs": [0, 0.0]}
if PROFILED:
    begin = time.perf_counter()
    train()
    kernels["thread_ms"] = (time.perf_counter() - begin) * 1000
    torch.cuda.synchronize()
    with torch.profiler.profile() as profile:
        train()
        torch.cuda.synchronize()
    for event in profile.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            of = kernels["ours" if "opguard" in event.name else "theirs"]
            of[0] += 1
            of[1] += event.time_range.elapsed_us() / 1000
print(json.dumps({"kernels": kernels, "median": times[len(times) // 2], "least": times[0], "loss": loss.item(), "parameters": sum(p.numel() for p in model.parameters())}))
"""

parser = argparse.ArgumentParser()
for name, default in (("layers", 24), ("width", 1024), ("batch", 8), ("length", 1024), ("steps", 10)):
    parser.add_argument("--" + name, type=int, default=default)
parser.add_argument("--only", choices=("eager", "compiled"))
parser.add_argument("--profile", action="store_true", help="one step more of each, under torch.profiler")
args = parser.parse_args()

with Check("overhead") as check:
    check.figures["steps"], check.figures["times"], check.figures["lost"] = {}, {}, {}
    check.figures["operators"] = {}
    print(f"{'seconds a step':24}{'median':>10}{'of bare':>10}", file=sys.stderr)
    for kind in ("eager", "compiled"):
        if args.only not in (None, kind):
            continue
        seconds, times = check.figures["steps"].setdefault(kind, {}), check.figures["times"].setdefault(kind, {})
        for mode in ("bare", "off", "sdc", "default", "full"):
            if kind == "compiled" and mode == "off":
                continue
            with check.part(f"{kind} {mode}"):
                settings = (mode != "bare", kind == "compiled", args.layers, args.width, args.batch, args.length, args.steps, args.profile)
                source = f"SETTINGS = {settings!r}\n" + SOURCE
                if mode in ("bare", "off"):
                    lines = run_program("import torch\n" + source, env={"OPGUARD_MODE": mode}).stdout.splitlines()
                else:
                    lines, log, _ = record(source, OPGUARD_MODE=mode)
                    check(log.closed, f"{kind} {mode}: the log is closed")
                    check.figures["lost"][f"{kind} {mode}"] = log.lost
                    # None in compiled code before torch 2.13: then its times say nothing.
                    check.figures["operators"][f"{kind} {mode}"] = sum(e.kind == "op" for e in log.events)
                found = json.loads(lines[-1])
                seconds[mode] = found["median"]
                if "bare" in seconds:
                    times[mode] = found["median"] / seconds["bare"]
                check.figures["parameters"] = found["parameters"]
                said = ""
                if args.profile:
                    check.figures.setdefault("kernels", {}).setdefault(kind, {})[mode] = found["kernels"]
                    ours, theirs = found["kernels"]["ours"], found["kernels"]["theirs"]
                    said = f"  ours {ours[0]} kernels {ours[1]:.1f} ms, theirs {theirs[0]} {theirs[1]:.1f} ms, the thread {found['kernels']['thread_ms']:.1f} ms"
                print(f"{kind + ' ' + mode:24}{seconds[mode]:10.4f}{times.get(mode, 0):10.3f}{said}", file=sys.stderr)
