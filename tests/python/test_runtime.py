"""What is recorded: forward, recompute, backward, accumulation, optimizer; and how a log ends."""

import pytest

from runtime_log import (
    COLLECTIVE, GRADIENTS_TOLD, IN_GRAPH, MODEL_VALUE, PARAMETER, RAISED, UNINITIALISED, UNREADABLE, WANTS_GRADIENT, logs_in, record,
    run_program,
)  # fmt: skip

pytest.importorskip("torch")

TORCH = "import torch\ntorch.manual_seed(0)\n"

# A model with a checkpoint, in-place operators and a foreach optimizer; %s: the probed or the bare text.
TRAIN = TORCH + """
from torch.utils.checkpoint import checkpoint
PROBED = {probed}
P = og if PROBED else (lambda i, x: x)
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(8, 8)
        self.scale = torch.nn.Parameter(torch.ones(8))
    def forward(self, x):
        h = P("block.lin", self.lin)(x)
        h = P("block.gelu", torch.nn.functional.gelu)(h)
        h = P("block.mul", h) * self.scale
        if PROBED:
            h = P("block.iadd", h).iadd(x)
        else:
            h += x
        return h
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = torch.nn.Embedding(11, 8)
        self.a, self.b, self.head = Block(), Block(), torch.nn.Linear(8, 11)
    def forward(self, ids):
        x = P("model.emb", self.emb)(ids)
        x = P("model.a", self.a)(x)
        x = P("model.ckpt", checkpoint)(self.b, x, use_reentrant={reentrant})
        return P("model.head", self.head)(x)
model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=True)
for step in range(2):
    for micro in range(2):
        ids = torch.randint(11, (4, 5))
        logits = P("train.model", model)(ids)
        loss = P("train.loss", torch.nn.functional.cross_entropy)(logits.view(-1, 11), ids.view(-1), reduction="mean")
        P("train.backward", loss.backward)()
        print(loss.item().hex())
    P("train.step", optimizer.step)()
    P("train.zero", optimizer.zero_grad)()
for p in model.parameters():
    print(p.double().sum().item().hex())
"""


