"""What finding and wrapping a plan's boundaries in a large package costs, beside tree-sitter alone in the same run.

  speed.py PACKAGE [--family models/llama] [--build DIR] [--rounds 3] [--cores 2] [--json FILE]

PACKAGE: an unpacked package (transformers). The plan is that of PACKAGE/<family>; it is matched in the whole package, once as it is and once with a
function of the plan renamed, so that all other files are searched for it. CPU seconds and memory are the kernel's (wait4), medians of the rounds. Each
command runs on one core and on --cores in turn, so that a busy machine is as busy for both.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def measure(command, cores):
    """(CPU s, wall s, peak MB) of a command on these cores; exit codes 0 and 1 are answers."""
    start = time.monotonic()
    child = subprocess.Popen(["taskset", "-c", cores, *map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode > 1:
        raise RuntimeError(f"{command[0]} ended with {child.returncode}")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - start, usage.ru_maxrss / 1024


def make_plans(opguard, package, family, work):
    """The family's plan, and the same with one of its functions under another name."""
    tree = work / "tree"
    shutil.copytree(package / family, tree / family, ignore=lambda d, names: [n for n in names if n == "__pycache__"])
    plan = work / "plan.json"
    subprocess.run([opguard, "plan", "--static", tree, "-o", plan], check=True, capture_output=True)
    document = json.loads(plan.read_text())
    functions = [b["scope"] for b in document["boundaries"] if "." not in b["scope"] and b["scope"] != "<module>"]
    renamed = plan.read_text().replace(f'"{max(functions, key=functions.count)}"', '"as_it_was_called"')
    moved = work / "moved.json"
    moved.write_text(renamed)
    return plan, moved, len(document["boundaries"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", type=Path)
    parser.add_argument("--family", default="models/llama")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    build = options.build.resolve()
    subprocess.run(["ninja", "-C", build, "tree_sitter_alone"], check=True, stdout=subprocess.DEVNULL)
    opguard, instrument = build / "src" / "cli" / "opguard", build / "src" / "cli" / "opguard-instrument"
    cores = sorted(os.sched_getaffinity(0))[: options.cores]
    if len(cores) < options.cores:
        parser.error(f"there are only {len(cores)} cores")
    many_cores = ",".join(map(str, cores))
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        plan, moved, boundaries = make_plans(opguard, options.package, options.family, Path(scratch))
        print(f"{boundaries} boundaries of {options.family}; median of {options.rounds}")
        commands = {
            "tree-sitter alone": [build / "bench" / "tree_sitter_alone", options.package],
            "match": [opguard, "match", "--plan", plan, options.package],
            "match, one function renamed": [opguard, "match", "--plan", moved, options.package],
            "parse, match, diff": [instrument, options.package, "--plan", plan],
            "parse, match, diff, one function renamed": [instrument, options.package, "--plan", moved],
        }
        one = {name: [] for name in commands}
        many = {name: [] for name in commands}
        for _ in range(options.rounds):
            for name, command in commands.items():
                one[name].append(measure(command, str(cores[0])))
                many[name].append(measure(command, many_cores))
        print(f"{'':42}   one core: CPU s  wall s   MB   {options.cores} cores: CPU s  wall s   MB  wall of one core's")
        for name in commands:
            cpu, wall, peak = (statistics.median(column) for column in zip(*one[name]))
            cpu_many, wall_many, peak_many = (statistics.median(column) for column in zip(*many[name]))
            # Of each round by itself, since rounds differ more than the two runs of one.
            share = statistics.median(b[1] / a[1] for a, b in zip(one[name], many[name]))
            rows.append({"what": name, "one_core": {"cpu_s": cpu, "wall_s": wall, "peak_mb": peak}, "cores": options.cores,
                         "many_cores": {"cpu_s": cpu_many, "wall_s": wall_many, "peak_mb": peak_many}, "wall_share": share})  # fmt: skip
            print(f"  {name:42} {cpu:15.2f} {wall:7.2f} {peak:4.0f} {cpu_many:16.2f} {wall_many:7.2f} {peak_many:4.0f} {share:12.2f}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
