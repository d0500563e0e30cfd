"""What it costs to compare two runs of any size: slopes measured here, and the model they give.

    bench/fleet_cost.py [--sizes 100000,200000,400000] [--steps 1000,10000,100000] [--merged 500,2000,8000] [--json FILE] [--table DOCUMENT]

    search   indexes of so many steps: reads and bytes until the first step that differs is known
    read     one rank that differs from its first step on, of so many records: seconds and memory of `align --part --read all`
    window   the same of a rank as long as the longest of these, by `--read differing`: the step before, and 16 behind
    merge    the part of one rank, said of so many ranks: seconds and memory of `align --merge`, bytes of a part

Each is fitted by a straight line in records, in ranks, or in the logarithm of the steps. A job of R ranks costs then, if
D of them differ and of each of those n records are read

    core seconds   R * (start + search(log2 steps)) + D * read * n + merge * R
    network bytes  R * (4 KiB * reads(log2 steps) + bytes of a part) + D * 2 * bytes of a record * n

Logs are made up (bench/fleet_logs.cc). Seconds are this machine's, and told beside the speed of a loop, so that another
one's can be told from them. With --table nothing runs.
"""
import argparse
import json
import math
import shutil
import sys
import tempfile
import time
from pathlib import Path

from fleet import Bench, measured, shifted
from marks import put, table, wrapped

ROOT = Path(__file__).resolve().parents[1]
PER_STEP = 990
WINDOW = 18  # steps that --read differing reads of a rank: the one before, the one that differs, 16 behind
JOBS = ((8, 10**7), (1024, 10**7), (10_000, 10**8))  # ranks, records of each
HOW = (("equal", 0, 0), ("one rank differs", None, WINDOW), ("all ranks differ", 1, WINDOW), ("all differ, all is read", 1, None))


def line(points):
    """(slope, value at 0) of the line with the least squares through [(x, y)]."""
    n, sx, sy = len(points), sum(x for x, _ in points), sum(y for _, y in points)
    sxx, sxy = sum(x * x for x, _ in points), sum(x * y for x, y in points)
    slope = (n * sxy - sx * sy) / (n * sxx - sx * sx)
    return slope, (sy - slope * sx) / n


def loop_seconds():
    """A fixed piece of Python: what one core does here."""
    start = time.perf_counter()
    x = 0
    for i in range(10_000_000):
        x ^= i
    return time.perf_counter() - start


