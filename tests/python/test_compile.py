"""Probes under torch.compile: the same program, as many graphs, the same records."""

import collections
import shutil
import subprocess
import sys

import pytest

from compile_gpt import gpt
from conftest import ROOT, clean_environment
from runtime_log import GRADIENTS_TOLD, RAISED, WANTS_GRADIENT, logs_in, record, run_program

torch = pytest.importorskip("torch")
inductor = {"TORCHINDUCTOR_EMULATE_PRECISION_CASTS": "1"}


def sites(log):
    """What every operator's event says but its values."""
    return [
        (e.boundary, e.phase, e.scalars, e.results, e.flags & ~GRADIENTS_TOLD, e.names("in"), e.names("out"), e.names("written"),
         [(s.dtype, s.shape, s.flags & ~WANTS_GRADIENT) for s in e.slots])
        for e in log.events if e.kind == "op"
    ]  # fmt: skip


def values(log):
    return [s.value for e in log.events if e.kind == "op" for s in e.slots]


def counts(log):
    return collections.Counter((e.boundary, e.kind, e.phase) for e in log.events)


def nodes(log):
    # What functionalization makes of a view or a matmul has another name; its number is the same.
    views = ("ViewBackward0", "UnsafeViewBackward0", "AsStridedBackward0")
    return collections.Counter(
        (e.boundary, "a view" if e.node in views else e.node) for e in log.events if e.kind == "node"
    )


def check_gpt(tmp_path, backend, **options):
    bare = run_program(gpt(False, backend, **options), env=inductor)
    probed = run_program(gpt(True, backend, **options), tmp_path / "compiled", env=inductor)
    # Losses, parameters, and the compiler's counts.
    assert probed.stdout == bare.stdout
    assert "'dynamo_graph_breaks': '0'" in bare.stdout and "'dynamo_graphs': '0'" not in bare.stdout
    (compiled,) = logs_in(tmp_path / "compiled")
    assert compiled.closed and compiled.lost == 0 and "opguard_faults" not in compiled.settings
    assert compiled.settings["opguard_compiled_unprobed"] == "0"
    eager = record(gpt(True, **options), tmp_path / "eager")
    assert sites(compiled) == sites(eager)
    assert counts(compiled) == counts(eager)
    assert nodes(compiled) == nodes(eager)
    for e in compiled.events:
        if e.kind == "node":
            assert compiled.events[e.forward].boundary == e.boundary
    return compiled, eager


@pytest.mark.parametrize("backend, dynamic", [("eager", None), ("aot_eager", None), ("aot_eager", True)])
def test_a_gpt_records_what_it_does_when_eager(tmp_path, backend, dynamic):
    sizes = (4, 3, 5) if dynamic else (4, 4, 4)
    compiled, eager = check_gpt(tmp_path, backend, dynamic=dynamic, sizes=sizes, layers=1)
    assert values(compiled) == values(eager)
    assert compiled.locations["attn.softmax"][2].endswith("forward")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_gpt_under_inductor_keeps_its_bits(tmp_path, dtype):
    # Without layers: each kernel takes a compiler seconds. docs/design/compile.md has the figures of a whole one.
    check_gpt(tmp_path, "inductor", dtype=dtype, layers=0)


