"""Collectives of torch.distributed: matched between ranks by group and number, read when they have ended."""

import pytest

from distributed import assert_matched, collectives, record_ranks, run_ranks
import runtime_log
from runtime_log import COLLECTIVE, RAISED, UNREADABLE, Log

pytest.importorskip("torch.distributed")

SYNCHRONOUS = """
t = torch.arange(4.) + rank
og("reduce", dist.all_reduce)(t)
parts = [torch.empty(2) for _ in range(world)]
og("gather", dist.all_gather)(parts, torch.full((2,), rank + 1.))
def helper(x):
    dist.all_reduce(x, op=dist.ReduceOp.MAX)
    return x
h = og("helper", helper)(torch.ones(2) * rank)
b = torch.full((3,), rank + 5.)
og("broadcast", dist.broadcast)(b, src=1)
r = torch.full((3,), rank + 1.)
og("root", dist.reduce)(r, dst=0)
s = torch.empty(2)
og("scatter", dist.reduce_scatter_tensor)(s, torch.arange(2. * world))
a = torch.empty(world)
og("all_to_all", dist.all_to_all_single)(a, torch.arange(float(world)) + rank)
og("barrier", dist.barrier)()
og("nothing", dist.get_rank)()
objects = [None] * world
og("objects", dist.all_gather_object)(objects, {"rank": rank})
dist.all_reduce(t)
say(t.tolist(), parts, h.tolist(), b.tolist(), s.tolist(), a.tolist(), objects)
if rank == 0: say(r.tolist())
"""


def test_calls_at_sites_and_below_them(tmp_path):
    logs = record_ranks(SYNCHRONOUS, 2, tmp_path)
    assert assert_matched(logs) == {"0-1"}
    for log in logs:
        assert "collectives_not_waited" not in log.settings
        (reduce,) = log.of("reduce")
        assert reduce.flags & COLLECTIVE and (reduce.group, reduce.sequence) == ("0-1", 1)
        assert reduce.names("in") == reduce.names("written") == ["arg0"]
        assert reduce.get("in", "arg0").value != reduce.get("written", "arg0").value
        # What is only written is no input.
        (gather,) = log.of("gather")
        assert gather.names("in") == ["arg1"] and gather.names("written") == ["arg0[0]", "arg0[1]"]
        assert gather.get("written", f"arg0[{log.rank}]").value == gather.get("in", "arg1").value
        (broadcast,) = log.of("broadcast")
        assert broadcast.names("in") == (["arg0"] if log.rank == 1 else [])
        # A call of the program's own that communicates is an operator; the collective in it an event of its own.
        (helper,) = log.of("helper")
        assert not helper.flags & COLLECTIVE and helper.group is None
        (inner,) = [e for e in log.events[helper.begin : helper.index] if e.kind == "collective"]
        assert inner.boundary == "<dist.all_reduce <string>.helper>" and inner.scalars == "op=MAX"
        assert inner.names("in") == inner.names("out") == ["tensor"]
        assert log.locations[inner.boundary][2] == "helper"
        assert not log.of("nothing")[0].flags & COLLECTIVE
        (objects,) = log.of("objects")
        assert objects.flags & COLLECTIVE and not objects.slots
        assert not [e for e in log.events if e.kind == "collective" and "object" in e.boundary]
        # Two of them, sizes and bytes: the last collective's number shows it.
        assert collectives(log)[-1].sequence == objects.sequence + 2
        assert not [e for e in log.events if e.forward is not None]
    outputs = [log.of("reduce")[0].get("written", "arg0").value for log in logs]
    assert outputs[0] == outputs[1]


ASYNCHRONOUS = """
import time
from torch.futures import Future
big = torch.full((200000,), rank + 1.)
work = og("launch", dist.all_reduce)(big, async_op=True)
assert type(work) is dist.Work or isinstance(work, dist.Work)
other = og("overlap", torch.ones(3)) * 2
og("view", big.view)(2, -1)
og("wait", work.wait)()
after = og("use", big) + 1
x = torch.full((3,), rank + 1.)
future = dist.all_reduce(x, async_op=True).get_future()
doubled = future.then(lambda f: f.value()[0] * 2).wait()
y = torch.full((3,), rank + 2.)
polled = dist.all_reduce(y, async_op=True)
while not polled.is_completed(): time.sleep(.01)
forgotten = torch.full((3,), rank + 3.)
dropped = dist.all_reduce(forgotten, async_op=True)
while not dropped.is_success() and world < 0: pass
time.sleep(.3)
parameter = torch.nn.Parameter(torch.ones(2))
parameter.sum().backward()
torch.optim.SGD([parameter], lr=.1).step()
say(after[:3].tolist(), x.tolist(), doubled.tolist(), y.tolist(), forgotten.tolist(), parameter.tolist())
"""


