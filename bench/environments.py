"""One build, many environments: runs the demo's comparison under each interpreter given, nothing of ours installed there.

  environments.py [--opguard FILE] [--json FILE] PYTHON...

PYTHON: interpreters that have torch. Each must name the demo's wrong line, and its instrumented runs must print the losses of its bare runs.
Exit code 0 if all do.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PIVOT = "minigpt/model/rope.py"


def losses(text):
    return re.findall(r"loss (\S+)", text)


def try_interpreter(opguard, python, work):
    env = dict(os.environ, OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")
    good, bad = ROOT / "examples" / "minitrain", work / "faulty"
    subprocess.run([sys.executable, ROOT / "examples" / "make_faulty.py", bad], check=True, stdout=subprocess.DEVNULL)
    versions = subprocess.run([python, "-c", "import platform, torch; print(platform.python_version(), torch.__version__)"],
                              capture_output=True, text=True, check=True).stdout.split()  # fmt: skip
    program = [python, "train.py", "--steps", "2"]
    verdict = work / "verdict.json"
    diff = subprocess.run([opguard, "diff", good, bad, "--work", work / "kept", "--json", verdict, "--", *program],
                          capture_output=True, text=True, env=env)  # fmt: skip
    row = {"python": versions[0], "torch": versions[1], "exit_code": diff.returncode, "pivot": None, "losses_equal": None}
    if not verdict.exists():
        row["error"] = diff.stderr[-500:]
        return row
    pivot = json.loads(verdict.read_text())["pivot"] or {}
    place = pivot.get("b") or pivot.get("a") or {}
    row["pivot"] = f"{place.get('file')}:{place.get('line')}"
    row["losses_equal"] = all(
        losses(subprocess.run(program, cwd=tree, capture_output=True, text=True, env=env).stdout)
        == losses((work / "kept" / f"run_{side}" / "output.txt").read_text()) != []
        for side, tree in (("a", good), ("b", bad))
    )
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--opguard", type=Path, default=ROOT / "build" / "release" / "src" / "cli" / "opguard")
    parser.add_argument("--json", type=Path)
    parser.add_argument("pythons", nargs="+", metavar="PYTHON")
    options = parser.parse_args()
    rows = []
    for python in options.pythons:
        with tempfile.TemporaryDirectory() as work:
            rows.append(try_interpreter(options.opguard.resolve(), os.path.abspath(python), Path(work)))
        row = rows[-1]
        print(f"python {row['python']:9} torch {row['torch']:14} pivot {row['pivot']}  losses equal: {row['losses_equal']}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    right = [r for r in rows if (r["pivot"] or "").startswith(PIVOT) and r["losses_equal"]]
    print(f"{len(right)} of {len(rows)} right")
    return 0 if len(right) == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
