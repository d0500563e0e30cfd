"""Kernel coverage of the preflight on a GPU: a GPT and a Triton kernel, by CUPTI and by interception.

  coverage.py --opguard BINARY [--python PYTHON] [--work DIR]

Prints one JSON object; its "ok" says whether every share reaches the goal, "why" what does not. Exit code 0: it does; 1: it does not; 2: a preflight failed.
PYTHON (this interpreter) has a torch with CUDA. Nothing is installed."""

import argparse
import json
import os
import subprocess
import sys
import tempfile

GOAL = 0.99

GPT = """import torch
from torch import nn
torch.manual_seed(0)

class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(nn.functional.gelu(self.up(self.ln2(x))))

class GPT(nn.Module):
    def __init__(self, vocabulary=512, width=256, layers=4, heads=4, length=128):
        super().__init__()
        self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids):
        x = self.token(ids) + self.position(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln(x))

model = GPT().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
for step in range(3):
    ids = torch.randint(0, 512, (8, 129)).cuda(non_blocking=True)
    with torch.autocast("cuda", torch.bfloat16):
        logits = model(ids[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print("loss", loss.item())
"""

TRITON = """import torch, triton
import triton.language as tl

@triton.jit
def scaled(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 3.0, mask=at < n)

def launch(x):
    out = torch.empty_like(x)
    scaled[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
    return out

w = torch.ones(1000, device="cuda", requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.1)
for step in range(3):
    loss = (w * launch(w.detach())).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    y = launch(w.detach() + 1)
side.synchronize()
graph = torch.cuda.CUDAGraph()
static = torch.ones(1000, device="cuda")
launch(static)
torch.cuda.synchronize()
with torch.cuda.graph(graph):
    captured = launch(static) * 2
for _ in range(4):
    graph.replay()
torch.cuda.synchronize()
print(captured.sum().item(), y.sum().item())
"""

PROGRAMS = {"gpt": GPT, "triton": TRITON}
# A kernel that must belong to this expression, and how often.
EXPECTED = {"triton": ("scaled[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)", "scaled")}


def preflight(opguard, python, name, mode, work):
    tree = os.path.join(work, name, mode)
    os.makedirs(tree)
    with open(os.path.join(tree, "train.py"), "w") as file:
        file.write(PROGRAMS[name])
    plan = os.path.join(tree, "plan.json")
    row = {"program": name, "mode": mode, "ok": False}
    try:
        ran = subprocess.run(
            [opguard, "preflight", "-o", plan, "--tree", tree, "--activities", mode, "--quiet", "--", python, "train.py"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=100,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        return dict(row, error="it took more than %d s" % error.timeout)
    row = {"program": name, "mode": mode, "ok": False, "said": ran.stdout.splitlines()}
    if ran.returncode != 0:
        return dict(row, error=ran.stderr[-2000:])
    with open(plan) as file:
        made = json.load(file)
    devices = made.get("devices", {"kernels": 0, "attributed": 0, "dropped": 0, "rest": {}, "sources": []})
    boundaries = [b for b in made["boundaries"] if b.get("kernels")]
    share = devices["attributed"] / devices["kernels"] if devices["kernels"] else 0.0
    row.update(
        devices=devices, share=round(share, 5), boundaries=len(boundaries), of_boundaries=len(made["boundaries"]),
        ok=share >= GOAL and devices["dropped"] == 0,
    )  # fmt: skip
    # The way that was asked for is the way it was seen.
    wanted = "CUPTI" if mode == "cupti" else "interception"
    row["ok"] = row["ok"] and any(wanted in source for source in devices["sources"])
    if name in EXPECTED:
        text, kernel = EXPECTED[name]
        found = [b["kernels"] for b in boundaries if b["text"] == text]
        row["expected_kernel"] = sum(names.get(kernel, 0) for names in found)
        row["ok"] = row["ok"] and row["expected_kernel"] > 0
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--opguard", required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--work")
    asked = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        work = asked.work or temporary
        for name in PROGRAMS:
            for mode in ("cupti", "launches"):
                rows.append(preflight(os.path.abspath(asked.opguard), asked.python, name, mode, work))
    ok = all(row["ok"] for row in rows)
    why = ["%(program)s by %(mode)s: " % row + row.get("error", "share %s, %s" % (row.get("share"), json.dumps(row.get("devices"))))[-1000:] for row in rows if not row["ok"]]
    print(json.dumps({"check": "kernel coverage", "goal": GOAL, "ok": ok, "why": why, "runs": rows}, indent=1))
    return 0 if ok else 2 if any("error" in row for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
