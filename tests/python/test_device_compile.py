"""Compiled graphs on a device, on a machine without one: what decides whether Inductor captures them is there to be asked."""

import pytest

from compile_gpt import gpt
from runtime_log import record, run_program

torch = pytest.importorskip("torch")

STATIC = """
import torch
from torch._dynamo.backends.common import aot_autograd
from torch._guards import TracingContext
def forward(graph, inputs):
    static = TracingContext.get().fw_metadata.static_input_indices
    inputs = [n for n in graph.graph.nodes if n.op == "placeholder"]
    bases = [base for n in graph.graph.nodes if "auto_functionalized" in str(n.target) for base in n.kwargs["_all_bases"]]
    rings = {base for base in bases if base in inputs}
    print("rings", len(rings), all(inputs.index(r) in static for r in rings))
    return graph
def f(x): return og("f.relu", torch.relu)(x).sum()
torch.compile(f, backend=aot_autograd(fw_compiler=forward))(torch.randn(4, requires_grad=True)).backward()
"""


def test_the_ring_is_a_static_input(tmp_path):
    """cudagraph_utils.check_for_mutation: a mutated input that is not keeps a graph from being captured."""
    lines = run_program(STATIC, tmp_path).stdout.splitlines()
    assert lines and lines[0].startswith("rings ") and not lines[0].startswith("rings 0") and lines[0].endswith(" True")


def test_a_node_s_forward_event_is_known_by_address(tmp_path):
    """As on a device, where no value is read."""
    head = "from opguard.compiled import ops\nops.BY_VALUE.clear()\n"
    by_address = record(head + gpt(True, "aot_eager", sizes=(4, 4)), tmp_path / "address")
    by_value = record(gpt(True, "aot_eager", sizes=(4, 4)), tmp_path / "value")
    told = [[(e.boundary, e.kind, e.node, e.forward) for e in log.events] for log in (by_address, by_value)]
    assert told[0] == told[1] and any(forward is not None for *_, forward in told[0])


META = """
import torch
from opguard.compiled import ops
targets = []
def backend(graph, inputs):
    targets.extend((str(n.target), n.args[0].meta["example_value"].device.type) for n in graph.graph.nodes if "opguard.enter" in str(n.target))
    return graph.forward
def f(x):
    n = og("f.len", len)([1, 2])
    return og("f.relu", torch.relu)(x) + n
try: torch.compile(f, backend=backend)(torch.randn(4, device=DEVICE))
except Exception as error: print("error", error)
print(targets)
"""


def test_where_the_rings_are(tmp_path):
    out = run_program(META.replace("DEVICE", '"cpu"'), tmp_path).stdout
    assert out.count("'cpu'") == 2 and "error" not in out