# As many graphs and breaks as bare, where the graph breaks and where a probe cannot be. %s: bare or not.
BROKEN = r"""
import torch
from torch.utils.checkpoint import checkpoint
PROBED, BACKEND = %r
if not PROBED:
    og = lambda boundary, x: x
torch.manual_seed(0)
w = torch.nn.Parameter(torch.randn(4, 4))
def inner(x):
    x = og("inner.add", x) + 1
    torch._dynamo.graph_break()
    return og("inner.mul", x) * 3
def broken(x): return og("broken.add", og("broken.call", inner)(x)) + x
def condition(x):
    if og("condition.if", x.sum() > 0): x = x + 1
    else: x = x - 1
    return og("condition.mul", x) * 2
def printing(x):
    og("printing.print", print)(end="")
    return og("printing.mul", x @ w) * 2
def branches(x): return torch.cond(x.sum() > 0, lambda x: og("branches.sin", torch.sin)(x), lambda x: x.cos(), (x,))
def body(x): return og("body.sin", torch.sin)(x * 2)
def checkpointed(x): return og("checkpointed", checkpoint)(body, x @ w, use_reentrant=False)
def batched(x): return og("batched", torch.vmap)(lambda row: og("batched.sin", torch.sin)(row))(x)
def context(x):
    with og("context.with", torch.no_grad()): y = og("context.mul", x @ w) * 2
    return og("context.mm", x @ w) + y
def raising(x):
    try: og("raising.index", [])[3]
    except IndexError: return og("raising.neg", x) * 2
for f in (broken, condition, printing, branches, checkpointed, batched, context, raising):
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    g = torch.compile(f, backend=BACKEND)
    for i in range(2):
        # Two graphs in flight: their rings are written to before either's backward pass.
        a, b = g(torch.arange(16.).view(4, 4)), g(torch.arange(16.).view(4, 4) + 1)
        if a.requires_grad:
            a.sum().backward()
            b.sum().backward()
        print(f.__name__, a.sum().item().hex(), b.sum().item().hex())
    from opguard.record import settings
    print({k: v for k, v in settings.collect().items() if k.startswith("dynamo")})
print(w.grad.sum().item().hex())
"""


def test_graph_breaks_are_where_they_were_and_what_is_silent_is_counted(tmp_path):
    bare = run_program(BROKEN % ((False, "aot_eager"),))
    probed = run_program(BROKEN % ((True, "aot_eager"),), tmp_path)
    assert probed.stdout == bare.stdout
    (log,) = logs_in(tmp_path)
    assert log.closed and log.lost == 0 and "opguard_faults" not in log.settings
    each = collections.Counter(e.boundary for e in log.events if e.kind == "op")
    for boundary in ("inner.add", "inner.mul", "broken.call", "broken.add", "condition.if", "condition.mul",
                     "printing.print", "printing.mul", "checkpointed", "batched", "context.mul", "raising.neg"):  # fmt: skip
        assert each[boundary] == 4, boundary
    assert all(e.flags & RAISED for e in log.of("raising.index")) and each["raising.index"] == 4
    assert not {"branches.sin", "body.sin", "batched.sin", "context.with"} & set(each)
    reasons = log.settings["opguard_compiled_unprobed"]
    assert "higher-order: " in reasons and "vmap: " in reasons and "with: " in reasons
    # In flight at once, each backward names its own forward.
    forwards = [e.forward for e in log.of("printing.mul", "node")]
    assert len(set(forwards)) == len(forwards) == 4


