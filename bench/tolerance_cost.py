"""What mode `sketch` costs a training step, and its log: beside the bare step, and beside mode `full`.

  tolerance_cost.py [--build DIR] [--before DIR] [--python FILE] [--sizes tiny,small,large] [--steps N] [--json FILE]
  tolerance_cost.py --json FILE --table DOCUMENT     # the document's part, from what was kept; runs nothing

The program is that of bench/overhead.py: its bare and its probed steps take turns within one process (one thread). x: medians over the steps of probed /
bare, of the processor's time of all threads. The log's bytes are all of them, by slots that have a sketch: what `opguard dump` says so of. --before: mode
`sketch` of another build too, in turn with this one's. Exit code 1 where a step takes more than twice the bare one, or a sketched record more than 400 bytes.
"""
import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import marks
import overhead

ROOT = Path(__file__).resolve().parents[1]
GOAL_X, GOAL_BYTES = 2, 400
SKETCHED = re.compile(r" +(in|out|written) .* norm [-+.e0-9]+$")  # a slot of `opguard dump`


def log_of(opguard, folder):
    """(bytes, slots with a sketch) of the logs there."""
    files = list(folder.glob("*.log"))
    dumped = subprocess.Popen([opguard, "dump", folder], stdout=subprocess.PIPE, text=True)
    sketched = sum(SKETCHED.match(line) is not None for line in dumped.stdout)
    if dumped.wait() != 0:
        sys.exit(f"opguard dump ended with {dumped.returncode}")
    return sum(f.stat().st_size for f in files), sketched


def measure(o, work, size, name, mode, build):
    """One process: its row."""
    folder = work / name
    for log in (folder / "log").glob("*"):
        log.unlink()
    options = argparse.Namespace(build=build, python=o.python, steps=o.steps)
    row = overhead.child(options, "--one", mode, "--sizes", size, "--work", folder)
    if mode == "sketch":
        row["log_bytes"], row["sketched"] = log_of(build / "src" / "cli" / "opguard", folder / "log")
        row["bytes_a_sketched"] = row["log_bytes"] / row["sketched"]
    row["build"] = name
    print(f"{size:8}{name:8}{mode:8} cpu x {row['cpu']['x']} {row['cpu']['quartiles']}, wall x {row['wall']['x']}, bare {row['cpu']['bare_ms']} ms"
          + (f", {row['bytes_a_sketched']:.0f} B a sketched record" if mode == "sketch" else ""), flush=True)  # fmt: skip
    return row


def table(found):
    def cells(r):
        bytes_a_sketched = f"{r['bytes_a_sketched']:.0f}" if "bytes_a_sketched" in r else ""
        return (r["size"], r["mode"] + (", before" if r["build"] == "before" else ""), f"{r['cpu']['bare_ms']:.0f}", f"{r['cpu']['x']:.2f}",
                f"{r['cpu']['quartiles'][0]:.2f} - {r['cpu']['quartiles'][1]:.2f}", bytes_a_sketched)  # fmt: skip

    return marks.table(("program", "mode", "bare step, ms", "times the bare step", "quartiles", "bytes a sketched record"), [cells(r) for r in found["rows"]])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    p.add_argument("--before", type=Path)
    p.add_argument("--python", default=sys.executable, help="an interpreter that has torch")
    p.add_argument("--sizes", default="tiny,small,large")
    p.add_argument("--steps", type=int, default=20)
    p.add_argument("--json", type=Path)
    p.add_argument("--table", type=Path)
    o = p.parse_args()
    if o.table:
        marks.put(o.table, "tolerance-cost", table(json.loads(o.json.read_text())))
        return 0
    builds = {"now": o.build.resolve(), **({"before": o.before.resolve()} if o.before else {})}
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        for name, build in builds.items():
            (work / name).mkdir()
            overhead.instrumented_copy(build, o.python, work / name)
        for size in o.sizes.split(","):
            rows.append(measure(o, work, size, "now", "full", builds["now"]))
            rows += [measure(o, work, size, name, "sketch", build) for name, build in builds.items()]
    if o.json:
        o.json.write_text(json.dumps({"rows": rows}, indent=1) + "\n")
    return 0 if all(r["cpu"]["x"] <= GOAL_X and r["bytes_a_sketched"] <= GOAL_BYTES for r in rows if r["mode"] == "sketch" and r["build"] == "now") else 1


if __name__ == "__main__":
    sys.exit(main())
