"""`opguard prove` where values decide: experts by their scores, slots by counting, memory that is put over, attention by delta."""

import json
import subprocess
import sys

import pytest

from conftest import binary

pytest.importorskip("torch")
OPGUARD = binary("opguard")


def verdict(folder, text, *options):
    path, written = folder / "plan.py", folder / "result.json"
    path.write_text(text)
    ran = subprocess.run([OPGUARD, "prove", path, "--python", sys.executable, "--json", written, *options], capture_output=True, text=True, timeout=300)
    assert written.exists(), ran.stderr
    result = json.loads(written.read_text())
    return result["verdict"], ran.stdout, result


# Tokens go to the expert of their greatest score, or of their id; each expert takes `cap` of a rank's tokens.
EXPERTS = """import torch, torch.nn.functional as F, torch.distributed as dist
WORLD, DIMS, TOKENS = 2, dict(tokens=4, hidden=2, experts=2, cap=1), dict(ids="experts")
def route(x, gate, ids, d):
    p = (x @ gate).softmax(-1)
    %s
    mask = F.one_hot(e, d["experts"]).to(x.dtype)
    slot = ((mask.cumsum(0) - 1) * mask).sum(-1).long()
    keep = mask * (slot < d["cap"])[:, None]
    return w[:, None, None] * keep[:, :, None] * (slot[:, None] == torch.arange(d["cap"])).to(x.dtype)[:, None, :]
class AllToAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.empty_like(x)
        dist.all_to_all_single(y, x.contiguous())
        return y
    @staticmethod
    def backward(ctx, g):
        return AllToAll.apply(g)
def layer(x, gate, w1, ids, d, there=lambda z: z, back=lambda z: z):
    c = route(x, gate, ids, d)
    z = there(torch.einsum("tes,th->esh", (c > 0).to(x.dtype), x))
    return torch.einsum("tes,esh->th", c, back(torch.bmm(z, w1).relu()))
def build(d, parts, run):
    n = d["tokens"] // parts
    s = dict(x=torch.randn(n, d["hidden"]), gate=torch.randn(d["hidden"], d["experts"], requires_grad=True),
             w1=torch.randn(d["experts"] // parts, d["hidden"], d["hidden"], requires_grad=True))
    ids = torch.randint(0, d["experts"], (n,))
    def step():
        loss = run(s["x"], s["gate"], s["w1"], ids, d).square().sum()
        loss.backward()
        gate = s["gate"].grad
        if parts > 1:
            dist.all_reduce(gate)
        return {"grad:gate": gate, "grad:w1": s["w1"].grad}
    return dict(state=s, tokens=dict(ids=ids), step=step)
def logical(d):
    def run(x, gate, w1, ids, d):
        return torch.cat([layer(h, gate, w1, i, d) for h, i in zip(x.chunk(WORLD), ids.chunk(WORLD))])
    return build(d, 1, run)
def plan(rank, d):
    def run(x, gate, w1, ids, d):
        there = lambda z: AllToAll.apply(z).transpose(0, 1).reshape(1, -1, d["hidden"])
        back = lambda z: AllToAll.apply(z.view(1, WORLD, d["cap"], -1).transpose(0, 1).reshape(d["experts"], d["cap"], -1))
        return layer(x, gate, w1, ids, d, there, back)
    return dict(build(d, WORLD, run), place=lambda n, full: full if n == "gate" else full.chunk(WORLD)[rank])
"""
BY_SCORE = "w, e = (t[:, 0] for t in p.topk(1, -1))"
BY_ARGMAX = "e = p.argmax(-1); w = p.gather(-1, e[:, None])[:, 0]"
BY_MAXIMUM = "e = p.max(-1).indices; w = p.gather(-1, e[:, None])[:, 0]"
BY_ID = "e = ids; w = p.gather(-1, ids[:, None])[:, 0]"
ROUTES = {"topk": BY_SCORE, "argmax": BY_ARGMAX, "max": BY_MAXIMUM, "hash": BY_ID}


@pytest.mark.parametrize("route", ROUTES)
def test_experts_that_values_choose(tmp_path, route):
    found, text, result = verdict(tmp_path, EXPERTS % ROUTES[route], "--accept-extent-1", "w1")  # an expert a rank
    assert found == "proved", text
    assumed = "no two values that are put in order are equal"
    assert (assumed in result["assumed"]) == (route != "hash")


@pytest.mark.parametrize("route", ["topk", "hash"])
@pytest.mark.parametrize("right, wrong", [
    ("there = lambda z: AllToAll.apply(z)", "there = lambda z: AllToAll.apply(z).flip(0)"),  # another rank's experts
    ("return layer(x, gate, w1, ids, d, there, back)", "return layer(x, -gate, w1, ids, d, there, back)"),  # the worst expert
    ("return layer(x, gate, w1, ids, d, there, back)", "return layer(x.flip(0), gate, w1, ids.flip(0), d, there, back)"),  # the last token has the slot
])
def test_wrong_choices_are_never_proved(tmp_path, route, right, wrong):
    text = EXPERTS % ROUTES[route]
    assert right in text
    found, said, _ = verdict(tmp_path, text.replace(right, wrong))
    assert found == "refuted", said


# Each side orders a row of values by what it is given.
ORDERED = """import torch
WORLD, DIMS = 1, {}
def build(plan):
    x, y = torch.randn(2, 3), torch.randn(2, 3)
    def step():
        return {"out": %s if plan else %s}
    return dict(state=dict(x=x, y=y), tokens={}, step=step)
def logical(d): return build(False)
def plan(rank, d): return build(True)
"""


