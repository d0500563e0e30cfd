"""Observations: what `_rt.observe` takes is what a second reader finds in the log."""

import sys

import pytest

from conftest import build_dir
from runtime_log import Bits, logs_in, record, run_program

NUMBERS = "from opguard import _rt\nN = _rt.observation('thing', ('a', 'b:bits', 'c'))\n"


def rows(log, kind="thing"):
    return [list(o.row.values()) for o in log.observed(kind)]


def test_a_program_of_observations_alone_has_a_log(tmp_path):
    log = record(NUMBERS + "for i in range(1000): _rt.observe(N, (i, 2 ** 64 - i, 'text'))", tmp_path)
    assert rows(log) == [[i, (2**64 - i) % 2**64, "text"] for i in range(1000)]
    assert log.boundaries() == []
    times = [o.time_ns for o in log.observations]
    assert times == sorted(times) and times[0] > 0


VALUES = {
    "None": None,
    "True": True,
    "False": False,
    "0": 0,
    "-16": -16,
    "15": 15,
    "31": 31,
    "-2 ** 63": -(2**63),
    "2 ** 63 - 1": 2**63 - 1,
    "2 ** 64 - 1": 2**64 - 1,
    "2 ** 64": None,
    "-2 ** 63 - 1": None,
    "0.1": 0.1,
    "-0.0": -0.0,
    "float('inf')": float("inf"),
    "1e-310": 1e-310,
    "''": "",
    "'\\u00e9'": "\u00e9",
    "'\\ud800'": None,
    "[]": [],
    "(1, [2.5, None, ('x',)])": [1, [2.5, None, ["x"]]],
    "list(range(100))": list(range(100)),
    "{1: 2}": None,
    "object()": None,
    "numpy.float64(0.3)": 0.3,
    "numpy.int64(3)": None,
    "torch.ones(2)": None,
    "torch.Size((2, 3))": [2, 3],
    "enum.IntEnum('E', 'A B').B": 2,
}


def test_values_of_every_kind(tmp_path):
    source = "import enum, numpy, torch\nfrom opguard import _rt\nN = _rt.observation('thing', ('value', 'last'))\n"
    source += "".join(f"_rt.observe(N, ({text}, 7))\n" for text in VALUES)
    log = record(source, tmp_path)
    assert [repr(row) for row in rows(log)] == [repr([value, 7]) for value in VALUES.values()]


def test_bits_are_said_by_the_field(tmp_path):
    source = NUMBERS + "_rt.observe(N, (5, 5, 5)); _rt.observe(N, ([5], [5, None, -1], None)); _rt.observe(N, (1, True, 'x'))"
    log = record(source, tmp_path)
    assert rows(log) == [[5, 5, 5], [[5], [5, None, 2**64 - 1], None], [1, True, "x"]]
    assert [type(row[1]) for row in rows(log)[:1]] == [Bits] and type(rows(log)[0][0]) is int
    assert log.schemas == [("thing", ["a", "b", "c"])]


def test_odd_calls_harm_nobody(tmp_path):
    source = NUMBERS + """
loop = []
loop.append(loop)
deep = []
for _ in range(50): deep = [deep]
for values in [(), (1,), (1, 2, 3, 4), (loop,), (deep,), ('x' * 100_000,)]:
    _rt.observe(N, values)
for wrong in [(N,), (77, ()), (-1, ()), (N, [1]), (None, None), (2 ** 80, ())]:
    assert _rt.observe(*wrong) is None
"""
    result = run_program(source, tmp_path)
    assert result.stderr.count("opguard: warning: an observation is not of a schema") == 1
    (log,) = logs_in(tmp_path)
    found = rows(log)
    assert found[:3] == [[None] * 3, [1, None, None], [1, 2, 3]]
    assert len(found) == 6 and len(found[5][0]) < 1100
    assert log.settings["opguard_faults"] == "6"


def test_a_kind_is_said_once_a_log(tmp_path):
    source = """
import os
from opguard import _rt
a = _rt.observation('thing', ('x',))
assert a == _rt.observation('thing', ('x',)) != _rt.observation('thing', ('x', 'y'))
_rt.observe(a, (1,))
if os.fork() == 0:
    _rt.observe(a, (2,))
    os._exit(0)
os.wait()
_rt.observe(a, (3,))
"""
    run_program(source, tmp_path)
    logs = logs_in(tmp_path)
    assert sorted(rows(log) for log in logs) == [[[1], [3]], [[2]]]
    assert all(log.schemas == [("thing", ["x"])] and log.closed for log in logs)


def test_only_steps_of_the_window(tmp_path):
    source = NUMBERS + "for i in range(6):\n    _rt.observe(N, (i, None, None))\n    _rt.mark_step()\n"
    log = record(source, tmp_path, env={"OPGUARD_RECORD_STEPS": "2..3"})
    assert [(o.step, o["a"]) for o in log.observations] == [(2, 2), (3, 3)]


