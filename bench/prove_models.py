"""`opguard prove --full` of a Llama of published dims: seconds and memory of the capture and of the check.

    bench/prove_models.py [--models 8b,70b,405b] [--json FILE] [--table DOCUMENT]

The plan is bench/plans/llama_parallel.py: forward, backward, clipping and AdamW, with tensor, sequence, pipeline and data parallelism. It is proved at small dims
with three layers a stage, and compared with the program at the published dims. With --table nothing runs.
"""

import argparse
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLAN = ROOT / "bench" / "plans" / "llama_parallel.py"
REDUCED = {
    "8b": "dp=3,pp=1,tp=1,layers=3,batch=12",
    "70b": "dp=2,pp=4,tp=2,layers=12,batch=8",
    "405b": "dp=3,pp=16,tp=2,layers=48,batch=12",
}


def peak_of_children():
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def measure(o, model):
    with tempfile.TemporaryDirectory() as folder:
        kept, written = Path(folder) / "kept", Path(folder) / "result.json"
        text = PLAN.read_text().replace('FULL = MODELS["8b"]', f'FULL = MODELS["{model}"]')
        plan = Path(folder) / PLAN.name
        plan.write_text(text)
        begin = time.monotonic()
        ran = subprocess.run([o.opguard, "prove", plan, "--python", o.python, "--dims", REDUCED[model], "--full", "--work", kept, "--json", written], capture_output=True, text=True)
        seconds = time.monotonic() - begin
        if not written.exists():
            return {"model": model, "dims": REDUCED[model], "verdict": (ran.stdout + ran.stderr).strip().splitlines()[-1][-300:], "seconds": round(seconds, 1)}
        found = json.loads(written.read_text())
    full = found["full"]
    layers = max(full["repeated"], key=lambda r: r["operators"], default={"reduced": 0, "full": 0})
    return {"model": model, "dims": REDUCED[model], "verdict": found["verdict"], "why": re.sub(r"/\S*/", "", found.get("why", "")), "ranks": found["world"], "full_ranks": full["world"], "looked_at": full["looked_at"], "operators": found["operators"]["plan"],
            "full_operators": full["operators"], "layers": [layers["reduced"], layers["full"]], "seconds": round(seconds, 1), "check_seconds": round(found["seconds"], 1), "peak_gib": round(peak_of_children() / 2**30, 2)}  # fmt: skip


def table(kept):
    rows = ["| model | at reduced dims | verdict | ranks proved, at full dims, of them looked at | operators proved, at full dims | seconds, of them checking | peak GiB |", "|---|---|---|---|---|---|---|"]
    for r in kept["rows"]:
        if "ranks" not in r:
            rows.append("| %s | %s | %s | | | %.0f | |" % (r["model"], r["dims"].replace(",", " "), r["verdict"], r["seconds"]))
            continue
        rows.append("| %s | %s | %s | %d, %d, %d | %d, %d | %.0f, %.1f | %.1f |" % (r["model"], r["dims"].replace(",", " "), r["verdict"], r["ranks"], r["full_ranks"], r["looked_at"], r["operators"], r["full_operators"], r["seconds"], r["check_seconds"], r["peak_gib"]))
    return "\n".join(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(REDUCED))
    parser.add_argument("--opguard", type=Path, default=ROOT / "build" / "release" / "src" / "cli" / "opguard")
    parser.add_argument("--python", type=Path, default=ROOT / ".venv" / "bin" / "python")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--table", type=Path, metavar="DOCUMENT")
    o = parser.parse_args()
    if o.table:
        from marks import put

        put(o.table, "prove_models", table(json.loads(o.json.read_text())))
        return 0
    rows = []
    for model in o.models.split(","):
        rows.append(measure(o, model))
        print(rows[-1], flush=True)
    if o.json:
        o.json.write_text(json.dumps({"rows": rows}, indent=1) + "\n")
    return 0 if all(r["verdict"] == "proved" for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
