"""Nothing of ours is left on the program's objects: autograd nodes, torch.Tensor, and what it compiles."""

import pytest

from runtime_log import record, run_program

torch = pytest.importorskip("torch")

NODES = """
import torch
def nodes(*roots):
    found, todo = [], [r.grad_fn for r in roots]
    while todo:
        node = todo.pop()
        if not any(node is f for f in found):
            found.append(node)
            todo += [n for n, _ in node.next_functions if n is not None]
    return found
torch.manual_seed(0)
w = torch.nn.Parameter(torch.randn(4, 4))
"""

USED = """
x = og("linear", torch.nn.functional.linear)(torch.ones(2, 4), w)
a, b = og("split", x.split)(2, dim=1)
y = og("mm", x) @ w
whole = og("add", a.sum() + b.sum()) + y.sum()
print(sorted({n.name() for n in nodes(whole)}))
print([n.metadata for n in nodes(whole) if n.metadata])
print([k for n in nodes(whole) for k in dir(n) if "opguard" in k])
whole.backward()
"""


def test_a_claimed_node_holds_nothing_but_a_hook(tmp_path):
    log = record(NODES + USED, tmp_path)
    of = [(e.boundary, e.node) for e in log.events if e.kind == "node"]
    # Each node is one operator's, once, and the leaf that two of them use adds once.
    assert len(of) == len(set(of)) and ("split", "SplitBackward0") in of and ("mm", "MmBackward0") in of
    assert len([e for e in log.events if e.kind == "accumulate"]) == 1
    names, metadata, attributes = run_program(NODES + USED, tmp_path / "again").stdout.splitlines()
    assert "AccumulateGrad" in names and "SplitBackward0" in names
    assert (metadata, attributes) == ("[]", "[]")


def test_a_leaf_of_many_graphs_adds_once_in_each(tmp_path):
    source = NODES + """
for _ in range(3):
    kept = [og("mul", w) * i for i in range(5)]
    sum(k.sum() for k in kept).backward()
for i in range(2000):
    leaf = torch.ones(2, requires_grad=True)
    (og("short", leaf) * 2).sum().backward()
    assert leaf.grad.tolist() == [2, 2]
"""
    log = record(source, tmp_path)
    assert len([e for e in log.events if e.kind == "accumulate"]) == 3 + 2000
    assert len(log.of("mul", "node")) == 15 and "opguard_faults" not in log.settings


def test_a_second_claim_is_taken_off_again(tmp_path):
    # The second operator's result leads to a node that is neither its own nor its operand's.
    source = NODES + """
kept = og("first", torch.sin)(w)
def later(x): return x * 2 + kept.cos()
whole = og("second", later)(torch.ones(4, 4, requires_grad=True))
seen = []
kept.grad_fn.register_hook(lambda outgoing, incoming: seen.append(1))
whole.sum().backward()
print(len(seen))
"""
    log = record(source, tmp_path)
    assert [e.node for e in log.of("first", "node")] == ["SinBackward0"]
    assert "SinBackward0" not in [e.node for e in log.of("second", "node")]


# Hooks of the program's on nodes that have ours, before and behind it, one of them removed.
HOOKS = NODES + """
seen, handles = [], []
def hang(node, name):
    handles.append(node.register_hook(lambda outgoing, incoming: seen.append(name)))
    handles.append(node.register_prehook(lambda outgoing: seen.append("before " + name)))
def product(a, b):
    made = a * b
    hang(made.grad_fn, "within")
    return made
y = og("product", product)(w, torch.ones(4, 4))
hang(y.grad_fn, "behind")
hang(y.grad_fn.next_functions[0][0], "leaf")
handles[2].remove()
y.sum().backward()
print([handle.id for handle in handles], seen, type(handles[0]).__name__)
"""


@pytest.mark.parametrize("torch_has", ["its function", "no such function"])
def test_the_programs_own_hooks_are_as_without_ours(tmp_path, torch_has):
    """Ours hang by a function in place of torch's, or by torch's own where it has another one."""
    start = "" if torch_has == "its function" else "import torch.autograd.function\ndel torch.autograd.function._HookMixin\n"
    bare = run_program(start + HOOKS).stdout
    assert "'behind'" not in bare and "'before behind'" in bare and "RemovableHandle" in bare
    assert run_program(start + HOOKS, tmp_path / "log").stdout == bare
    log = record(start + HOOKS, tmp_path / "again")
    assert [e.node for e in log.of("product", "node")] == ["MulBackward0"]
    assert len([e for e in log.events if e.kind == "accumulate"]) == 1 and "opguard_faults" not in log.settings


# Probes that stand for their operands, since nothing is recorded at them: mode sdc.
IDENTITY = """
import operator
import torch
before = set(dir(torch.Tensor)), set(dir(torch.nn.Module))
import torch._dynamo
assert (set(dir(torch.Tensor)), set(dir(torch.nn.Module))) == before
def probed(x, n, names):
    x = og.name("add", x).iadd(1)
    x = og.name("mul", x).imul(2)
    n = og.name("count", n).iadd(1)
    names = og.name("names", names).iadd(["b"])
    og.aug("item", x)[0] += 3
    return og("sin", torch.sin)(x) * n, len(names)
def bare(x, n, names):
    x += 1
    x *= 2
    n += 1
    names += ["b"]
    x[0] += 3
    return torch.sin(x) * n, len(names)
want = bare(torch.ones(3), 1, ["a"])
for function in (probed, torch.compile(probed, fullgraph=True, backend="eager")):
    got = function(torch.ones(3), 1, ["a"])
    assert torch.equal(got[0], want[0]) and got[1] == want[1]
print("the same")
"""


def test_probes_that_are_their_operands_add_nothing_to_torch(tmp_path):
    done = run_program(IDENTITY, tmp_path, env={"OPGUARD_MODE": "sdc"})
    assert done.stdout == "the same\n"


def test_the_patcher_writes_what_needs_nothing(opguard, tmp_path):
    (tmp_path / "train.py").write_text("def f(x, y):\n    x += y\n    return x\n")
    assert opguard("--all-sites", "--apply", ".", program="opguard-instrument", cwd=tmp_path).returncode == 0
    text = (tmp_path / "train.py").read_text()
    assert 'x = og.name("' in text and ", x).iadd(y)" in text
    assert opguard("--strip", "--apply", ".", program="opguard-instrument", cwd=tmp_path).returncode == 0
    assert "    x += y\n" in (tmp_path / "train.py").read_text()