@pytest.mark.parametrize("reentrant", [True, False])
def test_training_is_unchanged_and_every_phase_is_recorded(tmp_path, reentrant):
    bare = run_program(TRAIN.format(probed=False, reentrant=reentrant))
    forwarded = run_program(TRAIN.format(probed=True, reentrant=reentrant))
    recorded = run_program(TRAIN.format(probed=True, reentrant=reentrant), tmp_path)
    assert bare.stdout == forwarded.stdout == recorded.stdout
    assert bare.stderr == recorded.stderr
    (log,) = logs_in(tmp_path)
    assert log.closed and log.lost == 0

    forward = [e for e in log.of("block.lin") if e.phase == "forward"]
    recompute = [e for e in log.of("block.lin") if e.phase == "recompute"]
    assert len(forward) == 8 and len(recompute) == 4  # two blocks, of which one is checkpointed
    assert [e.occurrence for e in forward] == list(range(8))
    first = forward[0]
    assert first.names("in") == ["param:weight", "param:bias", "arg0"]
    assert first.get("in", "param:weight").flags & PARAMETER
    # The recomputed values are those of the checkpointed block's first run.
    again = {s.value for e in recompute for s in e.slots if s.name == "arg0"}
    assert again <= {s.value for e in forward for s in e.slots if s.name == "arg0"}

    # Coordinates.
    assert [(e.step, e.micro_batch) for e in log.of("train.loss")] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert log.of("train.loss")[0].scalars == "reduction='mean'"

    # Backward: every node names its forward event, of the same boundary.
    nodes = [e for e in log.events if e.kind == "node"]
    assert {"AddmmBackward0", "GeluBackward0", "MulBackward0", "NllLossBackward0", "EmbeddingBackward0"} <= {
        e.node for e in nodes
    }
    for e in nodes:
        assert e.phase == "backward" and log.events[e.forward].boundary == e.boundary
    mul = next(e for e in nodes if e.node == "MulBackward0")
    assert mul.get("in", "grad0").shape == (4, 5, 8) and mul.get("out", "out0").shape == (4, 5, 8)
    # What one node hands out is what the next one takes.
    outgoing = {s.value for e in nodes for s in e.slots if s.kind == "out"}
    loss_grad = {s.value for e in nodes if e.node == "NllLossBackward0" for s in e.slots if s.kind == "in"}
    incoming = {s.value for e in nodes for s in e.slots if s.kind == "in"}
    # But where a value was used twice the engine adds what comes back: the residuals of 2 blocks, 4 passes.
    assert len(incoming - outgoing - loss_grad) == 8

    losses = [e for e in log.events if e.kind == "loss"]
    assert [e.boundary for e in losses] == ["train.backward"] * 4
    assert losses[0].get("in", "root0").value == log.of("train.loss")[0].get("out", "out0").value
    assert losses[0].get("in", "root0").flags & MODEL_VALUE

    accumulates = [e for e in log.events if e.kind == "accumulate"]
    parameters = 9
    # A reentrant checkpoint makes a leaf of its input, and passes its gradient on.
    passed_on = [e for e in accumulates if e.names("out") == ["grad"]]
    assert all(e.get("out", "grad").shape == (4, 5, 8) for e in passed_on)
    assert len(passed_on) == (4 if reentrant else 0)
    accumulates = [e for e in accumulates if e not in passed_on]
    assert len(accumulates) == 4 * parameters
    assert {e.boundary for e in accumulates} == {"train.backward"}
    assert accumulates[0].names("in") == ["grad0"]  # nothing was there before
    second = [e for e in accumulates if (e.step, e.micro_batch) == (0, 2)]
    assert all(e.names("in") == ["grad0", "prior"] for e in second)
    left = {(e.step, e.micro_batch, s.name): s for e in accumulates for s in e.slots if s.kind == "out"}
    assert len(left) == len(accumulates) and all(s.flags & MODEL_VALUE for s in left.values())

    steps = [e for e in log.events if e.kind == "optimizer"]
    assert [(e.boundary, e.phase, e.step) for e in steps] == [("train.step", "optimizer", 0), ("train.step", "optimizer", 1)]
    assert "group0.lr=0.01, group0.betas=(0.9, 0.999), group0.eps=1e-08" in steps[0].scalars
    assert len(steps[0].names("in")) == 2 * parameters and len(steps[1].names("in")) == 5 * parameters
    assert len(steps[0].names("out")) == 4 * parameters
    assert "state:a.lin.weight.exp_avg" in steps[1].names("in")
    names = ["emb.weight", *(b + n for b in "ab" for n in (".scale", ".lin.weight", ".lin.bias")), "head.weight", "head.bias"]
    assert [n for n in steps[0].names("out") if n.startswith("param")] == ["param:" + n for n in names]
    for name in names:
        before, after = steps[0].get("in", "param:" + name), steps[0].get("out", "param:" + name)
        assert before.value != after.value and after.flags & MODEL_VALUE
        assert steps[1].get("in", "param:" + name).value == after.value
        assert steps[0].get("in", "grad:" + name).value == left[0, 2, "grad:" + name].value

    # Nesting: what ran inside a call is between its beginning and itself.
    (outer,) = [e for e in log.of("model.a") if e.occurrence == 0]
    inside = [log.events[i].boundary for i in range(outer.begin, outer.index)]
    assert inside == ["block.lin", "block.gelu", "block.mul", "block.iadd"]
    assert log.locations["train.zero"][2] == "<module>"
    assert log.locations["block.mul"][2] in ("Block.forward", "forward")


