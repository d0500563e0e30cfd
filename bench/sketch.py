"""os1, the sketch of mode `sketch`: how well its 64 sums tell the norm of a difference, and what it costs.

  sketch.py [--package DIR] [--json FILE] [--mib N] [--rounds N] [--tries N] [--table DOCUMENT]

Quality: of |y(d)| / |d| over --tries contents of a kind, mean, standard deviation and first percentile; d is float64 [96, 160].
Cost: what a record of mode `sketch` reads (`all` of bench/fingerprint.py, and the sketch) beside torch.sum of the same tensor from memory, on one
thread, in turn; medians of the ratios. --table writes the part of the document from the results in --json, and measures nothing.
"""
import argparse
import json
import statistics
import sys
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


def cost(torch, rt, mib, rounds):
    found = []
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        for columns in (64, 1024, 4096):
            x = torch.randn((mib << 20) // (columns * dtype.itemsize), columns).to(dtype)
            times = measure([lambda: rt.fingerprint(x, "sketch"), lambda: rt.fingerprint(x, "all"), x.sum], rounds)
            alone = statistics.median(s / t for s, _, t in zip(*times))
            both = statistics.median((s + o) / t for s, o, t in zip(*times))
            found.append({"dtype": str(dtype).removeprefix("torch."), "columns": columns, "sketch": alone, "record": both})
    return found


def tables(found):
    text = marks.table(("difference", "mean", "standard deviation", "first percentile"),
                       [(q["kind"], f"{q['mean']:.2f}", f"{q['deviation']:.3f}", f"{q['first_percentile']:.2f}") for q in found["quality"]])  # fmt: skip
    text += "\n" + marks.table(("type", "columns", "the sketch / torch.sum", "a record's whole reading / torch.sum"),
                               [(c["dtype"], f"{c['columns']:,}", f"{c['sketch']:.2f}", f"{c['record']:.2f}") for c in found["cost"]])  # fmt: skip
    return text + f"\nTensors of {found['mib']} MiB, loops `{found['level']}`, one thread.\n"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--package", type=Path, default=ROOT / "build" / "release" / "python")
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
    found = {"mib": o.mib, "level": rt.lane_sums()[0], "quality": quality(torch, rt, o.tries), "cost": cost(torch, rt, o.mib, o.rounds)}
    if o.json:
        o.json.write_text(json.dumps(found, indent=1) + "\n")
    print(tables(found), end="")


if __name__ == "__main__":
    main()
