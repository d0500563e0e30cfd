"""Seconds of inference and of checking of invariants by the number of rows, and the slope.

  invariant_scale.py [--build DIR] [--rows 10000,100000,1000000,10000000] [--runs 100] [--programs 20] [--json FILE]

Rows are made up (bench/invariant_scale.cc) and in memory: reading logs and making their rows is not measured. One core, seconds of the processor. Inference is counting the rows'
patterns and mining. The slope is that of log seconds of counting over log rows, by least squares: mining depends on patterns alone. Exit code 1 where
10^7 rows take more than 10 s, a second checks fewer than 10^6 rows, or the slope is above 1.15.
"""
import argparse
import json
import math
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GOAL_SECONDS, GOAL_ROWS, GOAL_CHECKED, GOAL_SLOPE = 10, 10**7, 10**6, 1.15


def slope(points):
    """Of log y over log x, by least squares."""
    xs, ys = [math.log(x) for x, _ in points], [math.log(y) for _, y in points]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys)) / sum((a - x) ** 2 for a in xs)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    p.add_argument("--rows", default="10000,100000,1000000,10000000")
    p.add_argument("--runs", type=int, default=100)
    p.add_argument("--programs", type=int, default=20)
    p.add_argument("--json", type=Path)
    o = p.parse_args()
    subprocess.run(["ninja", "-C", o.build, "invariant_scale"], check=True, stdout=subprocess.DEVNULL)
    core = min(os.sched_getaffinity(0))
    found = []
    for rows in map(int, o.rows.split(",")):
        words = [o.build / "bench" / "invariant_scale", rows, o.runs, o.programs]
        done = subprocess.run([str(w) for w in words], check=True, capture_output=True, text=True, preexec_fn=lambda: os.sched_setaffinity(0, {core}))
        found.append(json.loads(done.stdout))
        r = found[-1]
        print(f"{r['rows']:>11,} rows, {r['patterns']:,} patterns, {r['rules']} rules: counted in {r['count_s']:.3f} s, mined in {r['mine_s']:.3f} s; "
              f"{r['checked_a_second'] / 1e6:.1f} million checked a second", flush=True)  # fmt: skip
    result = {"rows": found, "slope": round(slope([(r["rows"], r["count_s"]) for r in found]), 3) if len(found) > 1 else None}
    print(f"slope {result['slope']}")
    if o.json:
        o.json.write_text(json.dumps(result, indent=1) + "\n")
    most = found[-1]
    kept = (most["infer_s"] <= GOAL_SECONDS * max(1, most["rows"] / GOAL_ROWS) and most["checked_a_second"] >= GOAL_CHECKED
            and (result["slope"] is None or result["slope"] <= GOAL_SLOPE))  # fmt: skip
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