def test_in_place_and_uninitialised(tmp_path):
    log = record(TORCH + """
x = og("empty", torch.empty)(3, 2)
og("fill", x.fill_)(2.5)
v = og("view", x)[0]
og("set", x)[torch.tensor([1]), 1] = 7
x = og("sub", x).isub(1)
og.aug("aug", x)[:, 0] *= 3
og("out", torch.add)(v, 1, out=v)
og("no", x.sum)()
""", tmp_path)  # fmt: skip
    assert log.of("empty")[0].get("out", "out0").flags & UNINITIALISED
    assert log.of("empty")[0].scalars == "arg0=3, arg1=2"
    (fill,) = log.of("fill")
    assert fill.get("written", "self").value == fill.get("out", "out0").value
    (view,) = log.of("view")
    assert view.get("out", "out0").address == view.get("in", "self").address
    assert not view.names("written")
    (put,) = log.of("set")
    assert put.names("in") == ["self", "arg0[0]"]
    assert put.names("written") == ["self"] and put.scalars == "arg0=(T, 1), arg1=7"
    assert put.get("in", "self").value != put.get("written", "self").value
    multiply, store = log.of("aug")
    assert multiply.names("in") == ["self", "base"] and multiply.names("written") == ["self", "base"]
    assert store.get("in", "self").value == multiply.get("written", "base").value
    assert log.of("out")[0].names("written") == ["arg0"]  # one tensor under two names
    assert log.of("no")[0].get("in", "self").size_bytes == 24


def test_a_tensor_of_sizes_is_uninitialised_one_of_values_is_not(tmp_path):
    log = record(TORCH + """
og("sizes", torch.Tensor)(3, 2)
og("size", torch.FloatTensor)(torch.Size([3, 2]))
og("values", torch.Tensor)([3, 2])
og("plain", torch.tensor)(3)
""", tmp_path)  # fmt: skip
    flagged = {name: bool(log.of(name)[0].get("out", "out0").flags & UNINITIALISED) for name in ("sizes", "size", "values", "plain")}
    assert flagged == {"sizes": True, "size": True, "values": False, "plain": False}


def test_values_of_every_kind(tmp_path):
    log = record(TORCH + """
import collections, dataclasses, enum, numpy
Pair = collections.namedtuple("Pair", "left right")
@dataclasses.dataclass
class Batch:
    ids: object
    n: int
class Mine:
    def __repr__(self): raise RuntimeError("never asked")
    def __getattr__(self, name): raise RuntimeError("never asked")
class Kind(enum.IntEnum):
    A = 4
class F(float):
    def __repr__(self): return "never asked"
t = torch.ones(2)
f = lambda *a, **k: a
og("scalars", f)(1, True, 0.1, 1e-300, 2j, None, "text", Kind.A, F(0.5), torch.float16, torch.device("cpu"), torch.Size([2, 3]),
  slice(1, None), ..., torch.Generator().manual_seed(5), numpy.float32(0.5), Mine(), Mine, len, b"12", range(3), -7, 10**30)
og("nested", f)([t, (t, {"k": t, "n": 4})], pair=Pair(t, 1), batch=Batch(t, 2), deep=[[[[[[t]]]]]])
og("array", f)(numpy.arange(3.0))
og("long", f)(list(range(10000)), "x" * 500)
og("index", t)[None, ..., 0:1]
og("results", lambda: (t, 3, {"a": t}))()
""", tmp_path)  # fmt: skip
    (scalars,) = log.of("scalars")
    got = scalars.scalars.split(", arg")
    values = [g.partition("=")[2] for g in got]
    assert values == [
        "1", "True", "0.1", "1e-300", "2j", "None", "'text'", "4", "0.5", "torch.float16", "cpu", "(2, 3)", "1:", "...",
        "Generator(seed=5)", "0.5", "<Mine>", "<class Mine>", "<function len>", values[19], "range(0, 3)", "-7", str(10**30),
    ]  # fmt: skip
    (nested,) = log.of("nested")
    assert nested.names("in") == ["arg0[0]", "arg0[1][0]", "arg0[1][1].k", "batch.ids", "deep[0][0][0][0][0][0]", "pair.left"]
    assert "arg0=[T, (T, {k: T, n: 4})]" in nested.scalars and "batch=<Batch>{ids: T, n: 2}" in nested.scalars
    assert [s.dtype for s in log.of("array")[0].slots] == ["float64"] * 2
    (long,) = log.of("long")
    assert len(long.scalars) < 1400 and "...#" in long.scalars
    assert log.of("index")[0].scalars == "arg0=(None, ..., 0:1)"
    (results,) = log.of("results")
    assert results.names("out") == ["out0", "out2.a"] and results.results == "out1=3, out2={a: T}"


