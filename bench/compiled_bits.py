#!/usr/bin/env python3
"""Where a compiled program's last bits change under probes: the kernels that Inductor makes of it, bare and probed.

bench/compiled_bits.py [--program NAME] [--steps N] [--build DIR] [--json FILE]

The program (bench/torch_versions/) is compiled by Inductor on the processor, bare and with every expression wrapped, each in two ways:

  as it is     vectors of the processor's width; what does not fill one may be computed number by number
  no vectors   ATEN_CPU_CAPABILITY=default: every number alone, in every kernel

Said of each: kernels, calls of libraries, exponentials in vectors and number by number, and whether losses and model have the bare run's bits.
Bits that come back without vectors were lost to another exp: a vector's is not libm's. Ends with 1 if they do not come back."""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WAYS = {"as it is": {}, "no vectors": {"ATEN_CPU_CAPABILITY": "default"}}
COUNTED = {"kernels": r"= async_compile\.cpp_pybinding", "calls of libraries": r"extern_kernels\.\w+\(", "exp in vectors": r"\.exp\(\)", "exp alone": r"std::exp\("}


class Bits:
    def __init__(self, options, work):
        self.options, self.work = options, work
        self.tool = options.build.resolve() / "src" / "cli"
        for folder in ("bare", "probed"):
            shutil.copytree(ROOT / "bench" / "torch_versions", work / folder, ignore=shutil.ignore_patterns("__pycache__"))
        made = subprocess.run([self.tool / "opguard-instrument", work / "probed", "--all-sites", "--apply"], capture_output=True, text=True)
        if made.returncode != 0:
            raise SystemExit(made.stderr)

    def run(self, folder, way):
        """-> {"told": losses and digest, and what of COUNTED its kernels hold}."""
        environment = {**os.environ, **WAYS[way], "TORCH_LOGS": "output_code", "OMP_NUM_THREADS": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
        environment["TORCHINDUCTOR_CACHE_DIR"] = str(self.work / "cache" / folder / way.replace(" ", "_"))
        command = [sys.executable, self.options.program + ".py", "--compile", "inductor", "--steps", str(self.options.steps)]
        if folder == "probed":
            command = [self.tool / "opguard", "run", "--mode", "default", "--log", self.work / ("log of " + way), "--", *command]
        done = subprocess.run([*map(str, command)], cwd=self.work / folder, env=environment, capture_output=True, text=True)
        told = [line for line in done.stdout.splitlines() if line.startswith(("step ", "model "))]
        if done.returncode != 0 or not told:
            raise SystemExit("%s, %s: %s" % (folder, way, done.stderr[-800:]))
        return {"told": told, **{what: len(re.findall(pattern, done.stderr)) for what, pattern in COUNTED.items()}}

    def way(self, way):
        bare, probed = self.run("bare", way), self.run("probed", way)
        row = {"way": way, "bits": bare.pop("told") == probed.pop("told"), "bare": bare, "probed": probed}
        print("%-10s bits %s; %s" % (way, "kept" if row["bits"] else "not kept", ", ".join("%s %d -> %d" % (w, bare[w], probed[w]) for w in COUNTED)), flush=True)
        return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="transformer", choices=["transformer", "convnet", "forms"])
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="compiled-bits-") as work:
        bits = Bits(options, Path(work))
        rows = [bits.way(way) for way in WAYS]
    if options.json:
        options.json.write_text(json.dumps({"program": options.program, "steps": options.steps, "ways": rows}, indent=1) + "\n")
    return 0 if rows[-1]["bits"] else 1


if __name__ == "__main__":
    sys.exit(main())
