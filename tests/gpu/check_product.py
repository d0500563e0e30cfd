"""The product on a GPU, as a user has it: `diff` of equal and of unequal trees, `noise` of a kernel that adds in any order, `check` of one run.

Each part makes its trees, runs the commands and reads their answers: exit codes, and the line of source that is named."""

import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from program import Check

from conftest import binary, clean_environment

MODEL = """import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, width, eps=1e-5):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        h = x.float()
        h = h * torch.rsqrt(h.square().mean(-1, keepdim=True) + self.eps)
        return (h * self.weight).type_as(x)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = RMSNorm(width), RMSNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, vocabulary=512, width=128, layers=2, heads=4, length=64):
        super().__init__()
        self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = RMSNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids):
        x = self.token(ids) + self.position(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
"""
TRAIN = """import torch
from model import GPT
from torch import nn

torch.manual_seed(0)
torch.use_deterministic_algorithms(True)
model = GPT().cuda()
step_of = COMPILE(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
for step in range(4):
    ids = torch.randint(0, 512, (8, 65)).cuda(non_blocking=True)
    with torch.autocast("cuda", torch.bfloat16):
        logits = step_of(ids[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print("loss", loss.item())
"""
EAGER, COMPILED = TRAIN.replace("COMPILE(model)", "model"), TRAIN.replace("COMPILE(model)", "torch.compile(model)")
GRAPHED = """import torch
from model import GPT
from torch import nn

torch.manual_seed(0)
model = GPT().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
ids = torch.zeros(8, 65, dtype=torch.long, device="cuda")


def train():
    optimizer.zero_grad(set_to_none=True)
    logits = model(ids[:, :-1])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    return loss


warm = torch.cuda.Stream()
warm.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(warm):
    for _ in range(3):
        train()
torch.cuda.current_stream().wait_stream(warm)
graph = torch.cuda.CUDAGraph()
optimizer.zero_grad(set_to_none=True)
with torch.cuda.graph(graph):
    loss = train()
for step in range(4):
    ids.copy_(torch.randint(0, 512, (8, 65)))
    graph.replay()
    print("loss", loss.item())
"""
# index_add_ adds by atomics: what comes first is the device's.
ATOMIC = """import torch

torch.manual_seed(0)
weight = torch.nn.Parameter(torch.randn(1 << 16, device="cuda"))
optimizer = torch.optim.SGD([weight], lr=0.1)
index = torch.randint(0, 16, (1 << 16,), device="cuda")
for step in range(3):
    sums = torch.zeros(16, device="cuda")
    sums = sums.index_add(0, index, weight * weight)
    loss = sums.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", loss.item())
"""
FAULTS = {
    "eps": ("model.py", "eps=1e-5", "eps=1e-6", ("RMSNorm", "eps")),
    "float": ("model.py", "h = x.float()", "h = x.bfloat16().float()", ("x.bfloat16()",)),
    "backward": ("model.py", "nn.functional.gelu(self.up", "nn.functional.gelu(0.5 * self.up", ("0.5 * self.up",)),
}


def tree(folder, train, fault=None):
    folder = Path(folder)
    folder.mkdir(parents=True)
    files = {"model.py": MODEL, "train.py": train}
    if fault:
        name, old, new, _ = FAULTS[fault]
        assert old in files[name]
        files[name] = files[name].replace(old, new, 1)
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def opguard(*words, cwd=None):
    ran = subprocess.run(
        [str(binary("opguard")), *map(str, words)], cwd=cwd, capture_output=True, text=True, timeout=220, env={**clean_environment(), "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    )
    return ran.returncode, ran.stdout, ran.stderr


def answer(code, out, err):
    return f"exit {code}: {out[-1500:]} {err[-1500:]}"


def diff(check, work, name, train, fault):
    """Two runs: equal ones are identical, unequal ones diverge where the fault is."""
    a, b = tree(work / name / "a", train), tree(work / name / "b", train, fault)
    made = work / name / "report.json"
    code, out, err = opguard("diff", a, b, "--json", made, "--", sys.executable, "train.py")
    check(code == (1 if fault else 0), f"{name}: {answer(code, out, err)}")
    check.figures[name] = out.strip().splitlines()[:8]
    if fault:
        check(any(word in out for word in FAULTS[fault][3]), f"{name}: the fault is not named: {out[-1500:]}")
    check("was overwritten" not in out, f"{name}: no memory is overwritten in this program: {out[-1500:]}")
    check("opguard_faults" not in err and made.exists(), f"{name}: a report, and no fault of the runtime: {err[-500:]}")


def noise(check, work):
    folder = tree(work / "noise" / "a", ATOMIC)
    code, out, err = opguard("noise", folder, "--", sys.executable, "train.py")
    check(code in (0, 1) and "index_add" in out, f"noise: {answer(code, out, err)}")
    check.figures["noise"] = out.strip().splitlines()[:12]


def one_run(check, work, name, train, wanted):
    """`opguard check`: a sound run keeps the rules; one that clears its gradients after the backward pass does not."""
    folder = tree(work / name / "a", train)
    made = work / name / "check.json"
    code, out, err = opguard("check", "--json", made, "--", sys.executable, "train.py", cwd=folder)
    check(code == (1 if wanted else 0), f"{name}: {answer(code, out, err)}")
    check.figures[name] = out.strip().splitlines()[:12]
    if wanted:
        check(wanted in out, f"{name}: {wanted!r} is not named: {out[-1500:]}")
    if made.exists():
        check.figures[name + " json"] = {key: value for key, value in json.loads(made.read_text()).items() if isinstance(value, (int, str, bool))}


with Check("product") as check:
    if binary("opguard") is None:
        print("not tried: this build has no opguard")
        sys.exit(77)
    work = Path(tempfile.mkdtemp(prefix="opguard-gpu-"))
    late = EAGER.replace("    optimizer.zero_grad()\n    loss.backward()\n", "    loss.backward()\n    optimizer.zero_grad()\n")
    parts = [
        ("equal", diff, ("equal", EAGER, None)),
        ("eps", diff, ("eps", EAGER, "eps")),
        ("float", diff, ("float", EAGER, "float")),
        ("backward", diff, ("backward", EAGER, "backward")),
        ("compiled equal", diff, ("compiled equal", COMPILED, None)),
        ("compiled eps", diff, ("compiled eps", COMPILED, "eps")),
        ("graphed equal", diff, ("graphed equal", GRAPHED, None)),
        ("graphed eps", diff, ("graphed eps", GRAPHED, "eps")),
        ("noise", noise, ()),
        ("one run", one_run, ("one run", EAGER, None)),
        ("cleared", one_run, ("cleared", late, "train.py")),
    ]

    def tried(part):
        name, call, words = part
        with check.part(name):
            call(check, work, *words)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(tried, parts))
