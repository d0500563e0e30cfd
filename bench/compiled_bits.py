#!/usr/bin/env python3
"""Where a compiled program's last bits change under probes: the kernels that Inductor makes of it, bare and probed.

bench/compiled_bits.py [--program NAME] [--steps N] [--ways WAY ...] [--build DIR] [--json FILE]
bench/compiled_bits.py --json FILE --table docs/design/compile.md      # puts what FILE holds into the document; runs nothing

The program (bench/torch_versions/) is compiled by Inductor on the processor, bare and with every expression wrapped, each in three ways:

  as it is        vectors of the processor's width; what does not fill one may be computed number by number
  no vectors      ATEN_CPU_CAPABILITY=default: every number alone, in every kernel
  under control   `opguard run --deterministic`, which asks Inductor for the same (docs/guide/determinism.md)

Said of each: kernels, calls of libraries, exponentials in vectors and number by number, and whether losses and model have the bare run's bits.
Bits that come back without vectors were lost to another exp: a vector's is not libm's. What --json FILE holds of another way stays.
Ends with 1 if bits are not kept without vectors or under control."""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import marks

ROOT = Path(__file__).resolve().parents[1]
CONTROL = "under control"
WAYS = {"as it is": {}, "no vectors": {"ATEN_CPU_CAPABILITY": "default"}, CONTROL: {}}
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
        if folder == "probed" or way == CONTROL:
            control = ["--deterministic"] * (way == CONTROL)
            command = [self.tool / "opguard", "run", *control, "--mode", "default", "--log", self.work / ("log of %s, %s" % (folder, way)), "--", *command]
        done = subprocess.run([*map(str, command)], cwd=self.work / folder, env=environment, capture_output=True, text=True)
        told = [line for line in done.stdout.splitlines() if line.startswith(("step ", "model "))]
        if not told or told[-1][:5] != "model":  # bare under control, opguard says that no probe was reached
            raise SystemExit("%s, %s: %s" % (folder, way, done.stderr[-800:]))
        return {"told": told, **{what: len(re.findall(pattern, done.stderr)) for what, pattern in COUNTED.items()}}

    def way(self, way):
        bare, probed = self.run("bare", way), self.run("probed", way)
        row = {"way": way, "bits": bare.pop("told") == probed.pop("told"), "bare": bare, "probed": probed}
        print("%-10s bits %s; %s" % (way, "kept" if row["bits"] else "not kept", ", ".join("%s %d -> %d" % (w, bare[w], probed[w]) for w in COUNTED)), flush=True)
        return row


def table(found):
    """A row a way: are the bits the bare run's, and what the kernels hold, bare and probed."""
    row = lambda of: [of["way"], "kept" if of["bits"] else "not kept", *("%d, %d" % (of["bare"][what], of["probed"][what]) for what in COUNTED)]
    return marks.table(["`%s`" % found["program"], "bits", *(what + ": bare, probed" for what in COUNTED)], [row(of) for of in found["ways"]])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="transformer", choices=["transformer", "convnet", "forms"])
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    before = json.loads(options.json.read_text()) if options.json and options.json.exists() else {}
    if options.table:
        return marks.put(options.table, "compiled-bits", table(before))
    with tempfile.TemporaryDirectory(prefix="compiled-bits-") as work:
        bits = Bits(options, Path(work))
        rows = {way: bits.way(way) for way in options.ways}
    if options.json:
        same = before if (before.get("program"), before.get("steps")) == (options.program, options.steps) else {"ways": []}
        rows = {**{row["way"]: row for row in same["ways"]}, **rows}
        options.json.write_text(json.dumps({"program": options.program, "steps": options.steps, "ways": [rows[w] for w in WAYS if w in rows]}, indent=1) + "\n")
    return 0 if all(row["bits"] for way, row in rows.items() if way != "as it is") else 1


if __name__ == "__main__":
    sys.exit(main())
