#!/usr/bin/env python3
"""Is the cost of `plan --static` and `--all-sites` linear in equal sites, on lines of their own and on one line?

  bench/equal_sites.py [--sites N ...] [--json FILE]

CPU seconds for files of N times `y = torch.ones(2)*2`; the slope is that of log(seconds) over log(N): 1 is linear, 2 quadratic.
Ends with 1 if a slope is above 1.4."""

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def cpu_seconds(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*map(str, command)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sites", type=int, nargs="+", default=[5_000, 20_000, 80_000])
    options.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    options.add_argument("--json", type=Path)
    options = options.parse_args()
    tools, rows = options.build / "src" / "cli", []
    with tempfile.TemporaryDirectory(prefix="equal-sites-") as work:
        for lines, separator in (("own", "\n"), ("one", ";")):
            taken = {"plan --static": [], "--all-sites": []}
            for count in options.sites:
                tree = Path(work) / ("%s-%d" % (lines, count))
                tree.mkdir()
                (tree / "m.py").write_text("import torch\n" + ("y = torch.ones(2)*2" + separator) * count + "\n")
                taken["plan --static"].append(cpu_seconds([tools / "opguard", "plan", "--all-calls", "--static", tree, "-o", Path(work) / "plan.json"]))
                taken["--all-sites"].append(cpu_seconds([tools / "opguard-instrument", tree, "--all-sites"]))
            for name, seconds in taken.items():
                slope = math.log(seconds[-1] / seconds[0]) / math.log(options.sites[-1] / options.sites[0])
                rows.append({"command": name, "lines": lines, "sites": options.sites, "cpu_s": [round(s, 2) for s in seconds], "slope": round(slope, 2)})
                print(json.dumps(rows[-1]), flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if max(r["slope"] for r in rows) > 1.4 else 0


if __name__ == "__main__":
    sys.exit(main())
