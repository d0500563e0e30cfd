"""`opguard prove` against layers, ranks and dims: seconds of the capture and of the check.

    bench/prove_scale.py [--layers 1,2,4,8] [--ranks 2,4,8] [--widths 8,16,32] [--json FILE] [--table DOCUMENT]

The plan is ../shared/cases/prove/tp.py (tensor parallelism of a small Llama; forward, backward, gradient norm, SGD). One of the three changes at a time. With
--table nothing runs.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SMALL = dict(layers=2, ranks=2, hidden=8)


def measure(o, folder, layers, ranks, hidden):
    source = (o.cases / "tp.py").read_text()
    (folder / "plan.py").write_text(re.sub(r"WORLD, TP, SP = 2, 2, False", f"WORLD, TP, SP = {ranks}, {ranks}, False", source))
    heads = max(4, 2 * ranks)
    dims = f"layers={layers},hidden={max(hidden, 2 * heads)},heads={heads},kv={max(2, ranks)},ffn={max(12, 2 * ranks)},vocab={max(8, 2 * ranks)}"
    shutil.rmtree(folder / "kept", ignore_errors=True)
    begin = time.monotonic()
    ran = subprocess.run([o.opguard, "prove", folder / "plan.py", "--python", o.python, "--dims", dims, "--work", folder / "kept"], capture_output=True, text=True)
    whole = time.monotonic() - begin
    begin = time.monotonic()
    checked = subprocess.run([o.opguard, "prove", "--captured", folder / "kept", "--json", folder / "result.json"], capture_output=True, text=True)
    again = time.monotonic() - begin
    if ran.returncode or checked.returncode:
        return {"layers": layers, "ranks": ranks, "dims": dims, "verdict": (ran.stdout + ran.stderr)[-300:]}
    found = json.loads((folder / "result.json").read_text())
    return {"layers": layers, "ranks": ranks, "dims": dims, "verdict": found["verdict"], "operators": found["operators"]["plan"], "terms": found["terms"], "capture_seconds": round(whole - again, 1),
            "read_seconds": round(again - found["seconds"], 2), "check_seconds": round(found["seconds"], 2)}  # fmt: skip


def table(kept):
    rows = ["| layers | ranks | dims | verdict | operators | terms | capture, s | reading, s | check, s |", "|---|---|---|---|---|---|---|---|---|"]
    for r in kept["rows"]:
        if r["verdict"] == "proved":
            rows.append("| %d | %d | %s | %s | %d | %d | %.1f | %.2f | %.2f |" % (r["layers"], r["ranks"], r["dims"].replace(",", " "), r["verdict"], r["operators"], r["terms"], r["capture_seconds"], r["read_seconds"], r["check_seconds"]))
        else:
            rows.append("| %d | %d | %s | %s | | | | | |" % (r["layers"], r["ranks"], r["dims"].replace(",", " "), r["verdict"].split("\n")[0][:60]))
    return "\n".join(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", default="1,2,4,8")
    parser.add_argument("--ranks", default="2,4,8")
    parser.add_argument("--widths", default="8,16,32")
    parser.add_argument("--cases", type=Path, default=ROOT.parent / "shared" / "cases" / "prove")
    parser.add_argument("--opguard", type=Path, default=ROOT / "build" / "release" / "src" / "cli" / "opguard")
    parser.add_argument("--python", type=Path, default=ROOT / ".venv" / "bin" / "python")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--table", type=Path, metavar="DOCUMENT")
    o = parser.parse_args()
    if o.table:
        from marks import put

        put(o.table, "prove_scale", table(json.loads(o.json.read_text())))
        return 0
    if not o.cases.is_dir():
        print(f"skipped: no {o.cases}")
        return 77
    asked = [dict(SMALL, layers=int(n)) for n in o.layers.split(",")] + [dict(SMALL, ranks=int(n)) for n in o.ranks.split(",")] + [dict(SMALL, hidden=int(n)) for n in o.widths.split(",")]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(o.cases / "llama.py", folder)
        for one in [case for i, case in enumerate(asked) if case not in asked[:i]]:
            rows.append(measure(o, Path(folder), **one))
            print(rows[-1], flush=True)
    if o.json:
        o.json.write_text(json.dumps({"rows": rows}, indent=1) + "\n")
    return 0 if all(r["verdict"] == "proved" for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
