"""Graphs of a device: nothing is recorded of the capture, and one run's events at each replay. The device is the example plugin, the graph a
class with torch.cuda.CUDAGraph's methods whose "kernels" are Python functions, and which runs them again."""

import pytest

from device_logs import PLUGIN, only_log, served
from runtime_log import UNREADABLE, run_program

torch = pytest.importorskip("torch")

GRAPH = """
import ctypes, torch
from opguard import _rt
from opguard.compiled import device_graphs
torch.manual_seed(0)
plugin = ctypes.CDLL({plugin!r})
plugin.example_nodes.restype = ctypes.c_uint64
plugin.example_replay.argtypes = [ctypes.c_uint64] * 2
capturing = None
class Graph:
    def __init__(self): self.work = []
    def capture_begin(self, fail=False):
        global capturing
        if fail: raise RuntimeError("no")
        capturing = self
        self.done = plugin.example_nodes()
        plugin.example_capture(1)
    def capture_end(self):
        global capturing
        self.seen()
        capturing = None
        plugin.example_capture(0)
    def seen(self):
        now = plugin.example_nodes()
        if now > self.done: self.work.append((plugin.example_replay, (self.done, now)))
        self.done = now
    def replay(self, fail=False):
        if fail: raise RuntimeError("no")
        for function, args in self.work: function(*args)
    def reset(self): self.work = []
device_graphs.wrap(Graph)
def kernel(out, function):
    # Runs now, as a capture's own kernels do not, and in the graph, whose writes no version counts.
    if capturing is not None:
        capturing.seen()
        capturing.work.append((lambda: out.data.copy_(function()), ()))
    return out.copy_(function())
x, w, y, z = torch.zeros(40, 40), torch.randn(40, 40), torch.zeros(40, 40), torch.zeros(40, 40)  # large enough to be carried
def matmul(a, b, out): return kernel(out, lambda: a @ b)
def relu(a, out): return kernel(out, lambda: torch.relu(a))
def model():
    a = og("model.matmul", matmul)(x, w, y)
    b = og("model.relu", relu)(a, z)
    og("model.size", b.size)()
    return b
graph = Graph()
"""
USE = (
    GRAPH
    + """
graph.capture_begin()
out = model()
graph.capture_end()
og("mark.captured", torch.relu)(torch.ones(2))
for i in range(5):
    x.copy_(torch.full((40, 40), float(i)))
    if i == 3:
        try: graph.replay(fail=True)
        except RuntimeError: pass
    og("train.replay", graph.replay)()
    og("use", torch.clone)(out)
    og.step("train.step", lambda: None)()
"""
)
EAGER = USE.replace("graph.capture_begin()\nout = model()\ngraph.capture_end()\n", "out = z\n").replace(
    'og("train.replay", graph.replay)()', 'og("train.replay", model)()'
)


def run(tmp_path, source, name, mode="full", **settings):
    result = run_program(source.replace("{plugin!r}", repr(PLUGIN)), tmp_path / name, env={"OPGUARD_MODE": mode, **served(**settings)})
    return result, only_log(tmp_path / name)


def told(event):
    return (event.boundary, event.kind, event.step, event.occurrence, event.scalars, event.results,
            [(s.kind, s.name, s.value) for s in event.slots if s.kind != "written"])  # fmt: skip


def test_each_replay_is_a_run(tmp_path):
    _, graph = run(tmp_path, USE, "graph")
    _, eager = run(tmp_path, EAGER, "eager")
    assert graph.closed and graph.lost == 0 and not graph.gaps and "opguard_faults" not in graph.settings
    of = lambda log: [e for e in log.events if e.kind == "op" and e.boundary.startswith(("model.", "use"))]  # noqa: E731
    assert [told(e) for e in of(graph)] == [told(e) for e in of(eager)]
    assert len(graph.of("model.matmul")) == 5 and len({e.get("in", "arg0").value for e in graph.of("model.matmul")}) == 5
    # They are inside the operator that replays.
    for replay in graph.of("train.replay")[1:]:
        assert [e.boundary for e in graph.events[replay.begin : replay.index]] == ["model.matmul", "model.relu", "model.size"]


