#!/usr/bin/env python3
"""What observing a training costs: a step of bench/programs/gpt_step.py with observations beside the bare step.

  observing_cost.py [--build DIR] [--python FILE] [--sizes small,large] [--steps N] [--json FILE] [--check]

The program has no probes, as one under `opguard run --observe` that nobody instrumented. One process (one thread) a case, in which bare and other
steps of one model alternate; in the bare ones none of opguard's hooks and wrappers is installed. x: medians over the steps of other / bare, as in
overhead.py. Cases: `noise` is the bare step twice, `recorded` a log without observations, `observed` the same with them, `sdc` observations where
the log has of a step its parameters alone (`opguard run --check --mode sdc`). Digests of parameters before
and after the step and of gradients, their norms, and a row for each call of a module are in `observed`. growth_kb: resident memory at the end less
that after a third of the steps. --check: exit code 1 where a goal is missed.
"""
import argparse
import contextlib
import gc
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import overhead

ROOT = Path(__file__).resolve().parents[1]
CASES = ("noise", "recorded", "observed", "sdc")
GOALS = {"small": 1.10, "large": 1.05}


class Bare:
    """While it lasts, nothing of opguard is installed."""

    def __init__(self, torch):
        self.torch = torch
        optim = sys.modules["torch.optim.optimizer"]
        self.tables = [optim._global_optimizer_pre_hooks, optim._global_optimizer_post_hooks]
        hooks = sys.modules.get("opguard.training.hooks")
        self.replaced = list(hooks.replaced) if hooks is not None else []

    def __enter__(self):
        self.hooks = [dict(table) for table in self.tables]
        for table in self.tables:
            table.clear()
        for owner, name, original, _ in reversed(self.replaced):
            setattr(owner, name, original)
        self.functions = {name: getattr(self.torch.autograd, name) for name in ("backward", "grad")}
        for name, function in self.functions.items():
            setattr(self.torch.autograd, name, getattr(function, "__wrapped__", function))

    def __exit__(self, *error):
        for name, function in self.functions.items():
            setattr(self.torch.autograd, name, function)
        for owner, name, _, ours in self.replaced:
            setattr(owner, name, ours)
        for table, hooks in zip(self.tables, self.hooks):
            table.update(hooks)


def resident_kb():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def of_case(options):
    """In a process of its own."""
    import torch

    torch.set_num_threads(1)
    log = options.work / f"log-{options.one}-{options.sizes}"
    if options.one != "noise":
        os.environ["OPGUARD_OBSERVATIONS"] = "" if options.one == "recorded" else "1"
        overhead.start("sdc" if options.one == "sdc" else "default", options.build / "python", log)
    program = overhead.load(overhead.PROGRAM, "gpt_step")
    state = program.build(options.sizes)
    outside = Bare(torch)

    def bare_step():
        with outside:
            return overhead.once(lambda: program.step(*state))

    def other():
        return bare_step() if options.one == "noise" else overhead.once(lambda: program.step(*state))

    for _ in range(3):
        bare_step(), other()
    pairs, early = [], 0
    for turn in range(options.steps):
        gc.collect()
        first, second = (bare_step, other) if turn % 2 == 0 else (other, bare_step)
        x, y = first(), second()
        pairs.append((x, y) if turn % 2 == 0 else (y, x))
        if turn == options.steps // 3:
            early = resident_kb()
    row = {"case": options.one, "size": options.sizes, "steps": options.steps, "wall": overhead.medians(pairs, 0), "cpu": overhead.medians(pairs, 1),
           "growth_kb": resident_kb() - early}  # fmt: skip
    if options.one != "noise":
        from opguard.record import recording

        recording.close()
        row["log_bytes_a_step"] = round(sum(f.stat().st_size for f in log.glob("*.log")) / (options.steps + 3))
    return row


def rows_of(options):
    rows = []
    with tempfile.TemporaryDirectory() as work:
        for size in options.sizes.split(","):
            for case in CASES:
                done = subprocess.run(
                    [options.python, __file__, "--build", options.build, "--steps", str(options.steps), "--sizes", size, "--one", case, "--work", work],
                    capture_output=True, text=True, env=dict(os.environ, OMP_NUM_THREADS="1"),
                )  # fmt: skip
                lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
                if not lines:
                    sys.exit(f"{case} {size}: {done.stderr[-2000:]}")
                rows.append(json.loads(lines[0][7:]))
                print(line_of(rows[-1]), flush=True)
    return rows


def line_of(row):
    cpu, wall = row["cpu"], row["wall"]
    return (f"{row['case']:9} {row['size']:6} cpu x{cpu['x']:.3f} ({cpu['quartiles'][0]:.3f}..{cpu['quartiles'][1]:.3f})  wall x{wall['x']:.3f}  bare "
            f"{cpu['bare_ms']:.1f} ms  {row.get('log_bytes_a_step', 0)} B a step  growth {row['growth_kb']} kB")  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--sizes", default="small,large")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        with contextlib.redirect_stdout(sys.stderr):
            row = of_case(options)
        print("RESULT " + json.dumps(row))
        return 0
    rows = rows_of(options)
    if options.json:
        options.json.write_text(json.dumps({"rows": rows}, indent=1) + "\n")
    missed = [row for row in rows if row["case"] == "observed" and row["cpu"]["x"] > GOALS.get(row["size"], 9)]
    for row in missed:
        print(f"missed: {row['size']} x{row['cpu']['x']} of {GOALS[row['size']]}")
    return 1 if options.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
