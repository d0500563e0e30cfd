"""Seconds of `make demo` in a fresh clone, without ccache: what a newcomer waits for.

  first_demo.py [--rounds N] [--json FILE]

The clone is of the last commit. Debian's packages are there already (the machine's, as for `make setup`), and are not counted: what
they take is the network's. The parts are told by the lines that set-up and the demo print: making .venv and configuring, building (pip
installs PyTorch beside it), the demo itself. Then `make demo` once more, which has nothing to do. Exit code 1 where a round takes more than 180 s, or ends with another verdict.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GOAL_SECONDS = 180
# What the line begins with -> the part that begins there.
PARTS = {"setup: making .venv": "environment", "setup: building": "building", "setup: ready": "demo"}


def measure(folder):
    """{part: seconds} of one `make demo`, and whether it printed the verdict."""
    clone = Path(folder) / "clone"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("VIRTUAL_ENV", "MAKE"))} | {"CCACHE_DISABLE": "1"}
    began = at = time.monotonic()
    part, parts, found = "environment", {}, False
    demo = subprocess.Popen(["make", "demo"], cwd=clone, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for line in demo.stdout:
        found |= line.startswith("diverged, proven")
        for start, name in PARTS.items():
            if line.startswith(start) and name != part:
                now = time.monotonic()
                parts[part], part, at = now - at, name, now
    status = demo.wait()
    parts[part] = time.monotonic() - at
    seconds = time.monotonic() - began
    again = time.monotonic()
    subprocess.run(["make", "demo"], cwd=clone, env=environment, stdout=subprocess.DEVNULL, check=True)
    return {"seconds": round(seconds, 1), "parts": {k: round(v, 1) for k, v in parts.items()},
            "again_seconds": round(time.monotonic() - again, 1), "verdict": found and status == 0}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rounds = []
    for _ in range(args.rounds):
        with tempfile.TemporaryDirectory(prefix="opguard-demo-") as folder:
            rounds.append(measure(folder))
        one = rounds[-1]
        print(f"{one['seconds']:.0f} s:", ", ".join(f"{name} {s:.0f} s" for name, s in one["parts"].items()), f"; again {one['again_seconds']:.1f} s",
              "" if one["verdict"] else "; no verdict", flush=True)
    kept = {"cores": os.cpu_count(), "goal_seconds": GOAL_SECONDS, "rounds": rounds,
            "commit": subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()}
    if args.json:
        args.json.write_text(json.dumps(kept, indent=1) + "\n")
    return 0 if all(r["verdict"] and r["seconds"] <= GOAL_SECONDS for r in rounds) else 1


if __name__ == "__main__":
    sys.exit(main())
