#!/usr/bin/env python3
"""What `opguard diff` costs beside the program itself: its wall time over that of the two bare runs it compares.

  diff_cost.py [--opguard FILE] [--python FILE] [--size small] [--steps 60,240] [--rounds N] [--json FILE] [--check]

The program is bench/programs/gpt_step.py, training for so many steps on one thread; both sides are the same text, so that nothing is proved and all
of the time is tracing, recording and comparing. Bare runs and `diff` alternate, `--rounds` times; the ratio is of the medians. A program's start
(importing torch) is part of every run, and diff starts it four times.

--check: exit code 1 where the ratio exceeds the goal of 3 for the longest program.
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
PROGRAM = ROOT / "bench" / "programs" / "gpt_step.py"
GOAL = 3.0
TRAIN = """import sys, torch
import gpt_step
torch.set_num_threads(1)
state = gpt_step.build(sys.argv[1])
for _ in range(int(sys.argv[2])):
    gpt_step.step(*state)
"""


def timed(command, env):
    """(seconds, what it said)"""
    begin = time.monotonic()
    done = subprocess.run([str(word) for word in command], env=env, capture_output=True, text=True)
    took = time.monotonic() - begin
    if done.returncode != 0:
        sys.exit(f"{command}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return took, done.stderr


def measure(options, steps, work):
    trees = [work / side for side in "ab"]
    for tree in trees:
        shutil.rmtree(tree, ignore_errors=True)
        tree.mkdir()
        shutil.copy(PROGRAM, tree)
        (tree / "train.py").write_text(TRAIN)
    env = dict(os.environ, OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
    program = [options.python, "train.py", options.size, str(steps)]
    bare, diff, ended = [], [], ""
    for _ in range(options.rounds):
        bare.append(sum(timed([options.python, tree / "train.py", *program[2:]], env)[0] for tree in trees))
        took, said = timed([options.opguard, "diff", *trees, "--", *program], env)
        diff.append(took)
        ended = next((line for line in said.splitlines() if "tracing ended" in line), "")
    row = {"size": options.size, "steps": steps, "rounds": options.rounds, "two_bare_s": round(statistics.median(bare), 2),
           "diff_s": round(statistics.median(diff), 2), "ended": ended}  # fmt: skip
    row["x"] = round(row["diff_s"] / row["two_bare_s"], 2)
    row["each"] = [round(d / b, 2) for b, d in zip(bare, diff)]
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--opguard", type=Path, default=ROOT / "build" / "release" / "src" / "cli" / "opguard")
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has torch")
    parser.add_argument("--size", default="small", help="of bench/programs/gpt_step.py")
    parser.add_argument("--steps", default="60,240", help="lengths of the program, in optimizer steps")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as work:
        for steps in map(int, options.steps.split(",")):
            rows.append(measure(options, steps, Path(work)))
            row = rows[-1]
            print(f"{row['size']} {steps} steps: two bare runs {row['two_bare_s']} s, diff {row['diff_s']} s, x {row['x']} {row['each']}  {row['ended']}",
                  flush=True)  # fmt: skip
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if options.check and rows[-1]["x"] > GOAL else 0


if __name__ == "__main__":
    sys.exit(main())