def test_unreadable_tensors_keep_their_shape(tmp_path):
    log = record(TORCH + """
og("meta", torch.empty)(3, 4, device="meta")
og("sparse", torch.eye(3).to_sparse)()
from torch.func import vmap
og("vmap", vmap)(lambda v: og("in", v.sum)())(torch.ones(2, 3))
""", tmp_path)  # fmt: skip
    meta = log.of("meta")[0].get("out", "out0")
    assert meta.flags & UNREADABLE and meta.shape == (3, 4) and meta.device == "meta"
    assert log.of("sparse")[0].get("out", "out0").flags & UNREADABLE


def test_what_was_read_tells_whether_it_wants_a_gradient(tmp_path):
    log = record('''
import torch
w, x = torch.nn.Parameter(torch.ones(3)), torch.ones(3)
h = og("m.mul", w) * x
og("m.exp", torch.exp)(h)
og("m.sin", torch.sin)(og("m.detach", torch.detach)(h))
with torch.no_grad():
    og("m.cos", torch.cos)(h)
h.sum().backward()
''', tmp_path)  # fmt: skip
    operators = [e for e in log.events if e.kind == "op"]
    assert all(e.flags & GRADIENTS_TOLD for e in operators)
    wants = {e.boundary: [bool(s.flags & WANTS_GRADIENT) for s in e.slots if s.kind == "in"] for e in operators}
    assert wants == {"m.mul": [True, False], "m.exp": [True], "m.detach": [True], "m.sin": [False], "m.cos": [True]}
    assert {e.boundary for e in operators if e.flags & IN_GRAPH} == {"m.mul", "m.exp"}


def test_keyword_arguments_have_no_order(tmp_path):
    log = record('''
import torch
x, w = torch.ones(1, 2, 3), torch.ones(4, 2, 1)
og("m.conv", torch.nn.functional.conv1d)(x, weight=w, padding=1, stride=2)
og("m.conv", torch.nn.functional.conv1d)(stride=2, padding=1, weight=w, input=x)
''', tmp_path)  # fmt: skip
    first, second = log.of("m.conv")
    assert first.scalars == second.scalars == "padding=1, stride=2"
    assert [s.name for s in first.slots] == ["arg0", "weight", "out0"] and [s.name for s in second.slots] == ["input", "weight", "out0"]


def test_errors_pass_and_are_flagged(tmp_path):
    log = record(TORCH + """
x = torch.ones(2)
try:
    og("bad", torch.mm)(x, x)
except RuntimeError as e:
    assert "must be a matrix" in str(e) and e.__context__ is None
else:
    raise SystemExit(1)
og("good", x.sum)()
""", tmp_path)  # fmt: skip
    (bad,) = log.of("bad")
    assert bad.flags & RAISED and bad.names("in") == ["arg0", "arg1"] and not bad.names("out")
    assert not log.of("good")[0].flags & RAISED


def test_iteration(tmp_path):
    log = record(TORCH + """
t = torch.arange(6.0).view(3, 2)
for row in og("rows", t): pass
for item in og("list", [t, t]): pass
def batches():
    yield og("made", t.sum)()
for b in og("gen", batches()): pass
""", tmp_path)  # fmt: skip
    rows = log.of("rows")
    assert [(e.names("in"), e.get("out", "out0").shape) for e in rows] == [(["self"], (2,))] * 3
    items = log.of("list")
    assert len(items) == 2 and items[0].get("in", "arg0").value == items[0].get("out", "out0").value
    (made,) = log.of("gen")
    assert log.events[made.begin].boundary == "made"


