"""The CPU time of compiling opguard from nothing, without ccache: by room, and the dearest units.

  compile_cost.py [--target tool] [--preset release] [--most N] [--json FILE] [-D NAME=VALUE ...]

`make demo` and `make setup` wait for it on a fresh machine. Wall time depends on what else runs there; the sum of user
and system time of each compiler and linker process hardly does.
The build stands in a temporary folder. Each command is started by this file itself (CMake's launcher), which writes
down what the kernel says of it. A unit is what one compiler process reads, so several files under the preset release.
Example: `compile_cost.py --preset dev` tells each file's own cost, some of which is its headers'.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def launch(log, kind, command):
    """Runs a command for the build; a row of its cost goes to the log. A row is shorter than a pipe's atomic write."""
    child = os.fork()
    if child == 0:
        os.execvp(command[0], command)
    _, status, used = os.wait4(child, 0)
    made = command[command.index("-o") + 1] if "-o" in command else ""
    row = {"kind": kind, "made": made, "cpu_s": round(used.ru_utime + used.ru_stime, 3), "peak_mb": used.ru_maxrss // 1024}
    with open(log, "a") as file:
        file.write(json.dumps(row) + "\n")
    return os.waitstatus_to_exitcode(status)


def room_of(made):
    """src/matcher of src/matcher/CMakeFiles/opguard_matcher.dir/Unity/unity_0_cxx.cxx.o"""
    return made.split("/CMakeFiles/")[0]


def measure(target, preset, definitions, jobs):
    with tempfile.TemporaryDirectory(prefix="opguard-compile-") as folder:
        log = Path(folder) / "costs"
        launcher = f"{sys.executable};{Path(__file__).resolve()};--launch;{log}"
        settings = [f"-DCMAKE_{language}_{kind}_LAUNCHER={launcher};{kind.lower()}"
                    for language in ("C", "CXX") for kind in ("COMPILER", "LINKER")]
        subprocess.run(["cmake", "--preset", preset, "-B", folder, f"-DPython3_EXECUTABLE={sys.executable}", "-DCCACHE_PROGRAM=OFF",
                        *settings, *(f"-D{d}" for d in definitions)], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        began = time.monotonic()
        subprocess.run(["cmake", "--build", folder, "--target", target, "-j", str(jobs)], check=True, stdout=subprocess.DEVNULL)
        wall = time.monotonic() - began
        return wall, [json.loads(line) for line in log.read_text().splitlines()]


def main():
    if sys.argv[1:2] == ["--launch"]:
        sys.exit(launch(sys.argv[2], sys.argv[3], sys.argv[4:]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="tool", help="what is built (default: tool, what `make demo` needs)")
    parser.add_argument("--preset", default="release")
    parser.add_argument("--most", type=int, default=15, help="how many of the dearest units are printed")
    parser.add_argument("--json", type=Path)
    parser.add_argument("-D", dest="definitions", action="append", default=[], metavar="NAME=VALUE", help="one more setting of CMake")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    args = parser.parse_args()

    wall, rows = measure(args.target, args.preset, args.definitions, args.jobs)
    rooms = defaultdict(lambda: [0, 0.0])
    for row in rows:
        name = room_of(row["made"]) if row["kind"] == "compiler" else "linking"
        rooms[name][0] += 1
        rooms[name][1] += row["cpu_s"]
    total = sum(row["cpu_s"] for row in rows)
    by_cost = sorted(rooms.items(), key=lambda r: -r[1][1])
    for name, (units, cpu_s) in by_cost:
        print(f"{cpu_s:7.1f} s  {units:4} units  {name}")
    print(f"{total:7.1f} s  of CPU in {len(rows)} commands; {wall:.0f} s of wall time, {args.jobs} at a time")
    dearest = sorted(rows, key=lambda r: -r["cpu_s"])[: args.most]
    for row in dearest:
        print(f"    {row['cpu_s']:6.1f} s {row['peak_mb']:5} MB  {row['made']}")
    if args.json:
        args.json.write_text(json.dumps({
            "target": args.target, "preset": args.preset, "cpu_s": round(total, 1), "wall_s": round(wall), "jobs": args.jobs,
            "rooms": {name: {"units": units, "cpu_s": round(cpu_s, 1)} for name, (units, cpu_s) in by_cost},
            "dearest": dearest}, indent=1) + "\n")


if __name__ == "__main__":
    main()
