"""`opguard prove` names the statement: one mistake of each kind, in a plan that has helpers of its own."""

import pytest

pytest.importorskip("torch")

from test_prove import plan_file, prove

# Attention over a sequence that two ranks share, with keys and values of both, and an update behind a norm.
PLAN = """import torch, torch.distributed as dist
DIMS, WORLD = dict(seq=4, width=2), 2
def turned(x, at):
    c, s = at.cos(), at.sin()
    return torch.stack([x[:, 0] * c - x[:, 1] * s, x[:, 0] * s + x[:, 1] * c], -1)
def gathered(x):
    parts = [torch.empty_like(x) for _ in range(WORLD)]
    dist.all_gather(parts, x.detach().contiguous())
    parts[dist.get_rank()] = x
    return torch.cat(parts)
def shared(state):
    for t in state.values():
        if t.grad is not None:
            dist.all_reduce(t.grad)
def build(d, rank, parts):
    state = {"x": torch.randn(d["seq"] // parts, d["width"]), "q": torch.randn(d["width"], d["width"]), "k": torch.randn(d["width"], d["width"])}
    weights = {"q": state["q"].requires_grad_(), "k": state["k"].requires_grad_()}
    rows = torch.arange(d["seq"] // parts) + rank * d["seq"] // parts
    def step():
        q, k = turned(state["x"] @ state["q"], rows), turned(state["x"].detach() @ state["k"].detach(), rows)
        keys = gathered(k) if parts > 1 else k
        loss = (q @ keys.T).softmax(-1)[:, 0].sum() / d["seq"]
        loss.backward()
        if parts > 1:
            shared(weights)
        square = state["q"].grad.square().sum()
        norm = square.sqrt()
        return {"norm": norm}
    return dict(state=state, tokens={}, step=step)
def logical(d): return build(d, 0, 1)
def plan(rank, d):
    return dict(build(d, rank, WORLD), place=lambda name, full: full.chunk(WORLD)[rank] if name == "x" else full)
"""

MISTAKES = {
    # what: (old, new, the line that has to be named)
    "a constant made before the step": ("rows = torch.arange(d[\"seq\"] // parts) + rank * d[\"seq\"] // parts", "rows = torch.arange(d[\"seq\"] // parts)", "rows = torch.arange"),
    "an order": ("return torch.cat(parts)", "return torch.cat(parts[::-1])", "return torch.cat(parts[::-1])"),
    "a factor under a root": ("dist.all_reduce(t.grad)", "dist.all_reduce(t.grad, op=dist.ReduceOp.AVG)", "dist.all_reduce(t.grad, op=dist.ReduceOp.AVG)"),
    "a loss of a part": ("/ d[\"seq\"]", "/ (d[\"seq\"] // parts)", "loss ="),
    "a missing sum": ("            shared(weights)\n", "            pass\n", "square ="),
}


def test_the_plan_is_proved(tmp_path):
    assert prove(plan_file(tmp_path, PLAN))[0] == 0


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_mistake_is_named(tmp_path, mistake):
    old, new, statement = MISTAKES[mistake]
    assert PLAN.count(old) == 1
    text = PLAN.replace(old, new)
    code, printed, result = prove(plan_file(tmp_path, text))
    assert (code, result["verdict"]) == (1, "refuted"), result
    difference = result["difference"]
    named = [text.splitlines()[at["line"] - 1].strip() for at in (difference["made"], *difference["fed"], difference["passed"], difference.get("used", difference["passed"]))]
    assert any(line.startswith(statement) for line in named), (named, printed)


def test_the_line_that_called_a_helper_is_told(tmp_path):
    text = PLAN.replace("dist.all_reduce(t.grad)", "dist.all_reduce(t.grad, op=dist.ReduceOp.AVG)")
    _, printed, result = prove(plan_file(tmp_path, text))
    calling = next(number for number, line in enumerate(text.splitlines(), 1) if line.strip() == "shared(weights)")
    assert result["difference"]["made"]["callers"][0]["line"] == calling
    assert f"    called from mlp.py:{calling}, in step\n" in printed


def test_a_backward_that_only_hands_on_is_told(tmp_path):
    from test_prove import PLAN as columns

    text = columns.replace("        grad = grad.clone()\n        dist.all_reduce(grad)  # BACKWARD\n", "")
    code, printed, result = prove(plan_file(tmp_path, text))
    assert code == 1, printed
    [passed] = [at for at in result["difference"]["fed"] if at["operator"] == "passed"]
    assert text.splitlines()[passed["line"] - 1].strip() == "def backward(ctx, grad):"  # not its decorator
    assert "a backward that handed it on as it was, rank 0" in printed


PIPE = """import torch, torch.distributed as dist
DIMS, WORLD = dict(rows=2), 2
def logical(d):
    state = {"x": torch.randn(d["rows"]), "w": torch.randn(d["rows"])}
    return dict(state=state, tokens={}, step=lambda: {"loss": ((state["x"] * state["w"]).exp() * state["w"]).sum()})
def plan(rank, d):
    state = {"x": torch.randn(d["rows"]), "w": torch.randn(d["rows"])}
    def step():
        if rank == 0:
            made = (state["x"] * state["w"]).exp()
            dist.send(state["x"], 1)
            return {}
        got = torch.empty(d["rows"])
        dist.recv(got, 0)
        return {"loss": (got * state["w"]).sum()}
    return dict(state=state, tokens={}, step=step)
"""


def test_what_was_received_came_from_its_sender(tmp_path):
    code, printed, result = prove(plan_file(tmp_path, PIPE))
    assert code == 1, printed
    lines = PIPE.splitlines()
    fed = [lines[at["line"] - 1].strip() for at in result["difference"]["fed"]]
    assert "dist.send(state[\"x\"], 1)" in fed and result["difference"]["fed"][fed.index("dist.send(state[\"x\"], 1)")]["rank"] == 0
