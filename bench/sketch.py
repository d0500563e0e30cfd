"""os1, the sketch of mode `sketch`: how well its 64 sums tell the norm of a difference, and what it costs.

  sketch.py [--package DIR] [--before DIR] [--json FILE] [--mib N] [--rounds N] [--tries N] [--table DOCUMENT]

Quality: of |y(d)| / |d| over --tries contents of a kind, mean, standard deviation and first percentile; d is float64 [96, 160].
Cost: what a record of mode `sketch` reads (`record`: all of bench/fingerprint.py, and the sketch, in one pass) beside torch.sum of the same tensor from
memory, on one thread, in turn; medians of the ratios. In two passes: `all`, then `sketch`. og1 alone: what is left of `record` without the layout-free digest.
--before: another build's package, whose two passes take turns with these.
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
            calls = [x.sum, *(partial(rt.fingerprint, x, kind) for kind in ("sketch", "all", "og1", "record"))]
            if before is not None:
                calls += [partial(before.fingerprint, x, "sketch"), partial(before.fingerprint, x, "all")]
            sums, sketch, everything, og1, record, *earlier = measure(calls, rounds)
            ratio = lambda *parts: statistics.median(sum(p) / t for *p, t in zip(*parts, sums))
            row = {"dtype": str(dtype).removeprefix("torch."), "columns": columns, "sketch": ratio(sketch), "record": ratio(record),
                   "two_passes": ratio(sketch, everything), "all": ratio(everything), "og1": ratio(og1)}  # fmt: skip
            if before is not None:
                row |= {"sketch_before": ratio(earlier[0]), "two_passes_before": ratio(*earlier)}
            found.append(row)
    return found


def tables(found):
    text = marks.table(("difference", "mean", "standard deviation", "first percentile"),
                       [(q["kind"], f"{q['mean']:.2f}", f"{q['deviation']:.3f}", f"{q['first_percentile']:.2f}") for q in found["quality"]])  # fmt: skip
    columns = [("the sketch / torch.sum", "sketch"), ("before", "sketch_before"), ("og1", "og1"), ("og1 and digest", "all"),
               ("a record, one pass", "record"), ("two passes", "two_passes"), ("two passes before", "two_passes_before")]  # fmt: skip
    heads, keys = ["type", "columns"], []
    for head, key in columns:
        if key in found["cost"][0]:
            heads, keys = [*heads, head], [*keys, key]
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