def test_outputs_are_read_when_the_program_has_waited(tmp_path):
    logs = record_ranks(ASYNCHRONOUS, 2, tmp_path)
    assert assert_matched(logs) == {"0-1"}
    for log in logs:
        (launch,) = log.of("launch")
        assert launch.flags & COLLECTIVE and launch.names("in") == ["arg0"] and not launch.names("written")
        (end,) = log.of("launch", "collective")
        assert end.forward == launch.index and (end.group, end.sequence) == (launch.group, launch.sequence)
        (overlap,), (wait,) = log.of("overlap"), log.of("wait")
        assert launch.index < overlap.index < end.index < wait.index
        assert end.get("in", "arg0").value == launch.get("in", "arg0").value
        assert end.get("out", "arg0").value == log.of("use")[0].get("in", "self").value
        # Memory that is being written is not read: a slot of it is the value before, or nothing.
        (view,) = log.of("view")
        for slot in view.slots:
            assert slot.flags & UNREADABLE or slot.value == launch.get("in", "arg0").value
        future, polled, forgotten = [e for e in log.events if e.kind == "collective" and e.forward is None]
        for e in (future, polled, forgotten):
            assert e.names("in") == e.names("out") == ["tensor"]
            assert e.get("in", "tensor").value != e.get("out", "tensor").value
        assert log.settings["collectives_not_waited"] == "1"
    ends = [log.of("launch", "collective")[0].get("out", "arg0").value for log in logs]
    assert ends[0] == ends[1]


GROUPS = """
pairs = [dist.new_group([0, 1]), dist.new_group([1, 2]), dist.new_group([1, 0]), dist.new_group([0, 2])]
def reduce(group, times):
    for _ in range(times):
        t = torch.ones(2) * rank
        dist.all_reduce(t, group=group)
        say(t.tolist())
# In another order than they were made in, and not alike on all ranks.
if rank in (0, 1): reduce(pairs[2], 2)
if rank in (1, 2): reduce(pairs[1], 1)
if rank in (0, 1): reduce(pairs[0], 1)
if rank in (0, 2): reduce(pairs[3], 3)
reduce(None, 1)
if rank == 0:
    dist.send(torch.ones(2), 2); dist.send(torch.zeros(2), 2, tag=7)
if rank == 2:
    got = torch.empty(2)
    og("recv", dist.recv)(got, 0); dist.recv(got, 0, tag=7)
    say(got.tolist())
exchange = [dist.P2POp(dist.isend, torch.ones(2) * rank, (rank + 1) % world), dist.P2POp(dist.irecv, torch.empty(2), (rank - 1) % world)]
for work in dist.batch_isend_irecv(exchange): work.wait()
say(exchange[1].tensor.tolist())
"""


def test_members_of_a_group_in_few_words(tmp_path):
    runtime_log.run_program("""
from opguard.ranks.flights import called, ranges
for ranks, text in (([2, 1, 0, 5], "0-2,5"), ([3, 11, 19, 27], "3-27/8"), ([0, 2, 4], "0,2,4"), ([0, 2, 3, 4], "0,2-4"), ([7], "7"), ([], ""),
                    (range(5, 10000, 8), "5-9997/8"), ([0, 4, 8, 12, 13, 14], "0-12/4,13-14")):
    assert ranges(ranks) == text, (ranks, ranges(ranks))
class Group:
    group_desc = "mesh_tp"
assert called(Group()) == "tp" and called(object()) == ""
Group.group_desc = "undefined"
assert called(Group()) == ""
""", tmp_path / "log")


