"""The fingerprint's speed beside torch.sum and torch.hash_tensor, on one thread.

  fingerprint.py [--package DIR] [--json FILE] [--mib N] [--rounds N] [--level NAME]

DIR: the folder that holds the package opguard (build/release/python by default). A row is a dtype and a shape: GB/s (1e9 bytes of content a
second of the thread's own processor time, medians over rounds that run all in turn) of `all` that a record holds (og1, its flat hash, the
mask check, the layout-free digest), of memory alone (xor64, which does nothing but read), torch.sum, torch.hash_tensor, and `og1` alone; and
the medians of the ratios of `all` to the others within a round. --mib: size of the large tensors, which should exceed the last private cache
by far. --level: a version of the inner loops (v4, v3, plain). Exit code 1 if a row marked * (float32 and bfloat16, contiguous, from memory,
rows of 128 bytes and more that are whole lanes of 8 bytes) has `all` below 0.6 of torch.sum, or `og1` below 0.9 of it or below twice
torch.hash_tensor.
"""
import argparse
import json
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAMES = ("all", "memory", "og1", "sum", "hash_tensor")
GOALS = {("all", "sum"): 0.6, ("og1", "sum"): 0.9, ("og1", "hash_tensor"): 2}


def shapes(elements, itemsize):
    """(name, shape, is it a row of the goal) of about that many elements."""
    rows = [("flat", (elements,), True)]
    for row_bytes in (128, 512, 4096, 65536):
        row = row_bytes // itemsize
        rows.append((f"rows of {row_bytes} B", (elements // row, row), True))
    rows.append(("rows of 16 B", (elements // (16 // itemsize), 16 // itemsize), False))
    rows.append(("odd rows", (elements // 50257 or 1, 50257), False))
    rows.append(("in cache: 1 MiB", ((1 << 20) // itemsize,), False))
    rows.append(("small: 4 KiB", (4096 // itemsize,), False))
    return rows


def measure(calls, rounds):
    """Seconds of each call in every round, one after the other."""
    times = [[] for _ in calls]
    for call in calls:
        call()
    for _ in range(rounds):
        for call, taken in zip(calls, times):
            begin = time.thread_time_ns()
            call()
            taken.append(max(time.thread_time_ns() - begin, 1) * 1e-9)
    return times


def measure_row(torch, rt, dtype, name, shape, goal, rounds):
    x = torch.randn(shape) if dtype.is_floating_point else torch.randint(-99, 99, shape)
    x = x.to(dtype)
    size = x.numel() * x.itemsize
    calls = [lambda: rt.fingerprint(x, "all"), lambda: rt.fingerprint(x, "xor64"), lambda: rt.fingerprint(x), x.sum, lambda: torch.hash_tensor(x)]
    try:
        calls[3](), calls[4]()
    except (RuntimeError, NotImplementedError, AttributeError):  # no sum of float8; hash_tensor came with torch 2.9
        del calls[3:]
    times = measure(calls, max(rounds, min(200, (1 << 22) // size)))
    row = {"dtype": str(dtype)[6:], "shape": name, "bytes": size, "goal": goal and str(dtype)[6:] in ("float32", "bfloat16")}
    row["gb_per_s"] = {n: size / statistics.median(t) * 1e-9 for n, t in zip(NAMES, times)}
    taken = dict(zip(NAMES, times))
    ratio = lambda name, to: statistics.median(b / a for a, b in zip(taken[name], taken[to]))
    row["ratio"] = {n: ratio("all", n) for n in NAMES[1:] if n in taken}
    row["goals"] = {f"{n} of {to}": ratio(n, to) for n, to in GOALS if to in taken}
    return row


def print_row(row):
    speed, ratio = row["gb_per_s"], row["ratio"]
    cell = lambda d, n: f"{d[n]:7.2f}" if n in d else "      -"
    print(f"{'*' if row['goal'] else ' '} {row['dtype']:14} {row['shape']:16}" + "".join(cell(speed, n) for n in NAMES)
          + "  |" + "".join(cell(ratio, n) for n in NAMES[1:]), flush=True)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", default=ROOT / "build" / "release" / "python")
    parser.add_argument("--json")
    parser.add_argument("--mib", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--level", default="")
    options = parser.parse_args()
    sys.path.insert(0, str(options.package))
    import torch
    from opguard import _rt

    torch.set_num_threads(1)
    torch.manual_seed(0)
    levels = _rt.lane_sums(options.level)
    print(f"torch {torch.__version__}, versions here: {', '.join(levels)}; used: {options.level or levels[0]}")
    print(f"  {'dtype':14} {'shape':16}" + "".join(f"{n[:6]:>7}" for n in NAMES) + "  |   all as a multiple of memory, og1, sum, hash_tensor")
    rows = []
    for dtype in ("float32", "bfloat16", "float64", "float16", "int64", "int32", "uint8", "float8_e4m3fn"):
        if not hasattr(torch, dtype):
            continue
        dtype = getattr(torch, dtype)
        of_dtype = shapes((options.mib << 20) // dtype.itemsize, dtype.itemsize)
        if dtype not in (torch.float32, torch.bfloat16):
            of_dtype = of_dtype[:1]
        for name, shape, goal in of_dtype:
            rows.append(measure_row(torch, _rt, dtype, name, shape, goal, options.rounds))
            print_row(rows[-1])
    goals = [r for r in rows if r["goal"] and "sum" in r["ratio"]]
    wanted = {f"{n} of {to}": goal for (n, to), goal in GOALS.items()}
    least = {name: min(r["goals"][name] for r in goals) for name in wanted} if goals else {}
    if least:
        print("least of the rows marked *: " + ", ".join(f"{name} {least[name]:.2f} (goal {goal})" for name, goal in wanted.items()))
    if options.json:
        result = {"torch": torch.__version__, "levels": levels, "level": options.level or levels[0], "least": least, "goals": wanted, "rows": rows}
        Path(options.json).write_text(json.dumps(result, indent=1))
    return 0 if all(least[name] >= wanted[name] for name in least) else 1


if __name__ == "__main__":
    sys.exit(main())
