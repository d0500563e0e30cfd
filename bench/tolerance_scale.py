"""Time and memory of `opguard align --tolerance` by the length of the logs, and the bytes that a sketch takes in them.

  tolerance_scale.py [--build DIR] [--before FILE] [--records N] [--layouts "4 2 1,2 2 2"] [--layers N] [--steps N] [--work DIR] [--json FILE]
  tolerance_scale.py --json FILE --table DOCUMENT [--mark NAME]     # the document's part, from what was kept; runs nothing

Logs of a made-up training (bench/parallel_log.cc): a reference of one process with the pieces that the candidate's ranks hold, the same with
jitter, a candidate, and one in which an operator leaves another value from the middle step on. A layout is the ranks of tensor, data and pipeline
parallelism; there are as many micro-batches as the candidate's ranks together need for --records. The whole command is measured: reading,
checksums, placements, the walk back and the report; on one core. --build: its opguard as it stands; --before: another build's, in turn with this
one. Exit code 1 where the command takes more than 30 s for 10^6 records, or a sketched record of the candidate more than 400 bytes.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import marks
from align_scale import run

ROOT = Path(__file__).resolve().parents[1]
GOAL_SECONDS, GOAL_BYTES = 30, 400


def made(maker, kind, folder, steps, layers, micro, layout, *candidate):
    """(records, sketched ones)."""
    words = [maker, kind, folder, steps, layers, micro, *layout.split(), *candidate]
    done = subprocess.run([str(w) for w in words], check=True, capture_output=True, text=True)
    return tuple(map(int, done.stdout.split()))


def micro_batches(maker, work, steps, layers, layout, records):
    """How many of each data-parallel rank: the least that make so many records."""
    one, two = (made(maker, "candidate", work / f"count{n}", 1, layers, n, layout)[0] * steps for n in (1, 2))
    return max(1, -(-(records - (2 * one - two)) // (two - one)))


def size_of(folder):
    return sum(f.stat().st_size for f in folder.iterdir())


def measure(o, work, layout):
    maker = o.build / "bench" / "parallel_log"
    micro = micro_batches(maker, work, o.steps, o.layers, layout, o.records)
    words = o.steps, o.layers, micro, layout
    counts = {kind: made(maker, kind, work / kind, *words) for kind in ("candidate", "faulty")}
    whole = made(maker, "reference", work / "reference", *words, work / "candidate")
    made(maker, "noise", work / "noise", *words)
    tools = {"now": o.build / "src" / "cli" / "opguard", **({"before": o.before} if o.before else {})}
    rows = []
    for kind in ("candidate", "faulty"):
        row = {"layout": layout, "change": "equal" if kind == "candidate" else "faulty", "micro_batches": micro, "steps": o.steps, "layers": o.layers,
               "records": counts[kind][0], "sketched": counts[kind][1], "reference_records": whole[0],
               "bytes": {n: size_of(work / n) for n in (kind, "reference", "noise")},
               # A noise log is the reference without pieces.
               "bytes_a_sketched": size_of(work / kind) / counts[kind][1], "bytes_a_sketched_of_one": size_of(work / "noise") / whole[1]}  # fmt: skip
        for name, tool in tools.items():
            code, seconds, cpu, peak = run([tool, "align", "--tolerance", work / "reference", work / kind, "--noise", work / "noise"], {min(o.cores)})
            row[name] = {"exit": code, "seconds": round(seconds, 2), "cpu_seconds": round(cpu, 2), "peak_mb": round(peak)}
        rows.append(row)
        print(f"{layout}  {row['change']:7}{row['records']:>10,} records, {row['bytes_a_sketched']:.0f} B a sketched one  "
              + "  ".join(f"{n}: exit {row[n]['exit']}, {row[n]['cpu_seconds']} s of CPU, {row[n]['peak_mb']} MB" for n in tools), flush=True)  # fmt: skip
    return rows


def table(found):
    def cells(r):
        tensor, data, pipeline = r["layout"].split()
        before = f"{r['before']['cpu_seconds']:.1f}" if "before" in r else ""
        return (f"{tensor} x {data} x {pipeline}", r["change"], f"{r['records']:,}", f"{r['reference_records']:,}",
                f"{r['bytes_a_sketched']:.0f}", before, f"{r['now']['cpu_seconds']:.1f}", f"{r['now']['peak_mb']:,}")  # fmt: skip

    heads = ("tensor x data x pipeline", "candidate", "its records", "the reference's", "bytes a sketched record", "s before", "s", "MB")
    return marks.table(heads, [cells(r) for r in found["rows"]]) + "\nSeconds are the processor's, of the whole command.\n"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    p.add_argument("--before", type=Path)
    p.add_argument("--records", type=int, default=10**6)
    p.add_argument("--layouts", default="4 2 1,2 2 2")
    p.add_argument("--layers", type=int, default=32)
    p.add_argument("--steps", type=int, default=2)
    p.add_argument("--work", type=Path)
    p.add_argument("--json", type=Path)
    p.add_argument("--table", type=Path)
    p.add_argument("--mark", default="tolerance-scale")
    o = p.parse_args()
    if o.table:
        marks.put(o.table, o.mark, table(json.loads(o.json.read_text())))
        return 0
    o.cores = os.sched_getaffinity(0)
    subprocess.run(["ninja", "-C", o.build, "parallel_log"], check=True, stdout=subprocess.DEVNULL)
    rows = []
    for layout in o.layouts.split(","):
        with tempfile.TemporaryDirectory(dir=o.work) as work:
            rows += measure(o, Path(work), layout)
    if o.json:
        o.json.write_text(json.dumps({"rows": rows}, indent=1) + "\n")
    kept = all(r["bytes_a_sketched"] <= GOAL_BYTES and r["now"]["cpu_seconds"] <= GOAL_SECONDS * max(1, r["records"] / 10**6) for r in rows)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
