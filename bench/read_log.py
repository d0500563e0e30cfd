"""Time and memory of opguard.read_log on logs of growing size, made by recording small additions.

  read_log.py [--package DIR] [--json FILE] [--records N...]

DIR: the folder that holds the package opguard (build/release/python by default). A log of each N records is read by a process of its own: seconds for read_log alone (to an object whose columns are not made yet), for all columns as numpy arrays, as pandas, as Arrow and as a Parquet
file, and the most memory resident after read_log, above that of the process before it (RSS); `-` where a library is not installed. Exit code 1 if
a record of the last log takes more than three times as long to read as one of the first.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

RECORD = """
import sys
sys.path.insert(0, sys.argv[1])
import torch
from opguard import og
from opguard.load import startup
from opguard.record import recording
recording.start(startup.Options(log=sys.argv[2]))
torch.set_num_threads(1)
x, y = torch.randn(4, 8), torch.randn(8)
ids = ["block%d.add:%04d" % (i % 12, i) for i in range(400)]
for i in range(int(sys.argv[3]) // 3):
    x = og(ids[i % 400], torch.add)(x, y, alpha=i % 50)
"""

READ = """
import importlib, json, os, sys, time
sys.path.insert(0, sys.argv[1])
from importlib.util import find_spec
libraries = {"numpy": "numpy", "pandas": "pandas", "arrow": "pyarrow", "parquet": "pyarrow.parquet"}
for name in [n for n, module in libraries.items() if not find_spec(module.split(".")[0])]:
    del libraries[name]
for module in libraries.values():
    importlib.import_module(module)
def memory(field):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(field))
import opguard, opguard.logs
what, before = sys.argv[3], memory("VmRSS")
begin = time.perf_counter()
log = opguard.read_log(sys.argv[2])
row = {"records": len(log.records), "events": len(log.events), "read_s": time.perf_counter() - begin, "peak_bytes": memory("VmHWM") - before}
begin = time.perf_counter()
if what in libraries:
    made = log.records.to_parquet(sys.argv[2] + ".parquet") if what == "parquet" else getattr(log.records, "to_" + what)()
    row = {what + "_s": time.perf_counter() - begin, what + "_peak_bytes": memory("VmHWM") - before}
print(json.dumps(row))
"""


def run(program, *arguments):
    command = [sys.executable, "-c", program, *map(str, arguments)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPGUARD_")}
    done = subprocess.run(command, env={**environment, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout


def measure(package, records):
    with tempfile.TemporaryDirectory() as folder:
        run(RECORD, package, folder, records)
        (path,) = Path(folder).glob("*.log")
        row = {"file_bytes": path.stat().st_size}
        for what in ("", "numpy", "pandas", "arrow", "parquet"):
            found = json.loads(run(READ, package, path, what))
            if not what or what + "_s" in found:
                row.update(found)
    # State events are records too: the count is exact only nearly.
    row["records_made"], row["records"] = row["records"], records
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", default=ROOT / "build" / "release" / "python")
    parser.add_argument("--json")
    parser.add_argument("--records", type=int, nargs="+", default=[250_000, 500_000, 1_000_000])
    options = parser.parse_args()
    print(f"{'records':>9} {'log MB':>7} {'read s':>7} {'peak MB':>8} {'numpy s':>8} {'pandas s':>9} {'arrow s':>8} {'parquet s':>10} {'(peak MB)':>10}")
    rows = []
    for records in options.records:
        rows.append(measure(options.package, records))
        row = rows[-1]
        cell = lambda name, width: f"{row[name]:{width}.2f}" if name in row else "-".rjust(width)
        peak = f"{row['parquet_peak_bytes'] / 1e6:10.0f}" if "parquet_peak_bytes" in row else "-".rjust(10)
        print(f"{row['records']:9} {row['file_bytes'] / 1e6:7.1f} {cell('read_s', 7)} {row['peak_bytes'] / 1e6:8.0f} {cell('numpy_s', 8)} "
              f"{cell('pandas_s', 9)} {cell('arrow_s', 8)} {cell('parquet_s', 10)} {peak}", flush=True)  # fmt: skip
    if options.json:
        Path(options.json).write_text(json.dumps({"rows": rows}, indent=1))
    per_record = [row["read_s"] / row["records_made"] for row in rows]
    return 0 if per_record[-1] <= 3 * per_record[0] else 1


if __name__ == "__main__":
    sys.exit(main())