def search(bench, sizes):
    rows = []
    for steps in sizes:
        a, c = bench.logs("a", 1, steps, 3), bench.logs("c", 1, steps, 3, 0, steps * 731 // 1000)
        found = bench.found(a, c)
        bench.drop(a, c)
        rows.append({"steps": steps, "reads": found["reads"], "bytes": found["bytes"], "ms": found["ms"]})
    return rows


def read(bench, sizes):
    """Rows of --read all; that of --read differing; the part of a rank."""
    rows, part = [], bench.work / "part.json"
    for records in sizes:
        steps = max(2, records // PER_STEP)
        a, b = bench.logs("a", 1, steps, PER_STEP), bench.logs("b", 1, steps, PER_STEP, 0, 0)
        size = sum(p.stat().st_size for p in a.glob("*.log"))
        for way in ("all", "differing")[: 2 if records == sizes[-1] else 1]:
            code, seconds, memory, _ = measured(bench.part(a, b, 1, 1, part, way))
            if code != 0:
                sys.exit("fleet_cost: error: align --part ended with %d" % code)
            found = json.loads(part.read_text())["ranks"][0]
            row = {"records": found["records"], "s": round(seconds, 3), "mb": round(memory, 1), "state": found["state"]}
            if way == "all":
                rows.append({**row, "bytes_a_record": round(size / found["records"], 2)})
        bench.drop(a, b)
    return rows, row, json.loads(part.read_text())


def merge(bench, sizes, part):
    rows = []
    for ranks in sizes:
        paths, folder = [], bench.work / "many"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for number in range(ranks):
            one = json.loads(json.dumps(part))
            one["of"], one["parts"] = ranks, [number + 1]
            for rank in one["ranks"]:
                rank["rank"] = number
                rank["groups"] = {name: shifted(group, number) for name, group in rank["groups"].items()}
            paths.append(folder / f"{number}.json")
            paths[-1].write_text(json.dumps(one))
        _, seconds, memory, _, _ = bench.merge(paths, bench.work / "fleet.json")
        rows.append({"ranks": ranks, "s": round(seconds, 3), "mb": round(memory, 1), "bytes_a_rank": round(sum(p.stat().st_size for p in paths) / ranks)})
        shutil.rmtree(folder)
    return rows


def model(found, ranks, records, differ, window):
    """(core seconds: search, read, merge; network bytes: index, logs, parts; MB of a worker)"""
    steps = max(2, records // PER_STEP)
    reads = line([(math.log2(r["steps"]), r["reads"]) for r in found["search"]])
    ms = line([(math.log2(r["steps"]), r["ms"]) for r in found["search"]])
    per_record, start = line([(r["records"], r["s"]) for r in found["read"]])
    memory, base = line([(r["records"], r["mb"]) for r in found["read"]])
    per_rank, _ = line([(r["ranks"], r["s"]) for r in found["merge"]])
    size = found["read"][-1]["bytes_a_record"]
    each = records if window is None else min(records, window * PER_STEP)
    seconds = (
        ranks * (max(0, start) + max(0, ms[0] * math.log2(steps) + ms[1]) / 1000),
        differ * per_record * each,
        ranks * max(0, per_rank),
    )
    sent = (
        ranks * 4096 * (reads[0] * math.log2(steps) + reads[1]),
        differ * 2 * size * each,
        ranks * found["merge"][-1]["bytes_a_rank"],
    )
    return seconds, sent, base + memory * each * (differ > 0)


def amount(value):
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return "%.3g %s" % (value, unit)
        value /= 1000
    return "%.3g TB" % value


def said(found):
    rows = []
    for ranks, records in JOBS:
        for how, share, window in HOW:
            seconds, sent, memory = model(found, ranks, records, 1 if share is None else share * ranks, window)
            names = ("start and search", "reading", "merge")
            rows.append([
                f"{ranks:,}", "10^%d" % round(math.log10(ranks * records)), how, "%.3g" % (sum(seconds) / 3600),
                names[max(range(3), key=seconds.__getitem__)], amount(sum(sent)), amount(memory * 2**20),
            ])  # fmt: skip
    last, window = found["search"][-1], found["window"]
    per_record, _ = line([(r["records"], r["s"]) for r in found["read"]])
    text = wrapped(
        f"Measured: {last['reads']} reads, {amount(last['bytes'])}, find the first of {last['steps']:,} steps that differs. "
        f"What is read takes {1e6 * per_record:.2f} us a pair of records on one core, and {found['read'][-1]['bytes_a_record']} bytes a record of each log. "
        f"A rank's part has {found['merge'][-1]['bytes_a_rank']:,} bytes. "
        f"A rank that differs in its first step took {window['s']} s by its window, {found['read'][-1]['s']} s where all of it was read. "
        f"A loop of 10^7 turns of Python took {found['loop_s']:.2f} s beside it."
    )
    headings = ["ranks", "records", "the runs", "core hours", "most of it", "over the network", "memory of a worker"]
    return text + table(headings, rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="100000,200000,400000")
    parser.add_argument("--steps", default="1000,10000,100000")
    parser.add_argument("--merged", default="500,2000,8000")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--table", type=Path, metavar="DOCUMENT")
    o = parser.parse_args()
    if o.table:
        put(o.table, "fleet_cost", said(json.loads(o.json.read_text())))
        return 0
    o.opguard, o.maker, o.finder = o.build / "src" / "cli" / "opguard", o.build / "bench" / "fleet_logs", o.build / "bench" / "equal_start"
    o.work = o.work or Path(tempfile.mkdtemp(prefix="fleet-"))
    bench = Bench(o)

    def numbers(text):
        return [int(n) for n in text.split(",")]

    found = {"loop_s": round(loop_seconds(), 3), "search": search(bench, numbers(o.steps))}
    found["read"], found["window"], part = read(bench, numbers(o.sizes))
    found["merge"] = merge(bench, numbers(o.merged), part)
    shutil.rmtree(bench.work, ignore_errors=True)
    print(json.dumps(found, indent=1))
    if o.json:
        o.json.write_text(json.dumps(found, indent=1) + "\n")
    print(said(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
