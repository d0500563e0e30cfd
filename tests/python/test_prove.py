"""`opguard prove` on small plans: proved, refuted, unknown, bad input, and what was once proved wrongly."""

import ctypes
import json
import re
import subprocess
import sys

import pytest

from conftest import ROOT, binary

pytest.importorskip("torch")
OPGUARD = binary("opguard")


def has_z3():
    try:
        ctypes.CDLL("libz3.so.4")
    except OSError:
        return False
    return True


Z3 = has_z3()

# y = relu(x @ w) @ v, its inner dimension cut over two ranks.
PLAN = """import torch, torch.distributed as dist
DIMS, WORLD = dict(rows=3, width=2, inner=4), 2
CUT = {"w": 1, "v": 0}
class Copy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)
    @staticmethod
    def backward(ctx, grad):
        grad = grad.clone()
        dist.all_reduce(grad)  # BACKWARD
        return grad
def build(d, parts):
    state = {"x": torch.randn(d["rows"], d["width"]), "w": torch.randn(d["width"], d["inner"] // parts), "v": torch.randn(d["inner"] // parts, d["width"])}
    for t in state.values(): t.requires_grad_()
    def step():
        x = state["x"].tanh()
        if parts > 1: x = Copy.apply(x)
        y = (x @ state["w"]).relu() @ state["v"]
        if parts > 1:
            y = y.clone()
            with torch.no_grad(): dist.all_reduce(y)  # FORWARD
        loss = y.square().mean()
        y.backward(y.detach() * 2 / y.numel())  # of the mean, by hand
        return {"loss": loss.detach(), **{"grad:" + n: t.grad for n, t in state.items()}}
    return dict(state=state, tokens={}, step=step)
def logical(d): return build(d, 1)
def plan(rank, d):
    return dict(build(d, WORLD), place=lambda name, full: full.chunk(WORLD, CUT[name])[rank] if name in CUT else full)
"""


def prove(path, *options):
    """(exit code, stdout, result)"""
    written = path.parent / "result.json"
    ran = subprocess.run([OPGUARD, "prove", path, "--python", sys.executable, "--json", written, *options], capture_output=True, text=True, timeout=300)
    return ran.returncode, ran.stdout, json.loads(written.read_text()) if written.exists() else ran.stderr


def plan_file(folder, text):
    path = folder / "mlp.py"
    path.write_text(text)
    return path


def test_a_right_plan_is_proved(tmp_path):
    code, text, result = prove(plan_file(tmp_path, PLAN))
    assert (code, result["verdict"]) == (0, "proved"), result
    assert text.startswith("proved: the plan computes what its model computes, over the reals\n")
    assert result["outputs"] == 8 and "difference" not in result


def test_a_missing_collective_is_refuted_with_its_statement(tmp_path):
    code, text, result = prove(plan_file(tmp_path, PLAN.replace("dist.all_reduce(grad)  # BACKWARD", "pass  # BACKWARD")))
    assert (code, result["verdict"]) == (1, "refuted"), result
    found = result["difference"]
    assert found["output"] == "grad:x" and found["logical"] != found["plan"] and found["point"]
    lines = PLAN.splitlines()
    named = {lines[found[key]["line"] - 1].strip() for key in ("made", "passed")}
    assert named <= {"grad = grad.clone()", 'y = (x @ state["w"]).relu() @ state["v"]'}, named


def test_other_dims(tmp_path):
    assert prove(plan_file(tmp_path, PLAN), "--dims", "inner=8,rows=2")[0] == 0


def test_what_is_captured_can_be_kept(tmp_path):
    path = plan_file(tmp_path, PLAN)
    assert prove(path, "--work", tmp_path / "kept")[0] == 0
    ran = subprocess.run([OPGUARD, "prove", "--captured", tmp_path / "kept"], capture_output=True, text=True)
    assert ran.returncode == 0 and ran.stdout.startswith("proved")
    cut = tmp_path / "kept" / "rank-1.json"
    cut.write_text(cut.read_text()[:-10])
    ran = subprocess.run([OPGUARD, "prove", "--captured", tmp_path / "kept"], capture_output=True, text=True)
    assert ran.returncode == 3 and "rank-1.json: is no JSON, or not whole" in ran.stderr


