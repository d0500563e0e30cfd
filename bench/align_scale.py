"""Time and memory of `opguard align` by the length of the logs.

  align_scale.py [--opguard FILE] [--maker FILE] [--records N]... [--changes same,edited,insert,value] [--ranks R] [--work DIR] [--json FILE]

Two logs of a made-up training run a row (bench/training_log.cc): equal; with ten operators more on one side; with other values from the middle on; or with that and one
operator in a hundred inserted and one in a hundred missing all along (edited: one true divergence after a refactor). The
whole command is measured: reading, checksums, alignment, judgement and report, on one core (--cores). Memory is the peak resident set, the
mapped files' pages included. The slope is that of log(seconds) over log(records), from 10^5 records on: 1 is linear. 10^8 records take 2 GB of disk a side and are made
only where named with --records. Exit code 0 if 10^7 records take at most 10 s of CPU and 1 GiB, equal and edited, or were not asked for.
"""
import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def run(command, cores):
    """(exit code, seconds, CPU seconds, peak resident MB)."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, preexec_fn=lambda: os.sched_setaffinity(0, cores))
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def slope(points):
    """Least squares of log y over log x."""
    if len(points) < 2:
        return None
    xs, ys = [math.log(x) for x, _ in points], [math.log(y) for _, y in points]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys)) / sum((a - x) ** 2 for a in xs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--opguard", type=Path, default=ROOT / "build/dev/src/cli/opguard")
    parser.add_argument("--maker", type=Path, default=ROOT / "build/dev/bench/training_log")
    parser.add_argument("--records", type=int, action="append", help="of each side and rank; 10^4 to 10^7 where none is named")
    parser.add_argument("--changes", default="same,edited,insert,value")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    sizes = options.records or [10 ** k for k in range(4, 8)]
    cores = sorted(os.sched_getaffinity(0))[:options.cores]
    rows, kept = [], True
    with tempfile.TemporaryDirectory(dir=options.work) as scratch:
        for change in options.changes.split(","):
            for records in sizes:
                folders = Path(scratch, "a"), Path(scratch, "b")
                for folder, what in zip(folders, ("same", change)):
                    subprocess.run([options.maker, folder, str(records), what, str(options.ranks)], check=True)
                size = sum(f.stat().st_size for f in folders[0].iterdir())
                code, seconds, cpu, peak = run([options.opguard, "align", *folders], cores)
                total = records * options.ranks
                row = {"change": change, "records": total, "ranks": options.ranks, "exit": code, "seconds": seconds, "cpu_seconds": cpu, "peak_mb": peak,
                       "records_per_second": 2 * total / cpu, "log_bytes_per_record": size / total}
                rows.append(row)
                print(f"{change:8}{total:>11} records a side, {options.ranks} ranks  exit {code}  {seconds:7.2f} s ({cpu:7.2f} of CPU)  {peak:7.0f} MB  "
                      f"{row['records_per_second'] / 1e6:6.2f} M records/s  log {row['log_bytes_per_record']:.1f} B a record", flush=True)
                if change in ("same", "edited") and total == 10 ** 7:
                    kept = kept and cpu <= 10 and peak <= 1024
                for folder in folders:
                    shutil.rmtree(folder)
        slopes = {change: slope([(r["records"], r["cpu_seconds"]) for r in rows if r["change"] == change and r["records"] >= 10 ** 5])
                  for change in options.changes.split(",")}
    for change, value in slopes.items():
        if value is not None:
            print(f"{change:8}slope of CPU time {value:.2f}")
    if options.json:
        options.json.write_text(json.dumps({"rows": rows, "slopes": slopes, "cores": len(cores)}, indent=1) + "\n")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
