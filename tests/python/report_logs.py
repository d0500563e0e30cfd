"""Two small runs for the tests of the report: their logs, the sources they name, and the command that compares them."""
import json
import subprocess

import pytest
from conftest import build_dir

SOURCE_A = """import torch


def attend(q, k):
    scores = q @ k
    weights = torch.softmax(scores, dim=-1)
    return weights * 2


def müller(x):
    return "größe" and x.sum() + x.mean(
        dim=-1,
    )
"""
SOURCE_B = SOURCE_A.replace("q @ k", "(q @ k).to(torch.bfloat16)")

IN, OUT, WRITTEN = 0, 1, 2
OP, NODE, LOSS, OPTIMIZER, COLLECTIVE = 0, 1, 3, 4, 5
FORWARD, BACKWARD, STEP = 0, 2, 3
MODEL_VALUE = 2


def slot(kind, value, name=None, flags=0, shape=(4, 8), dtype="float32"):
    name = name or ("arg0" if kind == IN else "out0")
    return {"kind": kind, "name": name, "value": value, "flags": flags, "shape": list(shape), "dtype": dtype}


def location(boundary, path, source, text, callee, function="attend"):
    """Where `text` is in `source`."""
    at = source.index(text)
    line = source.count("\n", 0, at)
    column = at - (source.rfind("\n", 0, at) + 1)
    end = at + len(text)
    return {"boundary": boundary, "file": path.name, "path": str(path), "line": line + 1, "column": column, "text": text,
            "end_line": source.count("\n", 0, end) + 1, "end_column": end - (source.rfind("\n", 0, end) + 1), "callee": callee, "function": function}


def events(steps, change, extra=False):
    """Four operators, a loss and an optimizer step, `steps` times; from step 1 on side b's results are others by `change`."""
    out = []
    for step in range(steps):
        base, other = 1000 * step, change if step >= 1 else 0
        def op(boundary, *slots, kind=OP, phase=FORWARD, micro_batch=0, **more):
            out.append({"boundary": boundary, "kind": kind, "phase": phase, "step": step, "occurrence": step, "micro_batch": micro_batch,
                        "slots": list(slots), **more})
        op("model.matmul:aaaa", slot(IN, base + 1, "self"), slot(IN, base + 2), slot(OUT, base + 3 + other))
        if extra and step == 1:
            op("model.to:eeee", slot(IN, base + 3 + other, "self"), slot(OUT, base + 33 + other, dtype="bfloat16"), scalars="arg0=torch.bfloat16")
        op("model.softmax:bbbb", slot(IN, base + 3 + other), slot(OUT, base + 4 + other), scalars="dim=-1")
        op("model.mul:cccc", slot(IN, base + 4 + other, "self"), slot(OUT, base + 5 + other), scalars="arg0=2")
        op("model.mean:dddd", slot(IN, base + 5 + other, "self"), slot(OUT, base + 6 + other, shape=()), scalars="dim=-1")
        op("model.backward:ffff", slot(IN, base + 6 + other, "root0", MODEL_VALUE, ()), kind=LOSS)
        op("model.mul:cccc", slot(IN, base + 7 + other, "grad0"), slot(OUT, base + 8 + other), kind=NODE, phase=BACKWARD, micro_batch=1,
           node="MulBackward0")
        op("model.step:0000", slot(IN, base + 9, "param:w", MODEL_VALUE), slot(IN, base + 8 + other, "grad:w"),
           slot(WRITTEN, base + 1009 + other, "param:w", MODEL_VALUE), kind=OPTIMIZER, phase=STEP, micro_batch=1, scalars="lr=0.1")
    return out


def locations(path, source, side):
    scores = "q @ k"
    found = [location("model.matmul:aaaa", path, source, scores, "@"),
             location("model.softmax:bbbb", path, source, "torch.softmax(scores, dim=-1)", "torch.softmax"),
             location("model.mul:cccc", path, source, "weights * 2", "*"),
             location("model.mean:dddd", path, source, "x.mean(\n        dim=-1,\n    )", ".mean", "müller")]
    if side == "b":
        found.append(location("model.to:eeee", path, source, "(q @ k).to(torch.bfloat16)", ".to"))
    return found


class Runs:
    """write(a, b): specifications of two runs as logs. compare(*options): `opguard align` on them."""

    def __init__(self, folder, opguard):
        self.folder, self.opguard = folder, opguard

    def write(self, **sides):
        for side, spec in sides.items():
            path = self.folder / f"{side}.json"
            path.write_text(json.dumps(spec))
            subprocess.run([write_logs(), path, self.folder / side], check=True)
        return self

    def compare(self, *options, env=None):
        return self.opguard("align", self.folder / "a", self.folder / "b", *options, env=env)


def write_logs():
    path = build_dir() / "tests" / "report" / "write_logs"
    if not path.is_file():
        pytest.fail(f"no {path}: the build has OPGUARD_BUILD_TESTS=OFF")
    return path


def sides(folder, ranks=1, steps=3, change=500, extra=True):
    """Specifications of both runs, their sources written below `folder`."""
    specs = {}
    for side, source in (("a", SOURCE_A), ("b", SOURCE_B)):
        tree = folder / f"tree_{side}"
        tree.mkdir()
        path = tree / "model.py"
        path.write_text(source)
        where = locations(path, source, side)
        specs[side] = {"processes": [
            {"rank": rank, "world": ranks, "locations": where,
             "events": events(steps, change * (side == "b"), extra and side == "b")} for rank in range(ranks)]}
    return specs


@pytest.fixture
def runs(tmp_path, opguard):
    """Two runs that part at `q @ k` of step 1."""
    return Runs(tmp_path, opguard).write(**sides(tmp_path))