def test_bad_input_is_one_line(tmp_path):
    code, text, error = prove(plan_file(tmp_path, PLAN.replace("def plan(", "def plans(")))
    assert code == 3 and text == "" and "mlp.py:" in error and "plan" in error
    assert prove(tmp_path / "none.py")[0] == 3


ONE = """import torch
DIMS, WORLD = dict(vocab=5), 2
def build(roundly):
    ids, w = torch.tensor([1, 3]), torch.randn(4)
    def step():
        h = ids / 2
        h = %s if roundly else h
        return {"out": h, "new:w": w * 2}
    return dict(state={"w": w}, tokens={"ids": ids}, step=step)
def logical(d): return build(True)
def plan(rank, d):
    %s
"""


@pytest.mark.parametrize("rounding, verdict", [("h.floor()", "refuted"), ("(w * ids).floor()", "unknown"), ("h.long().float()", "unknown"), ("h.to(torch.int32) * 1.0", "unknown")])
def test_rounding_is_no_proof(tmp_path, rounding, verdict):
    text = ONE.replace("torch.randn(4)", "torch.randn(2)")
    code, _, result = prove(plan_file(tmp_path, text % (rounding, "return build(False)")))
    assert (code, result["verdict"]) == ({"refuted": 1, "unknown": 2}[verdict], verdict), result


@pytest.mark.parametrize("fresh, code", [("torch.empty(2)", 2), ("torch.empty(2).fill_(3.0)", 0), ("torch.empty(2).copy_(torch.tensor([3.0, 3.0]))", 0), ("torch.zeros(2).add_(3)", 0)])
def test_memory_that_nobody_wrote_is_no_number(tmp_path, fresh, code):
    text = ONE.replace("h = ids / 2", "h = ids / 2 + (torch.full((2,), 3.0) if roundly else %s).pow(2)" % fresh)
    found = prove(plan_file(tmp_path, text % ("h", "return build(False)")))
    assert found[0] == code, found


def test_parts_that_are_not_the_whole_are_refuted(tmp_path):
    both = """found = build(True)
    found["state"]["w"] = w = torch.randn(2)
    return dict(found, step=lambda: {"out": found["tokens"]["ids"] / 2, "new:w": w * 2}, place=lambda n, full: full[:2])"""
    code, _, result = prove(plan_file(tmp_path, ONE % ("h", both)))
    assert (code, result["verdict"]) == (1, "refuted"), result
    assert result["why"] == "no rank has element 2 of the model's new:w"


