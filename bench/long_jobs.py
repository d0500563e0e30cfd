#!/usr/bin/env python3
"""What a long job pays between the steps that are recorded: its training step beside the bare one.

  long_jobs.py [--build DIR] [--python FILE] [--sizes small,large] [--cases noise,before,...] [--steps N] [--json FILE] [--check]
  long_jobs.py --json FILE --table PAGE                    # puts what FILE holds into the page between its markers; runs nothing

The program, its probes and the bare step are those of bench/overhead.py: bench/programs/gpt_step.py, bare and probed steps of one model by turns in
one process of one thread. Cases:

  noise      the bare step twice
  off        mode off: the probes stand in the sources, nothing records
  before     a window that begins at a step that is never reached (`--from-step 1000000`)
  between    a step was recorded, the next one is far away (`--every 1000000`)
  callback   as `before`, but the sources have no probes: a context manager or a trainer's callback
  ring       the last 3 steps are held, watched for nan and spikes: recording itself, in mode default

x: the median over the steps of probed / bare, in the process's own processor time (cpu) and in wall time, and the ratio of the minima, which another
process's load reaches least.

idle_probe_us: processor time that og(id, torch.add)(a, b) takes beyond torch.add(a, b) while nothing is recorded, of 200 rounds the fastest.

--json FILE: rows of the same size and case are replaced, the others stay.
--check: exit code 1 where `before`, `between` or `callback` exceed 1.01 by their minima.
"""
import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import marks
import overhead

CASES = {"noise": None, "off": {}, "before": {"steps_recorded": "1000000.."}, "between": {"steps_recorded": "0../1000000"},
         "callback": {"steps_recorded": "1000000.."}, "ring": {"ring": 3, "ring_on": "nan,spike"}}  # fmt: skip
IDLE = ("before", "between", "callback")
GOAL = 1.01


def start(case, package, log):
    from opguard.load import startup
    from opguard.record import recording

    os.environ.update(OPGUARD_LOG=str(log), OPGUARD_MODE="off" if case == "off" else "default")
    startup.options = startup.read_environment(os.environ)
    for name, value in CASES[case].items():
        setattr(startup.options, name, value)
    recording.start(startup.options)


def of_case(options):
    """In a process of its own."""
    import torch

    torch.set_num_threads(1)
    sys.path.insert(0, str(options.build / "python"))
    case = options.one
    if case != "noise":
        start(case, options.build / "python", options.work / f"log-{case}-{options.sizes}")
    source = "bare" if case == "callback" else "probed"
    probed, bare = (overhead.load(options.work / folder / overhead.PROGRAM.name, f"gpt_{at}") for at, folder in enumerate((source, "bare")))
    state = probed.build(options.sizes)
    outside = overhead.Bare(torch, probed, bare)

    def bare_step():
        with outside:
            return overhead.once(lambda: bare.step(*state))

    def other():
        return bare_step() if case == "noise" else overhead.once(lambda: probed.step(*state))

    for _ in range(3):
        bare_step(), other()
    pairs = []
    for turn in range(options.steps):
        gc.collect()
        first, second = (bare_step, other) if turn % 2 == 0 else (other, bare_step)
        x, y = first(), second()
        pairs.append((x, y) if turn % 2 == 0 else (y, x))
    row = {"case": case, "size": options.sizes, "steps": options.steps, "wall": overhead.medians(pairs, 0), "cpu": overhead.medians(pairs, 1)}
    return {**row, "idle_probe_us": idle_probe(torch)} if case in ("off", "before", "between") else row


def idle_probe(torch):
    from opguard import og

    add, count, a, b = torch.add, 500, torch.rand(4), torch.rand(4)

    def plain():
        for _ in range(count):
            add(a, b)

    def probed():
        for _ in range(count):
            og("add:aaaa", add)(a, b)

    def timed(loop):
        begin = time.thread_time()
        loop()
        return (time.thread_time() - begin) / count * 1e6

    with torch.no_grad():
        return round(min(timed(probed) for _ in range(200)) - min(timed(plain) for _ in range(200)), 3)


def rows_of(options):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        overhead.instrumented_copy(options.build, options.python, work)
        for size in options.sizes.split(","):
            for case in options.cases.split(","):
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
    return f"{row['size']:6} {row['case']:9} cpu {row['cpu']['x']:.3f} (minima {row['cpu']['min_x']:.3f}), wall {row['wall']['x']:.3f} (minima {row['wall']['min_x']:.3f}), bare step {row['wall']['bare_ms']:.1f} ms"


def table(rows):
    sizes = list(dict.fromkeys(row["size"] for row in rows))
    by = {(row["size"], row["case"]): row for row in rows}
    lines = ["| case | " + " | ".join(f"{size}, {by[size, 'noise']['wall']['bare_ms']:.1f} ms" for size in sizes) + " |", "|---|" + "---|" * len(sizes)]
    for case in dict.fromkeys(row["case"] for row in rows):
        cells = [f"{by[size, case]['cpu']['min_x']:.3f} ({by[size, case]['cpu']['x']:.3f})" for size in sizes]
        lines.append(f"| {case} | " + " | ".join(cells) + " |")
    probes = {row["case"]: row["idle_probe_us"] for row in rows if "idle_probe_us" in row}
    said = ", ".join(f"{case} {us:.2f}" for case, us in probes.items())
    return "\n".join(lines) + f"\n\nProcessor time of the step / of the bare one: of the minima (median). A probe that records nothing takes, in us: {said}.\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=overhead.ROOT / "build" / "release")
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has torch")
    parser.add_argument("--sizes", default="small,large")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--table", type=Path, metavar="PAGE")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.build = options.build.resolve()
    if options.one:
        print("RESULT " + json.dumps(of_case(options)))
        return 0
    if options.table:
        marks.put(options.table, "long-jobs", table(json.loads(options.json.read_text())["rows"]))
        return 0
    rows = rows_of(options)
    if options.json:
        fresh = {(row["size"], row["case"]) for row in rows}
        kept = [row for row in json.loads(options.json.read_text())["rows"] if (row["size"], row["case"]) not in fresh] if options.json.exists() else []
        options.json.write_text(json.dumps({"rows": kept + rows}, indent=1) + "\n")
    return int(options.check and any(row["cpu"]["min_x"] > GOAL for row in rows if row["case"] in IDLE))


if __name__ == "__main__":
    sys.exit(main())