def test_groups_have_one_name_on_all_their_members(tmp_path):
    logs = record_ranks(GROUPS, 3, tmp_path)
    assert assert_matched(logs) == {"0-2", "0-1", "0-1#1", "1-2", "0,2"}
    made = [{g: len(collectives(log, g)) for g in ("0-1", "0-1#1", "1-2", "0,2", "0-2")} for log in logs]
    assert made == [
        {"0-1": 1, "0-1#1": 2, "1-2": 0, "0,2": 3, "0-2": 1},
        {"0-1": 1, "0-1#1": 2, "1-2": 1, "0,2": 0, "0-2": 1},
        {"0-1": 0, "0-1#1": 0, "1-2": 1, "0,2": 3, "0-2": 1},
    ]
    # A message is numbered between its two ends, and what one sends the other receives.
    sent = {(e.group, e.sequence): e.get("in", "tensor").value
            for log in logs for e in collectives(log) if ">" in e.group and e.names("in")}  # fmt: skip
    received = {}
    for log in logs:
        for e in collectives(log):
            if ">" in e.group and not e.names("in"):
                received[e.group, e.sequence] = next(s.value for s in e.slots if s.kind != "in")
    assert sent == received and len(sent) == 5
    assert ("0-2:0>2/7", 1) in sent


FUNCTIONAL = """
import torch.distributed._functional_collectives as funcol
x = torch.full((4,), rank + 1.)
y = og("funcol", funcol.all_reduce)(x, "sum", dist.group.WORLD)
z = og("use", y) * 2
w = og("again", y) + 1
g = funcol.all_gather_tensor(torch.ones(2) * rank, 0, dist.group.WORLD) + 0
def step(x):
    t = x * 2
    dist.all_reduce(t)
    u = funcol.all_reduce(t, "sum", dist.group.WORLD)
    return u + 1
compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
say(z.tolist(), w.tolist(), g.tolist(), compiled(x).tolist(), step(x).tolist())
"""


def test_functional_collectives_and_compiled_ones(tmp_path):
    logs = record_ranks(FUNCTIONAL, 2, tmp_path)
    assert assert_matched(logs) == {"0-1"}
    for log in logs:
        (launch,), (end,) = log.of("funcol"), log.of("funcol", "collective")
        assert launch.flags & COLLECTIVE and end.forward == launch.index
        assert end.get("in", "arg0").value == launch.get("in", "arg0").value
        # The operator that had to wait for it has read it all the same.
        assert log.of("use")[0].get("in", "self").value == end.get("out", "out").value
        assert log.of("again")[0].get("in", "self").value == end.get("out", "out").value
        # Two in the compiled function, two in the same one run as it is.
        assert sorted(e.sequence for e in collectives(log)) == [1, 2, 3, 4, 5, 6]
        assert "collectives_not_waited" not in log.settings


RAISES = """
try:
    dist.all_gather([torch.empty(2)], torch.ones(2))
except Exception as error:
    say(type(error).__name__)
try:
    og("site", dist.all_reduce)("no tensor")
except Exception as error:
    say(type(error).__name__)
t = torch.ones(2)
dist.all_reduce(t)
say(t.tolist())
"""


def test_one_rank_may_record_alone_and_calls_may_raise(tmp_path):
    source = RAISES + ASYNCHRONOUS
    bare = run_ranks(source, 2)
    assert len(bare[0][:-1]) == 3
    assert run_ranks(source, 2, tmp_path, recording={1}) == bare
    (path,) = tmp_path.glob("*.log")
    log = Log(path)
    assert log.closed and [e for e in log.of("site") if e.flags & RAISED]


def test_torch_distributed_looks_the_same(tmp_path):
    (answer,) = run_ranks("""
import inspect, pickle
import torch.distributed._functional_collectives as funcol
from torch._dynamo.variables.functions import _traceable_collective_remaps
say(dist.all_reduce in _traceable_collective_remaps(), pickle.loads(pickle.dumps(dist.all_reduce)) is dist.all_reduce)
op = torch.ops._c10d_functional.all_reduce
say(op.default in {op.default: 1}, op in {op}, op.default.name(), str(op), op.overloads())
say(isinstance(dist.all_reduce(torch.ones(1), async_op=True), dist.Work), type(dist.group.WORLD).__name__)
say(torch.jit._builtins._find_builtin(op._op))
""", 1, tmp_path)  # fmt: skip
    assert answer == [
        "True True", "True True _c10d_functional::all_reduce _c10d_functional.all_reduce ['default']",
        "True ProcessGroup", "_c10d_functional::all_reduce",
    ]  # fmt: skip