def test_custom_function_double_backward_and_grad(tmp_path):
    log = record(TORCH + """
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return og("inside", g) * (2 * x)
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = og("square", Square.apply)(x)
y = og("sum", y.sum)()
(g,) = og("grad", torch.autograd.grad)(y, x, create_graph=True)
og("back", g.sum().backward)()
assert x.grad.tolist() == [2.0, 2.0]
z = og("mul", x) * 3
z.sum().backward()
""", tmp_path)  # fmt: skip
    assert [e.node for e in log.of("square", "node")] == ["SquareBackward"]
    assert log.of("inside")[0].phase in ("backward", "recompute")
    assert [e.boundary for e in log.events if e.kind == "loss"] == ["grad", "back", "<backward>"]
    assert log.locations["<backward>"][2] == "<module>"
    assert log.of("mul", "node")[0].micro_batch == 3


def test_threads_and_reentrancy(tmp_path):
    log = record(TORCH + """
import threading
class T(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        og("never", len)(())  # only the program's own operators reach this, not our reading
        return super().__torch_function__(func, types, args, kwargs or {})
def work(n):
    x = torch.full((4,), float(n))
    for _ in range(200):
        x = og("work", x) + 1
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
og("sub", torch.ones(2).as_subclass(T).sum)()
""", tmp_path)  # fmt: skip
    work = log.of("work")
    assert len(work) == 800 and len({e.thread for e in work}) == 4
    for thread in {e.thread for e in work}:
        mine = [e for e in work if e.thread == thread]
        assert all(a.get("out", "out0").value == b.get("in", "self").value for a, b in zip(mine, mine[1:]))
    assert sorted(e.occurrence for e in work) == list(range(800))
    assert len(log.of("never")) == 1


def test_an_array_that_runs_backwards_lies_where_it_lies(tmp_path):
    log = record("import numpy\na = numpy.arange(6.0)\nog('f', max)(a, a[::-1], key=id); og('g', max)(a[4:1:-1], a[2:5], key=id)", tmp_path)
    for boundary in ("f", "g"):
        one, other = log.of(boundary)[0].slots[:2]
        assert (one.address, one.size_bytes) == (other.address, other.size_bytes) != (0, 0)


def test_settings_and_ranks(tmp_path):
    log = record(TORCH + "og('a', torch.ones(2).sum)()", tmp_path, env={"RANK": "3", "WORLD_SIZE": "8"})
    assert (log.rank, log.world) == (3, 8) and log.path.name.startswith("rank3-")
    import torch

    assert log.settings["torch"] == torch.__version__ and log.settings["seed"] == "0"


def test_collectives_are_flagged_and_their_writes_seen(tmp_path):
    log = record(TORCH + """
import os, tempfile, torch.distributed as dist
store = tempfile.mktemp()
dist.init_process_group("gloo", init_method="file://" + store, rank=0, world_size=1)
t = torch.ones(3)
og("reduce", dist.all_reduce)(t)
og("gather", dist.all_gather)([torch.zeros(3)], t)
dist.destroy_process_group()
""", tmp_path)  # fmt: skip
    assert log.of("reduce")[0].flags & COLLECTIVE
    (gather,) = log.of("gather")
    assert gather.names("written") == ["arg0[0]"]
    assert gather.get("written", "arg0[0]").value == gather.get("in", "arg1").value


@pytest.mark.parametrize("recording", [True, False])
def test_compiled_programs_trace_through_probes(tmp_path, recording):
    source = TORCH + """
def bare(x, y):
    h = torch.softmax(x, dim=-1) * 2
    h += y
    h = 2 * h
    n = 0
    n += h
    w = -n[0]
    for r in h: w = w + r
    h[1] += 3
    return w, h.sum(), w < 0, h
def probed(x, y):
    h = og("a", og("b", torch.softmax)(x, dim=-1)) * 2
    h = og.name("c", h).iadd(y)
    h = og("d", 2) * h
    n = 0
    n = og.name("e", n).iadd(h)
    w = -og("f", og("g", n)[0])
    for r in og("h", h): w = og("i", w) + r
    og.aug("j", h)[1] += 3
    return w, og("k", h.sum)(), og("l", w) < 0, h
x, y = torch.randn(3, 4), torch.randn(3, 4)
want = bare(x, y)
for f in (probed, torch.compile(probed, fullgraph=True, backend="eager")):
    assert all(torch.equal(a, b) for a, b in zip(want, f(x, y)))
"""
    run_program(source, tmp_path if recording else None)
