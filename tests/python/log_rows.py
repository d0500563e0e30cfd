"""Logs of a small program, and the rows that every table of them must have: made from runtime_log.py's reading, not the tool's."""

import pytest

import runtime_log

PROGRAM = """
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
for step in range(3):
    for micro_batch in range(2):
        x = og("train.randn:aaaa", torch.randn)(5, 8)
        y = og("train.model:bbbb", model)(x)
        mask = og("train.full:cccc", torch.full)((3, 3), float("-inf"))
        og("train.full:cccc", torch.full)((2,), 7, device="meta")
        og("train.add_:dddd", mask.add_)(1)
        try:
            og("train.cat:eeee", torch.cat)([x, mask], "no, \\"dimension\\"\\n\\u00e4")
        except TypeError:
            pass
        (og("train.mul:ffff", y) * y).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""

both = pytest.mark.parametrize("rows", ["events", "records"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The logs of two processes, of ranks 0 and 1."""
    folder = tmp_path_factory.mktemp("logs")
    for rank, steps in ((1, 2), (0, 3)):
        source = PROGRAM.replace("range(3)", f"range({steps})")
        runtime_log.run_program(source, folder, env={"RANK": str(rank), "WORLD_SIZE": "2"})
    return folder


@pytest.fixture(scope="module")
def second(folder):
    """What runtime_log.py reads, by rank."""
    return sorted(runtime_log.logs_in(folder), key=lambda log: log.rank)


ON_DEVICE = 8  # record/event.h


def flags(value, **bits):
    return {name: bool(value & bit) for name, bit in bits.items()}


def event_row(process, log, e):
    place = log.locations.get(e.boundary)
    return {
        "process": process, "rank": log.rank, "event": e.index, "step": e.step, "micro_batch": e.micro_batch, "phase": e.phase,
        "kind": e.kind, "boundary": e.boundary, "occurrence": e.occurrence, "node": e.node,
        "location": place and "%s:%d" % (place[0], place[1]),
        "thread": e.thread, "start_ns": e.start_ns, "end_ns": e.end_ns, "scalars": e.scalars, "results": e.results,
        "group": e.group, "sequence": e.sequence or None, **flags(e.flags, raised=1, collective=2, in_graph=4),
        **{name: getattr(e, name) if e.flags & ON_DEVICE else None for name in ("stream", "device_start_ns", "device_end_ns")},
    }  # fmt: skip


def expected_events(second):
    rows = []
    for process, log in enumerate(second):
        first = 0
        for e in log.events:
            rows.append({**event_row(process, log, e), "first_record": first, "records": len(e.slots), "begin": e.begin, "forward": e.forward})
            first += len(e.slots)
    return rows


def expected_records(second):
    rows = []
    for process, log in enumerate(second):
        for e in log.events:
            for s in e.slots:
                known = s.value is not None
                rows.append({
                    **event_row(process, log, e), "slot_kind": s.kind, "slot_index": s.index, "slot_name": s.name, "dtype": s.dtype,
                    "device": s.device, "shape": tuple(s.shape), "h": s.value[0] if known else None, "m": s.value[1] if known else None,
                    "flat": s.flat if known else None, "digest": s.digest, "pattern": s.pattern if known and s.flags & 16 else None, "version": s.version,
                    "storage": s.storage or None, "address": s.address, "size_bytes": s.size_bytes,
                    **flags(s.flags, unreadable=1, model_value=2, uninitialised=4, parameter=8, mask=16, carried=32, permuted=64, wants_gradient=256),
                })  # fmt: skip
    return rows


def expected(second, rows):
    return (expected_events if rows == "events" else expected_records)(second)


def compare(columns, rows, column_of):
    """column_of(name) -> a list of Python values, None where unknown."""
    assert set(columns) == set(rows[0])
    for name in columns:
        assert column_of(name) == [row[name] for row in rows], name