def test_the_meanings_are_torchs():
    ran = subprocess.run([OPGUARD, "prove", "--rules", "--python", sys.executable], capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "WRONG" not in ran.stdout and " as torch computes them" in ran.stdout
    assert "operators with a meaning that no case runs: none" in ran.stdout
    assert "collectives with a meaning that no case compares: none" in ran.stdout
    whole = re.search(r"^(\d+) cases of (\d+) of collectives as gloo moves them, (\d[\d,]*) numbers", ran.stdout, re.M)
    assert int(whole[1]) == int(whole[2]) >= 200 and int(whole[3].replace(",", "")) >= 7000
    lacking = {line.split(", ranks ")[0] for line in ran.stdout.splitlines() if line.startswith("not compared, ")}
    assert lacking - {"not compared, all_gather_into_tensor, stacked", "not compared, reduce_scatter_tensor, stacked"} == set()
    if Z3:
        proved = re.search(r"^algebra, proved by Z3 [0-9.]+: (\d+) of (\d+) identities, (\d+) of (\d+) calls on random terms: ", ran.stdout, re.M)
        assert proved and proved[1] == proved[2] and proved[3] == proved[4], ran.stdout
        assert int(proved[1]) >= 30 and int(proved[3]) >= 300, ran.stdout
    else:
        assert "algebra: not proved, since there is no libz3 here (Debian: libz3-4)" in ran.stdout
    names = re.search(r"^(\d+) operators with a meaning: (.*)$", ran.stdout, re.M)
    assert int(names[1]) == len(set(names[2].split())) >= 250
    table = re.search(r"^## Operators\n.*?\n(\|.*?)\n\n", (ROOT / "docs" / "formats" / "prove.md").read_text(), re.M | re.S)[1]
    told = re.findall(r"`(\w+)`", table)
    assert sorted(told) == sorted(names[2].split())


@pytest.mark.parametrize(
    "computed, why",
    [
        ("torch.nn.functional.dropout(w)", "dropout draws random numbers; set its p to 0 for a proof"),
        ("torch.ops.aten.native_dropout(w, 0.5, True)[0]", "dropout draws random numbers; set its p to 0 for a proof"),
        ("torch.fft.rfft(w).real", "no rule for aten._fft_r2c.default"),
        ("w.view(torch.int32) * 1.0", "memory of float32 is read as int32"),
    ],
)
def test_what_has_no_meaning_is_unknown(tmp_path, computed, why):
    code, _, result = prove(plan_file(tmp_path, ONE % (computed, "return build(True)")))
    assert code == 2 and why in result["why"] and result["at"]["line"] == 7, result


def test_plans_with_known_answers():
    cases = ROOT.parent / "shared" / "cases" / "prove" / "exam.json"
    if not cases.is_file():
        pytest.skip(f"no {cases}")
    ran = subprocess.run([sys.executable, ROOT / "bench" / "prove_exam.py", "--opguard", OPGUARD, "--python", sys.executable, "--only", "tpsp,fsdp2,m12_mask_not_shifted,m18_deadlock,e01_max_by_sum"], capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0 and "5 of 5 verdicts as expected, 0 wrongly proved" in ran.stdout, ran.stdout + ran.stderr


# Data parallelism by hand with all that a step of a training has: loss scale, accumulation, checkpointing, tied weights, a norm, clipping, AdamW.
STEP = """import torch, torch.nn as nn, torch.nn.functional as F, torch.distributed as dist
from torch.utils.checkpoint import checkpoint
DIMS, WORLD = dict(batch=4, width=4, vocab=6), 2
class Net(nn.Module):
    def __init__(s, d):
        super().__init__()
        s.e = nn.Embedding(d["vocab"], d["width"]); s.n = nn.LayerNorm(d["width"]); s.a = nn.Linear(d["width"], 8); s.b = nn.Linear(8, d["width"])
    def block(s, x): return x + s.b(F.gelu(s.a(s.n(x))))
    def forward(s, t):
        x = checkpoint(s.block, s.e(t), use_reentrant=False)
        return x @ s.e.weight.t()
def build(d, n, clip, accumulate):
    m = Net(d); o = torch.optim.AdamW(m.parameters(), lr=0.01, weight_decay=0.1)
    t, y = torch.randint(0, d["vocab"], (d["batch"] // n,)), torch.randint(0, d["vocab"], (d["batch"] // n,))
    def step():
        losses = []
        for c, z in zip(t.chunk(accumulate), y.chunk(accumulate)):
            loss = F.cross_entropy(m(c), z) / accumulate
            (loss * 1024).backward(); losses.append(loss.detach())
        for p in m.parameters():
            p.grad.div_(1024)
            if n > 1: dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
        g = nn.utils.clip_grad_norm_(m.parameters(), clip)
        o.step()
        loss = sum(losses)
        if n > 1: dist.all_reduce(loss, op=dist.ReduceOp.AVG)
        return {"loss": loss, "gnorm": g, **{"grad:" + k: p.grad for k, p in m.named_parameters()}, **{"new:" + k: p for k, p in m.named_parameters()}}
    return dict(state=dict(m.named_parameters()), tokens=dict(t=t, y=y), step=step)
def logical(d): return build(d, 1, 1.0, 1)
def plan(rank, d): return dict(build(d, WORLD, 1.0, 2), place=lambda k, f: f.chunk(WORLD)[rank] if k in ("t", "y") else f)
"""

# Experts on two ranks, tokens sent to them and back.
EXPERTS = """import torch, torch.nn.functional as F, torch.distributed as dist
DIMS, WORLD = dict(tokens=8, width=4, vocab=2), 2
# two experts, a token goes to expert t % 2 by its position: even positions to 0, odd to 1; all-to-all there and back
class A2A(torch.autograd.Function):
    @staticmethod
    def forward(c, x):
        y = torch.empty_like(x); dist.all_to_all_single(y, x.contiguous()); return y
    @staticmethod
    def backward(c, g):
        y = torch.empty_like(g); dist.all_to_all_single(y, g.contiguous()); return y
def logical(d):
    x = torch.randn(d["tokens"], d["width"], requires_grad=True); w = torch.randn(2, d["width"], d["width"], requires_grad=True)
    def step():
        y = torch.empty(d["tokens"], d["width"])
        e = F.silu(x[0::2] @ w[0]); o = F.silu(x[1::2] @ w[1])
        y = torch.stack([e, o], 1).reshape(d["tokens"], -1)
        loss = y.square().sum(); loss.backward()
        return {"loss": loss.detach(), "grad:x": x.grad, "grad:w": w.grad}
    return dict(state=dict(x=x, w=w), tokens={}, step=step)
def plan(rank, d):
    n = d["tokens"] // WORLD
    x = torch.randn(n, d["width"], requires_grad=True); w = torch.randn(1, d["width"], d["width"], requires_grad=True)
    def step():
        send = torch.cat([x[0::2], x[1::2]])
        got = A2A.apply(send)
        back = A2A.apply(F.silu(got @ w[0]))
        e, o = back.chunk(2)
        y = torch.stack([e, o], 1).reshape(n, -1)
        loss = y.square().sum(); loss.backward()
        l = loss.detach().clone(); dist.all_reduce(l)
        return {"loss": l, "grad:x": x.grad, "grad:w": w.grad}
    return dict(state=dict(x=x, w=w), tokens={}, step=step, place=lambda k, f: f.chunk(WORLD)[rank])
"""


# Images: a convolution, a norm of groups, maxima, one-hot targets; the plan's optimizer is fused, the model's is not.
IMAGES = """import torch, torch.nn as nn, torch.nn.functional as F, torch.distributed as dist
DIMS, WORLD, TOKENS = dict(batch=4, classes=3), 2, {"t": "classes"}
class Net(nn.Module):
    def __init__(s, d):
        super().__init__()
        s.a = nn.Conv2d(1, 2, 2, padding=1); s.n = nn.GroupNorm(1, 2); s.b = nn.Linear(8, d["classes"])
    def forward(s, x): return s.b(F.max_pool2d(F.mish(s.n(s.a(x))), 2).flatten(1))
def build(d, n):
    m = Net(d); o = torch.optim.AdamW(m.parameters(), lr=0.01, fused=n > 1)
    x, t = torch.randn(d["batch"] // n, 1, 4, 4), torch.randint(0, d["classes"], (d["batch"] // n,))
    def step():
        loss = F.binary_cross_entropy_with_logits(m(x), F.one_hot(t, d["classes"]).float())
        loss.backward()
        for p in m.parameters():
            if n > 1: dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
        o.step()
        return {**{"grad:" + k: p.grad for k, p in m.named_parameters()}, **{"new:" + k: p for k, p in m.named_parameters()}}
    return dict(state=dict(m.named_parameters(), x=x), tokens=dict(t=t), step=step)
def logical(d): return build(d, 1)
def plan(rank, d): return dict(build(d, WORLD), place=lambda k, f: f.chunk(WORLD)[rank] if k in ("x", "t") else f)
"""


@pytest.mark.parametrize(
    "text, right, wrong",
    [(IMAGES, "fused=n > 1)", "fused=n > 1, weight_decay=0.01 * n)"), (STEP, "            if n > 1: dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)", "            pass"), (STEP, "p.grad.div_(1024)", "p.grad.div_(1024 if n == 1 else 512)"), (EXPERTS, "w[0]", "w[0] * 2")],
)
def test_whole_steps(tmp_path, text, right, wrong):
    grant = ["--accept-extent-1", "w"] if text is EXPERTS else []  # a rank has one expert of two
    code, said, result = prove(plan_file(tmp_path, text), *grant)
    assert (code, result["verdict"]) == (0, "proved"), result
    assert ("granted by --accept-extent-1: nothing hides where there is one element, along dimension 0 of w\n" in said) == bool(grant)
    head, mark, tail = text.rpartition("def plan(" if text is EXPERTS else right)
    changed = head + mark + tail.replace(right, wrong) if text is EXPERTS else text.replace(right, wrong)
    code, _, result = prove(plan_file(tmp_path, changed))
    assert (code, result["verdict"]) == (1, "refuted"), result


def test_an_extent_of_one_is_refused_unless_it_is_granted(tmp_path):
    path, kept = plan_file(tmp_path, PLAN), tmp_path / "kept"
    code, text, result = prove(path, "--dims", "inner=2", "--work", kept)
    thin = [{"name": "v", "dimensions": [0], "hides": True}, {"name": "w", "dimensions": [1], "hides": True}]
    assert (code, result["verdict"], result["thin"]) == (2, "unknown", thin)
    assert text.startswith("unknown: equal at these dims, but there is one element along dimension 0 of v, dimension 1 of w: ")

    def again(*options):
        ran = subprocess.run([OPGUARD, "prove", "--captured", kept, *options], capture_output=True, text=True)
        return ran.returncode, ran.stdout + ran.stderr

    assert again("--accept-extent-1", "w")[0] == 2
    for accepted in (["w,v"], []):
        code, text = again("--accept-extent-1", *accepted)
        assert code == 0 and "    granted by --accept-extent-1: nothing hides where there is one element, along dimension 0 of v, dimension 1 of w\n" in text
    code, text = again("--accept-extent-1", "q")
    assert code == 3 and "neither state nor tokens have 'q'" in text


# A dim of 1 may hide too; a dimension that is 1 at all dims hides nothing. Tokens: only where something sums over the one.
EXTENTS = """import torch
DIMS, WORLD = dict(dp=1, rows=2, width=2, vocab=3), ("dp",)
def build(d):
    x, w, t = torch.randn(d["rows"], d["width"], 1), torch.randn(d["width"], 1), torch.randint(0, 3, (2, d["rows"]))
    return dict(state=dict(x=x, w=w), tokens=dict(t=t), step=lambda: {"y": (x[..., 0] @ w).sum(), "z": (t * 2.0)SUM})
def logical(d): return build(d)
def plan(rank, d): return build(d)
"""


@pytest.mark.parametrize("dims, over, refused", [("", "", None), ("rows=1", "", "dimension 0 of x"), ("width=1", "", "dimension 1 of x"), ("rows=1", ".mean(1)", "dimension 1 of t, dimension 0 of x")])
def test_an_extent_that_a_dim_makes_one(tmp_path, dims, over, refused):
    code, _, result = prove(plan_file(tmp_path, EXTENTS.replace("SUM", over)), "--dims", dims)
    assert code == (2 if refused else 0), result
    assert refused is None or refused in result["why"]


# Data parallelism with a sequence for each rank. What sums over the sequences alone is not seen there.
SEQUENCES = """import torch, torch.distributed as dist
DIMS, WORLD = dict(batch=2, seq=3, vocab=4), 2
def build(d, n):
    e, t = torch.randn(4, 2), torch.randint(0, 4, (d["batch"] // n, d["seq"]))
    def step():
        loss = e[t].square()SUM
        if n > 1: dist.all_reduce(loss, op=dist.ReduceOp.AVG)
        return {"loss": loss}
    return dict(state=dict(e=e), tokens=dict(t=t), step=step)
def logical(d): return build(d, 1)
def plan(rank, d): return dict(build(d, WORLD), place=lambda k, f: f.chunk(WORLD)[rank] if k == "t" else f)
"""


@pytest.mark.parametrize("over, code", [(".mean()", 0), (".mean((1, 2)).mean(0)", 2)])
def test_tokens_of_one_sequence(tmp_path, over, code):
    found, text, result = prove(plan_file(tmp_path, SEQUENCES.replace("SUM", over)))
    assert found == code and result["thin"] == [{"name": "t", "dimensions": [0], "hides": code == 2}]
    assert ("more are moved as one is, where there is one element: along dimension 0 of t" in text) == (code == 0)


def test_a_stacked_reduce_scatter_is_captured(tmp_path):
    """The fake group refuses what NCCL takes: parts that are one dimension more than the output."""
    both = """w = torch.randn(4)
    def step():
        part = torch.empty(2)
        torch.distributed.reduce_scatter_tensor(part, (w * 2).reshape(2, 2))
        whole = torch.empty(2, 2)
        torch.distributed.all_gather_into_tensor(whole, part / FACTOR)
        return {"new:w": whole.reshape(4)}
    return dict(state={"w": w}, tokens={}, step=step)"""
    text = ONE.replace('"out": h, ', "") % ("h", both)
    assert prove(plan_file(tmp_path, text.replace("FACTOR", "2")))[0] == 0
    assert prove(plan_file(tmp_path, text.replace("FACTOR", "4")))[0] == 1


# A matrix's inverse has no meaning. Both sides take it of the same matrix, unless the plan takes it of another.
INVERSE = """import torch
DIMS, WORLD = dict(n=3), 2
def build(of):
    a, w = torch.randn(3, 3), torch.randn(3)
    return dict(state=dict(a=a, w=w), tokens={}, step=lambda: {"y": torch.linalg.inv_ex(of(a)).inverse @ w, "n": w.sum() * of(w)[0]})
def logical(d): return build(lambda a: a * 2)
def plan(rank, d): return build(lambda a: PLAN)
"""


@pytest.mark.parametrize("of, options, code, told", [
    ("a + a", [], 2, "no rule for aten.linalg_inv_ex.default"),
    ("a + a", ["--opaque", "linalg_inv_ex"], 0, "granted by --opaque: linalg_inv_ex is a function of its whole inputs"),
    ("a * 3", ["--opaque", "aten.linalg_inv_ex", "--approx", "drop=n"], 2, "what --opaque grants has no numbers"),
    ("a * 3", ["--opaque", "linalg_inv_ex"], 1, "granted by --opaque: linalg_inv_ex"),
    ("a * 2", ["--opaque", "mm"], 3, "--opaque mm: it has a meaning"),
    ("a * 2", ["--approx", "drop=z"], 3, "the model has no such output"),
    ("a * 2", ["--approx", "drop=y", "--approx", "drop=n"], 3, "no output is left to compare"),
])  # fmt: skip
def test_what_is_granted_is_told(tmp_path, of, options, code, told):
    found, text, result = prove(plan_file(tmp_path, INVERSE.replace("PLAN", of)), *options)
    assert found == code, result
    assert told in text + (result if code == 3 else json.dumps(result)), result
    if code == 1:
        assert result["difference"]["output"] == "n" and result["granted"]


def test_an_output_may_be_left_out(tmp_path):
    path = plan_file(tmp_path, PLAN.replace("return {\"loss\": loss.detach(), ", "return {\"loss\": loss.detach() * parts, "))
    assert prove(path)[0] == 1
    code, text, result = prove(path, "--approx", "drop=loss")
    assert code == 0 and result["granted"] == ["granted by --approx: loss is not compared"] == result["assumed"][-1:]
    assert "    granted by --approx: loss is not compared\n" in text and result["outputs"] == 6


def test_a_receive_that_is_read_before_anything_is_sent_waits_for_ever(tmp_path):
    text = EXCHANGE.replace("ORDER", "r = dist.irecv(other, 1 - rank)\n        r.wait()\n        other.mul_(1)\n        out()")
    code, said, result = prove(plan_file(tmp_path, text))
    assert (code, result["verdict"]) == (1, "refuted"), result
    assert "a deadlock: rank 0 waits for a message of rank 1 at mlp.py:12; rank 1 waits for a message of rank 0 at mlp.py:12" in said


def test_messages_come_in_the_order_of_their_receives(tmp_path):
    both = "a, b = torch.empty(1), torch.empty(1)\n        dist.isend(mine, 1 - rank); dist.isend(mine * 2, 1 - rank)\n        dist.irecv(a, 1 - rank); dist.irecv(b, 1 - rank)\n        "
    assert prove(plan_file(tmp_path, EXCHANGE.replace("ORDER", both + "other.copy_(b / 2)")))[0] == 0
    assert prove(plan_file(tmp_path, EXCHANGE.replace("ORDER", both + "other.copy_(b)")))[0] == 1


# Two ranks hand their halves to each other. Both send first, or the second receives first, or neither waits.
EXCHANGE = """import torch, torch.distributed as dist
DIMS, WORLD = dict(n=4), 2
def logical(d):
    w = torch.randn(4)
    return dict(state=dict(w=w), tokens={}, step=lambda: {"s": w.sum()})
def plan(rank, d):
    w = torch.randn(2)
    def step():
        mine, other = w.sum().reshape(1), torch.empty(1)
        def out(): dist.send(mine, 1 - rank)
        def come(): dist.recv(other, 1 - rank)
        ORDER
        return {"s": (mine + other)[0]}
    return dict(state=dict(w=w), tokens={}, step=step, place=lambda k, f: f.chunk(2)[rank])
"""


@pytest.mark.parametrize("order, relies", [("out(); come()", True), ("(out(), come()) if rank == 0 else (come(), out())", False), ("dist.isend(mine, 1 - rank).wait(); come()", False),
    ("r = dist.irecv(other, 1 - rank); dist.isend(mine, 1 - rank).wait(); r.wait()", False),
    ("[r.wait() for r in dist.batch_isend_irecv([dist.P2POp(dist.irecv, other, 1 - rank), dist.P2POp(dist.isend, mine, 1 - rank)])]", False),
])  # fmt: skip
def test_a_send_that_must_not_wait_is_told(tmp_path, order, relies):
    path = plan_file(tmp_path, EXCHANGE.replace("ORDER", order))
    kept = tmp_path / "kept"
    code, text, result = prove(path, "--work", kept)
    assert (code, result["verdict"]) == (0, "proved"), result
    place = "mlp.py:10"
    assert ("a send does not wait for its receiver; else these would for ever: rank 0 at %s, rank 1 at %s\n" % (place, place) in text) == relies
    assert [s["rank"] for s in result.get("relies_on_sends", [])] == ([0, 1] if relies else [])
    page = tmp_path / "page.html"
    ran = subprocess.run([OPGUARD, "prove", "--captured", kept, "--blocking-sends", "--html", page], capture_output=True, text=True)
    assert ran.returncode == int(relies), ran.stdout
    assert ("refuted: a deadlock where sends wait for their receivers: rank 0 at %s, rank 1 at %s" % (place, place) in ran.stdout) == relies
    assert all(("rank %d waits at" % rank in page.read_text()) == relies for rank in (0, 1))


# Clipping in two spellings: min(1, 1 / norm) and 1 / max(norm, 1). Only cases decide.
CLIP = """import torch, torch.distributed as dist
DIMS, WORLD = dict(n=4), 2
def logical(d):
    w = torch.randn(d["n"])
    return dict(state=dict(w=w), tokens={}, step=lambda: {"new:w": w * (1 / w.square().sum().sqrt()).clamp(max=1)})
def plan(rank, d):
    w = torch.randn(d["n"] // WORLD)
    def step():
        total = w.square().sum()
        dist.all_reduce(total)
        return {"new:w": w / total.sqrt().clamp(min=1)}
    return dict(state=dict(w=w), tokens={}, step=step, place=lambda n, full: full.chunk(WORLD)[rank])
"""


@pytest.mark.skipif(not Z3, reason="no libz3 (Debian: libz3-4)")
def test_z3_decides_what_is_left(tmp_path):
    code, said, result = prove(plan_file(tmp_path, CLIP))
    assert (code, result["verdict"]) == (0, "proved"), result
    assert result["solver"]["elements"] == 4, result
    line = f"Z3 {result['solver']['z3']} is right about 4 elements, which it decided"
    assert line in result["assumed"] and line in said


def test_without_z3_it_stays_open_and_says_so(tmp_path):
    code, _, result = prove(plan_file(tmp_path, CLIP), "--solver", "none")
    assert code == 2 and "solver" not in result
    assert result["why"].endswith("no numbers that tell the two apart; there is no Z3 here to be asked (Debian: libz3-4)"), result
    ran = subprocess.run([OPGUARD, "prove", tmp_path / "mlp.py", "--solver", "/nonexistent/libz3.so"], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 3 and "/nonexistent/libz3.so: no libz3 that can be loaded" in ran.stderr


def test_a_wrong_clip_is_refuted_whatever_z3_says(tmp_path):
    code, _, result = prove(plan_file(tmp_path, CLIP.replace("clamp(min=1)", "clamp(min=2)")))
    assert (code, result["verdict"]) == (1, "refuted"), result


def test_the_root_of_a_square_is_no_identity(tmp_path):
    """log(x^2) was 2 log(x), so that the magnitude of x was proved to be x."""
    code, _, result = prove(plan_file(tmp_path, """import torch
DIMS, WORLD = dict(n=2), 1
def build(of):
    x = torch.randn(2)
    return dict(state=dict(x=x), tokens={}, step=lambda: {"y": of(x)})
def logical(d): return build(lambda x: ((x * x).log() / 2).exp())
def plan(rank, d): return build(lambda x: x * 1)
"""))
    assert (code, result["verdict"]) == (1, "refuted"), result