def test_the_last_steps_of_a_ring(tmp_path):
    source = NUMBERS + """
import torch
for i in range(6):
    og('m.relu:aaaa', torch.relu)(torch.ones(2))
    _rt.observe(N, (i, None, None))
    if i == 4: opguard.keep('wanted')
    _rt.mark_step()
"""
    run_program("import opguard\n" + source, tmp_path, env={"OPGUARD_RING": "2"})
    (log,) = logs_in(next(tmp_path.glob("kept-*")))
    assert [o["a"] for o in log.observations] == [3, 4]
    for o in log.observations:
        assert log.events[o.event - 1].boundary == "m.relu:aaaa" and log.events[o.event - 1].step == o.step


def test_between_events_they_are_where_they_were_made(tmp_path):
    source = NUMBERS + """
import torch
for i in range(50):
    og('m.relu:aaaa', torch.relu)(torch.ones(2))
    _rt.observe(N, (i, None, None))
"""
    log = record(source, tmp_path)
    first = next(e.index for e in log.events if e.kind == "op")
    assert [o.event - first for o in log.observations] == list(range(1, 51))


@pytest.mark.parametrize("how", ["list", "tuple"])
def test_hashes_are_og1(tmp_path, how):
    source = f"""
import torch
from opguard import _rt
torch.manual_seed(0)
x = torch.randn(300, 70)
all = [x, x.t(), x[3:7, ::2], torch.zeros(0), torch.tensor(3.5), torch.randn(2_000_000), x.bool(), torch.nn.Parameter(x)]
odd = [torch.empty(3, device='meta'), x.to_sparse(), None, 7]
found = _rt.hashes({how}(all + odd))
assert found[:len(all)] == [_rt.fingerprint(t)[0] for t in all], found
assert found[len(all):] == [None] * 4
assert _rt.hashes([]) == []
"""
    run_program(source)


def test_flush_soon_is_seen_before_the_second(tmp_path):
    source = NUMBERS + """
import os, sys, time
_rt.flush_soon()
_rt.observe(N, (1, 2, 'here'))
size = lambda: sum(os.path.getsize(os.path.join(sys.argv[1], f)) for f in os.listdir(sys.argv[1]))
before, begin = size(), time.monotonic()
_rt.flush_soon()
while size() == before and time.monotonic() - begin < 5: time.sleep(0.001)
assert time.monotonic() - begin < 0.5, 'it came with the usual flush'
""".replace("sys.argv[1]", repr(str(tmp_path)))
    record(source, tmp_path)


SEEN = """
from opguard import _rt
A, B = _rt.observation('thing', ('name', 'value:bits', 'list', 'kind')), _rt.observation('other', ('x',))
for i in range(3):
    _rt.observe(A, ('a\\n%d' % i, 2 ** 64 - 1 - i, [1.5, [None, True] * 9, 'z'], i or None))
    _rt.observe(B, (i,))
    _rt.mark_step()
"""


def test_read_log_has_a_table_of_them(tmp_path):
    sys.path.insert(0, str(build_dir() / "python"))
    try:
        from opguard import read_log
    finally:
        sys.path.pop(0)
    pytest.importorskip("pandas")
    record(SEEN, tmp_path)
    seen = read_log(tmp_path).observations
    assert len(seen) == 6 and seen.kinds == {"thing": 3, "other": 3}
    rows = list(seen.of("thing"))
    assert [row["step"] for row in rows] == [0, 1, 2] and {row["rank"] for row in rows} == {0}
    assert rows[1]["fields"] == {"name": "a\n1", "value": 2**64 - 2, "list": [1.5, [None, True] * 9, "z"], "kind": 1}
    assert len(seen.of("none of them")) == 0 and list(seen.of("none of them")) == []
    frame = seen.to_pandas()
    assert list(frame.columns) == ["process", "rank", "kind", "step", "event", "time_ns", "fields"] and len(frame) == 6
    things = seen.of("thing").to_pandas()
    assert list(things["value"]) == [2**64 - 1, 2**64 - 2, 2**64 - 3] and list(things["fields.kind"]) == [None, 1, 2]
    assert repr(seen) == "<opguard.Observations, 6 rows: thing 3, other 3>"


def test_dump_shows_a_line_each(tmp_path, opguard):
    log = record(SEEN, tmp_path)
    lines = opguard("dump", log.path).stdout.splitlines()
    assert "6 observations" in lines[0]
    seen = [line.strip() for line in lines if " step " in line and "=" in line and not line.startswith("setting")]
    assert len(seen) == 6
    list_text = "[1.5, [" + "none, yes, " * 7 + "none, yes, and 2 more], z]"
    assert seen[2].split() == f"thing step 1 name=a\\x0a1 value=fffffffffffffffe list={list_text} kind=1".split()
    assert [line.split() for line in opguard("dump", log.path, "--observed", "oth*", "--step", "1-2").stdout.splitlines()[1:]] == [
        ["other", "step", "1", "x=1"], ["other", "step", "2", "x=2"]]  # fmt: skip
    assert len(opguard("dump", log.path, "--observed", "*", "--limit", "4").stdout.splitlines()) == 5