def run_fixture(opguard, tmp_path, name, backend):
    """A program of tests/fixtures/compiled, bare and with a probe at every site, which prints the same and records to
    `compiled`: its instrumented tree, its command behind `opguard run`, the bare run."""
    tree = tmp_path / "tree"
    shutil.copytree(ROOT / "tests" / "fixtures" / "compiled", tree, ignore=shutil.ignore_patterns("__pycache__"))
    command = ["--", sys.executable, name, backend]
    bare = subprocess.run(command[1:], cwd=tree, env=clean_environment(), capture_output=True, text=True, timeout=300)
    assert bare.returncode == 0, bare.stderr
    assert opguard(tree, "--all-sites", "--apply", program="opguard-instrument").returncode == 0
    probed = opguard("run", "--log", tmp_path / "compiled", *command, cwd=tree)
    assert (probed.returncode, probed.stdout) == (0, bare.stdout), probed.stderr
    return tree, command, bare


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_probe_that_waits_while_the_graph_breaks(opguard, tmp_path, backend):
    tree, command, bare = run_fixture(opguard, tmp_path, "graph_breaks.py", backend)
    assert bare.stdout.count("\n") > 150
    eager = opguard("run", "--log", tmp_path / "eager", *command, cwd=tree, env={"TORCHDYNAMO_DISABLE": "1"})
    assert (eager.returncode, eager.stdout) == (0, bare.stdout), eager.stderr
    (compiled,), (eager,) = logs_in(tmp_path / "compiled"), logs_in(tmp_path / "eager")
    assert compiled.lost == 0 and "opguard_faults" not in compiled.settings
    assert compiled.settings["opguard_compiled_unprobed"] == "an iterator behind a graph break: 1, with: 3"
    contexts = {b for b, at in eager.locations.items() if at[2] in ("with_no_grad", "with_scope")}
    each = [collections.Counter(e.boundary for e in log.events if e.kind == "op") for log in (compiled, eager)]
    differing = {b for b in {*each[0], *each[1]} if each[0][b] != each[1][b]}
    assert not differing - contexts


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_an_operand_with_the_names_of_its_stand_in(opguard, tmp_path, backend):
    """`og(id, x).real` was x itself; `og(id, found.append)(x)` of a list with a tensor ended the program."""
    _, _, bare = run_fixture(opguard, tmp_path, "awkward_operands.py", backend)
    assert bare.stdout.count("\n") == 16
    (log,) = logs_in(tmp_path / "compiled")
    reasons = log.settings["opguard_compiled_unprobed"]
    assert ("functionalize: " in reasons) == (backend == "eager")
    assert "vmap: " in reasons and "cannot be told" not in reasons
    assert "opguard_faults" not in log.settings


def test_a_variable_that_cannot_be_told_costs_a_record_and_not_the_program(tmp_path):
    log = record("""
import torch._dynamo
from opguard.compiled import values
add = values.Values.add
def failing(self, name, variable):  # as one of dynamo's variables that answers otherwise than in 2.13
    if name == FAILS:
        raise AttributeError("no such field")
    add(self, name, variable)
values.Values.add = failing
for FAILS in ("arg0", "out0"):
    torch._dynamo.reset()
    f = torch.compile(lambda x: og("mul", x) * 2 + (-og("neg", x)), fullgraph=True, backend="eager")
    assert torch.equal(f(torch.ones(3)), torch.ones(3))
""", tmp_path)  # fmt: skip
    assert log.settings["opguard_compiled_unprobed"] == "a value that cannot be told: AttributeError: 3"
    # Inputs that cannot be told: no event. Outputs: an event without them.
    assert [(e.boundary, [s.kind for s in e.slots]) for e in log.events if e.kind == "op"] == [("neg", ["in", "out"]), ("mul", ["in"]), ("neg", ["in"])]
    assert "opguard_faults" not in log.settings


@pytest.mark.parametrize("how, why", [
    ('sys.modules["opguard.compiled.trace"] = None  # as if its imports failed', "no handlers: "),
    ('torch.__version__ = torch.torch_version.TorchVersion("2.14.0.dev20270101")', "is newer than all that are known"),
    ('torch.__version__ = torch.torch_version.TorchVersion("2.14.0a0+git1234")', "is newer than all that are known"),
])  # fmt: skip
def test_a_dynamo_without_our_handlers_traces_the_operand_itself(tmp_path, how, why):
    log = record("import sys, torch\n" + how + """
def f(x):
    x = og.name("iadd", x.clone()).iadd(1)
    return og("softmax", torch.softmax)(og("mul", x) * 2, dim=-1)
x = torch.randn(3)
assert torch.equal(torch.compile(f, fullgraph=True, backend="eager")(x), torch.softmax((x + 1) * 2, dim=-1))
og("outside", x) + 1
""", tmp_path)  # fmt: skip
    assert {e.boundary for e in log.events if e.kind != "state"} == {"outside"}
    unprobed = log.settings["opguard_compiled_unprobed"]
    assert unprobed.startswith("no handlers: ") and why in unprobed