def test_a_replay_s_operators_run_one_after_the_other(tmp_path, opguard):
    """What one reads is what the one before it has left in this replay: memory that no replay keeps is not "overwritten"."""
    _, log = run(tmp_path, USE, "log")
    for replay in log.of("train.replay")[1:]:
        first, second = log.events[replay.begin : replay.begin + 2]
        assert first.end_ns <= second.start_ns and second.start_ns < second.end_ns
    ran = opguard("align", "--single", tmp_path / "log")
    assert ran.returncode == 0, ran.stdout


def test_what_a_graph_leaves_is_not_carried(tmp_path):
    """No counter says that it was written."""
    _, log = run(tmp_path, USE, "log", "default")
    left = [r.get("out", "out0").value for r in log.of("model.relu")]
    assert [u.get("in", "arg0").value for u in log.of("use")] == left and len(set(left)) == 5


def test_values_come_later_than_further_replays(tmp_path):
    _, slow = run(tmp_path, USE, "slow", hold=200)
    _, fast = run(tmp_path, USE, "fast")
    assert slow.lost == 0 and [told(e) for e in slow.events if e.kind == "op"] == [told(e) for e in fast.events if e.kind == "op"]


def test_a_lost_value_never_becomes_another_replay_s(tmp_path):
    many = USE.replace("range(5)", "range(60)")
    _, whole = run(tmp_path, many, "whole")
    _, torn = run(tmp_path, many, "torn", ring=70)
    assert torn.closed and torn.lost > 0
    for a, b in zip(whole.events, torn.events, strict=True):
        assert a.boundary == b.boundary
        if a.kind == "op":
            assert all(t.flags & UNREADABLE or s.value == t.value for s, t in zip(a.slots, b.slots))


TRAIN = (
    GRAPH
    + """
model_ = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model_.parameters(), lr=.1)
class Recorded(Graph):
    # All that happens between begin and end is one kernel.
    def capture_end(self):
        super().capture_end()
        self.work = [(plugin.example_replay, (first, plugin.example_nodes()))]
first = plugin.example_nodes()
device_graphs.wrap(Recorded)
graph = Recorded()
graph.capture_begin()
for _ in range(2):
    loss = og("train.loss", og("train.model", model_)(torch.randn(4, 8)).sum)()
    og("train.backward", loss.backward)()
og("train.step", optimizer.step)()
graph.capture_end()
for _ in range(3): graph.replay()
og("end", torch.relu)(x)
"""
)


def test_a_captured_step_counts_at_each_replay(tmp_path):
    _, log = run(tmp_path, TRAIN, "log")
    assert [(e.step, e.micro_batch) for e in log.of("train.loss")] == [(s, m) for s in range(3) for m in range(2)]
    assert [e.step for e in log.of("train.step", "optimizer")] == [0, 1, 2] and log.of("end")[0].step == 3
    for node in log.events:
        if node.kind == "node":
            assert log.events[node.forward].boundary == node.boundary and log.events[node.forward].step == node.step
    assert len(log.states()) == 4 and {e.occurrence for e in log.of("train.model")} == set(range(6))


REFUSED = (
    GRAPH
    + """
try: graph.capture_begin(fail=True)
except RuntimeError: pass
og("a", torch.relu)(x)
plugin.example_capture(7)  # a capture that Python does not see
og("b", torch.relu)(x)
plugin.example_capture(0)
og("c", torch.relu)(x)
"""
)


def test_captures_that_fail_or_go_unseen(tmp_path):
    _, log = run(tmp_path, REFUSED, "log")
    assert log.closed and log.lost == 0
    assert [bool(log.of(name)[0].get("out", "out0").flags & UNREADABLE) for name in "abc"] == [False, True, False]


def test_torch_s_own_graphs_are_wrapped(tmp_path):
    result = run_program("import torch\nprint(hasattr(torch.cuda.CUDAGraph.replay, '_opguard'))\n", tmp_path)
    assert result.stdout == "True\n"
