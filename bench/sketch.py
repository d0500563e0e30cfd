"""os1, the sketch of mode `sketch`: how well its 64 sums tell the norm of a difference, and what it costs.

  sketch.py [--package DIR] [--before DIR] [--json FILE] [--mib N] [--rounds N] [--tries N] [--table DOCUMENT]

Quality: of |y(d)| / |d| over --tries contents of a kind, mean, standard deviation and first percentile; d is float64 [96, 160].
Cost: what a record of mode `sketch` reads (`all` of bench/fingerprint.py, and the sketch) beside torch.sum of the same tensor from memory, on one
thread, in turn; medians of the ratios. --before: another build's package, whose calls take turns with these.
In pieces: both readings of each 1 MiB, one after the other, while it is in the second-level cache: what one walk for both would save.
--table writes the part of the document from the results in --json, and measures nothing.
"""
import argparse
import importlib.machinery
import importlib.util
import json
import statistics
import sys
from functools import partial
from pathlib import Path

import marks
from fingerprint import measure

ROOT = Path(__file__).resolve().parents[1]
PIECE_MIB = 1
KINDS = ("gaussian", "one column", "one row", "one head of 8", "heavy tail", "constant", "equal rows", "rank 1")


def content(torch, kind, generator):
    rows, columns = 96, 160
    x = torch.randn(rows, columns, generator=generator, dtype=torch.float64)
    pick = int(torch.randint(0, 1 << 30, (), generator=generator))
    if kind == "one column":
        x[:, [c for c in range(columns) if c != pick % columns]] = 0
    elif kind == "one row":
        x[[r for r in range(rows) if r != pick % rows]] = 0
    elif kind == "one head of 8":
        x.view(rows, 8, 20)[:, [h for h in range(8) if h != pick % 8]] = 0
    elif kind == "heavy tail":
        x = x**5
    elif kind == "constant":
        x = torch.roll(torch.ones(rows, columns, dtype=torch.float64), 1) * (1 + pick % 7)
        x[: pick % (rows - 1)] = 0
    elif kind == "equal rows":
        x = x[:1].expand(rows, columns).contiguous()
    elif kind == "rank 1":
        x = torch.outer(x[:, 0], x[0])
    return x


def quality(torch, rt, tries):
    found = []
    for kind in KINDS:
        generator = torch.Generator().manual_seed(2026)
        ratios = []
        for _ in range(tries):
            x = content(torch, kind, generator)
            y = torch.tensor(rt.fingerprint(x, "sketch"), dtype=torch.float64)
            ratios.append(float(y.norm() / x.norm()))
        found.append({"kind": kind, "mean": statistics.mean(ratios), "deviation": statistics.pstdev(ratios), "first_percentile": sorted(ratios)[tries // 100]})
    return found


def runtime_of(package):
    """The extension of another build, beside this one's."""
    path = str(next((package / "opguard").glob("_rt*.so")))
    loader = importlib.machinery.ExtensionFileLoader("before._rt", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("before._rt", loader))
    loader.exec_module(module)
    return module


def cost(torch, rt, before, mib, rounds):
    found = []
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        for columns in (64, 1024, 4096):
            x = torch.randn((mib << 20) // (columns * dtype.itemsize), columns).to(dtype)
            pieces = x.split(max((PIECE_MIB << 20) // (columns * dtype.itemsize), 1))
            calls = [x.sum, lambda: [rt.fingerprint(p, kind) for p in pieces for kind in ("all", "sketch")]]
            for one in (rt, before):
                if one is not None:
                    calls += [partial(one.fingerprint, x, "sketch"), partial(one.fingerprint, x, "all")]
            sums, walked, *others = measure(calls, rounds)
            row = {"dtype": str(dtype).removeprefix("torch."), "columns": columns}
            for name, sketch, rest in zip(("", "_before"), others[::2], others[1::2]):
                row["sketch" + name] = statistics.median(s / t for s, t in zip(sketch, sums))
                row["record" + name] = statistics.median((s + o) / t for s, o, t in zip(sketch, rest, sums))
            row["in_pieces"] = statistics.median(s / t for s, t in zip(walked, sums))
            found.append(row)
    return found


def tables(found):
    text = marks.table(("difference", "mean", "standard deviation", "first percentile"),
                       [(q["kind"], f"{q['mean']:.2f}", f"{q['deviation']:.3f}", f"{q['first_percentile']:.2f}") for q in found["quality"]])  # fmt: skip
    heads, keys = ["type", "columns", "the sketch / torch.sum", "a record's whole reading / torch.sum"], ["sketch", "record"]
    if "sketch_before" in found["cost"][0]:
        heads[3:3] = ["before"]
        heads, keys = [*heads, "before"], ["sketch", "sketch_before", "record", "record_before"]
    heads, keys = [*heads, "in pieces"], [*keys, "in_pieces"]
    text += "\n" + marks.table(heads, [(c["dtype"], f"{c['columns']:,}", *(f"{c[k]:.2f}" for k in keys)) for c in found["cost"]])
    return text + f"\nTensors of {found['mib']} MiB, loops `{found['level']}`, one thread.\n"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--package", type=Path, default=ROOT / "build" / "release" / "python")
    p.add_argument("--before", type=Path)
    p.add_argument("--json", type=Path)
    p.add_argument("--mib", type=int, default=128)
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("--tries", type=int, default=300)
    p.add_argument("--table", type=Path)
    o = p.parse_args()
    if o.table:
        marks.put(o.table, "sketch", tables(json.loads(o.json.read_text())))
        return
    sys.path.insert(0, str(o.package))
    import torch
    from opguard import _rt as rt

    torch.set_num_threads(1)
    found = {"mib": o.mib, "level": rt.lane_sums()[0], "quality": quality(torch, rt, o.tries),
             "cost": cost(torch, rt, o.before and runtime_of(o.before), o.mib, o.rounds)}  # fmt: skip
    if o.json:
        o.json.write_text(json.dumps(found, indent=1) + "\n")
    print(tables(found), end="")


if __name__ == "__main__":
    main()