@pytest.mark.parametrize("plan, model, expected", [
    ("y.gather(-1, x.softmax(-1).topk(2).indices)", "y.gather(-1, x.topk(2).indices)", "proved"),
    ("x.sort(-1).values.flip(-1)", "x.topk(3).values", "proved"),
    ("x.flip(-1).sort(-1).values", "x.sort(-1).values", "proved"),
    ("x[:, [1, 2, 0]].topk(2).values", "x.topk(2).values", "proved"),
    ("y.gather(-1, x.argsort(-1)).gather(-1, x.argsort(-1).argsort(-1))", "y + 0", "proved"),
    ("torch.empty(2, 3).scatter(-1, x.argsort(-1), 1.0)", "torch.ones(2, 3)", "unknown"),
    ("y.gather(-1, (2 * x).argmax(-1)[:, None])", "y.gather(-1, x.argmax(-1)[:, None])", "proved"),
    ("y.gather(-1, (-x).argmax(-1)[:, None])", "y.gather(-1, x.argmax(-1)[:, None])", "refuted"),
    ("y.gather(-1, x.topk(2).indices.flip(-1))", "y.gather(-1, x.topk(2).indices)", "refuted"),
    ("y.gather(-1, (x * x).topk(2).indices)", "y.gather(-1, x.topk(2).indices)", "refuted"),
    ("x.sort(-1).values", "x.sort(-1, descending=True).values", "refuted"),
    ("x[:, :1].expand(2, 3).argmax(-1) * 1.0", "torch.zeros(2)", "unknown"),  # equal values have no order
    ("torch.cat([x, y, x + y], -1).argsort(-1) * 1.0", "torch.zeros(2, 9)", "unknown"),  # too many orders
    ("x[x > 0].sum()", "x.relu().sum()", "unknown"),  # how many there are depends on values
])
def test_orders_of_values(tmp_path, plan, model, expected):
    found, text, _ = verdict(tmp_path, ORDERED % (plan, model))
    assert found == expected, text


MEMORY = """import torch
WORLD, DIMS = 1, {}
def build(plan):
    x, order = torch.randn(4), torch.tensor([2, 0, 3, 1])
    def step():
        if not plan:
            return {"out": x[order.argsort()]}
        out = torch.empty(4)
        %s
        return {"out": out}
    return dict(state=dict(x=x), tokens={}, step=step)
def logical(d): return build(False)
def plan(rank, d): return build(True)
"""


@pytest.mark.parametrize("line, expected", [
    ("out[order] = x", "proved"),
    ("out.scatter_(0, order, x)", "proved"),
    ("out.index_copy_(0, order, x)", "proved"),
    ("out[order[:3]] = x[:3]; out[1] = x[3]", "proved"),
    ("out[order] = x.flip(0)", "refuted"),
    ("out[order[:3]] = x[:3]", "refuted"),  # one is never written
    ("out[order[:3]] = x[:3]; out = out * 1", "unknown"),
    ("out.index_put_((order,), x, accumulate=True)", "unknown"),  # added to what nobody wrote
])
def test_fresh_memory_that_is_put_over(tmp_path, line, expected):
    found, text, _ = verdict(tmp_path, MEMORY % line)
    assert found == expected, text


# Attention's gradient: by the rows of the output on the plan's side (delta), by autograd on the model's.
DELTA = """import torch, torch.distributed as dist
WORLD, DIMS = 2, dict(rows=2, width=2)
class Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v):
        p = (q @ k.T).softmax(-1)
        o = p @ v
        ctx.save_for_backward(q, k, v, p, o)
        return o
    @staticmethod
    def backward(ctx, g):
        q, k, v, p, o = ctx.saved_tensors
        delta = (g * o).sum(-1, keepdim=True)
        s = p * (g @ v.T - delta)
        return s @ k, s.T @ q, p.T @ g
def build(d, attend, finish):
    n = d["width"]
    s = {k: torch.randn(*shape, requires_grad=True) for k, shape in dict(x=(d["rows"], n), w=(n, 3 * n), u=(n, n)).items()}
    def step():
        loss = (attend(*(s["x"].tanh() @ s["w"]).chunk(3, -1)) @ s["u"]).tanh().square().sum()
        loss.backward()
        finish()
        return {"loss": loss, **{"grad:" + k: t.grad for k, t in s.items()}}
    return dict(state=s, tokens={}, step=step)
def logical(d): return build(d, lambda q, k, v: (q @ k.T).softmax(-1) @ v, lambda: None)
def plan(rank, d): return build(d, Attention.apply, dist.barrier)
"""


def test_attention_by_delta_is_proved_through_what_is_before_it(tmp_path):
    found, text, _ = verdict(tmp_path, DELTA)
    assert found == "proved", text


@pytest.mark.parametrize("right, wrong", [
    ("(g * o).sum(-1, keepdim=True)", "(g * o).sum(0, keepdim=True)"),
    ("g @ v.T - delta", "g @ v.T + delta"),
    ("s.T @ q, p.T @ g", "s @ q, p.T @ g"),
    ("delta = (g * o)", "delta = (g * v)"),
])
def test_a_wrong_delta_is_never_proved(tmp_path, right, wrong):
    assert right in DELTA
    found, text, _ = verdict(tmp_path, DELTA.replace(right, wrong))
    assert found == "refuted", text
