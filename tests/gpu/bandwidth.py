"""Read bandwidth of the kernel beside torch.sum and torch.hash_tensor on the same tensors, and what a launch costs.

bandwidth.py --plugin FILE [--blocks N] [--rounds N] [--only WORD,...] [--ways WAY,...]. Prints a table on stderr and one JSON object on stdout; exits 0 if og1 reads the largest contiguous
tensors at 0.9 of torch.sum or better, 1 if not, 77 without a GPU."""

import argparse
import json
import statistics
import sys
import time

try:
    import torch
except ImportError:
    sys.exit(print("skipped: no torch here") or 77)

from plugin import Plugin, Tensor, tensor_of

GOAL = 0.9
parser = argparse.ArgumentParser()
parser.add_argument("--plugin", required=True)
parser.add_argument("--blocks", type=int, default=0, help="of a multiprocessor; 0: the library's own choice")
parser.add_argument("--rounds", type=int, default=7)
parser.add_argument("--ways", default="torch.sum,og1,xor64,hash_tensor", help="what is timed")
parser.add_argument("--only", default="", help="tensors whose names have one of these words, separated by commas")
args = parser.parse_args()
if not torch.cuda.is_available():
    sys.exit(print("skipped: torch sees no GPU") or 77)

torch.manual_seed(0)
bf16, f32, i64 = torch.bfloat16, torch.float32, torch.int64


def rand(*shape, dtype=bf16):
    return torch.randn(*shape, device="cuda", dtype=torch.float32).to(dtype) if dtype.is_floating_point else torch.randint(1 << 40, shape, device="cuda", dtype=dtype)


# (name, does the goal hold for it, tensor)
CASES = [
    ("f32 1-D 1 GiB", True, lambda: rand(256 << 20, dtype=f32)),
    ("bf16 [65536, 8192] 1 GiB", True, lambda: rand(65536, 8192)),
    ("bf16 [524288, 1024] 1 GiB", True, lambda: rand(524288, 1024)),
    ("bf16 [8, 16, 4096, 64] 64 MiB", False, lambda: rand(8, 16, 4096, 64)),
    ("bf16 rows of 64, 1 GiB", False, lambda: rand(8388608, 64)),
    ("f32 rows of 8, 256 MiB", False, lambda: rand(8388608, 8, dtype=f32)),
    ("bf16 logits [8192, 50304]", False, lambda: rand(8192, 50304)),
    ("bf16 logits [8192, 50257]", False, lambda: rand(8192, 50257)),
    ("f32 logits [4096, 50257]", False, lambda: rand(4096, 50257, dtype=f32)),
    ("bf16 heads transposed [8, 16, 4096, 64]", False, lambda: rand(8, 4096, 16, 64).transpose(1, 2)),
    ("bf16 matrix.t() [16384, 16384]", False, lambda: rand(16384, 16384).t()),
    ("f32 [4096, 4096] 64 MiB", False, lambda: rand(4096, 4096, dtype=f32)),
    ("f32 [1024, 1024] 4 MiB", False, lambda: rand(1024, 1024, dtype=f32)),
    ("f32 [768] ", False, lambda: rand(768, dtype=f32)),
    ("i64 [8, 1024]", False, lambda: rand(8, 1024, dtype=i64)),
]
plugin = Plugin(args.plugin, ring=1 << 16, blocks=args.blocks)
stream = torch.cuda.current_stream().cuda_stream


def microseconds(call, bytes_):
    """Of one call, the median of `rounds` loops that last about 20 ms."""
    loops = max(3, min(200, int(0.02 * 2e12 / max(bytes_, 1 << 20))))
    for _ in range(3):
        call()
    taken = []
    for _ in range(args.rounds):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        start.record()
        for _ in range(loops):
            call()
        end.record()
        end.synchronize()
        taken.append(start.elapsed_time(end) * 1000 / loops)
    plugin.drain(0, 0)
    while plugin.drain(1, 0.01):
        pass
    return statistics.median(taken)


began = time.monotonic()
first = rand(1000)
plugin.launch((Tensor * 1)(tensor_of(first)), stream)
ready = time.monotonic() - began
rows, worst = [], None
print(f"{torch.cuda.get_device_name()}; GB/s (share of torch.sum)\n{'':42}{'torch.sum':>10}{'hash_tensor':>18}{'og1':>18}{'xor64':>18}", file=sys.stderr)
for name, counts, make in CASES:
    if not any(word in name for word in args.only.split(",")):
        continue
    x = make()
    size = x.numel() * x.element_size()
    one = (Tensor * 1)(tensor_of(x))
    ways = {"torch.sum": lambda: torch.sum(x), "og1": lambda: plugin.launch(one, stream), "xor64": lambda: plugin.launch(one, stream, xor=True)}
    if hasattr(torch, "hash_tensor"):
        try:
            torch.hash_tensor(x)
            ways["hash_tensor"] = lambda: torch.hash_tensor(x)
        except (RuntimeError, NotImplementedError):
            pass
    us = {way: microseconds(call, size) for way, call in ways.items() if way in args.ways.split(",")}
    rate = {way: size / t / 1000 for way, t in us.items()}
    share = {way: r / rate["torch.sum"] for way, r in rate.items()}
    rows.append({"tensor": name.strip(), "bytes": size, "microseconds": us, "gb_per_s": rate, "of_torch_sum": share, "counts": counts})
    if counts:
        worst = min(share["og1"], worst if worst is not None else 1e9)
    cells = "".join(f"{rate[w]:10.0f} ({share[w]:4.2f}) " if w in rate else f"{'-':>18}" for w in ("hash_tensor", "og1", "xor64"))
    print(f"{name:42}{rate['torch.sum']:10.0f}{cells}", file=sys.stderr)
    del x, ways
    torch.cuda.empty_cache()

# The program's thread: a launch of one, three and twelve tensors, nothing waited for.
host = {}
for count in (1, 3, 12):
    small = [rand(64, 64) for _ in range(count)]
    tensors = (Tensor * count)(*[tensor_of(t, i + 1) for i, t in enumerate(small)])
    call = plugin.library.opguard_test_fingerprint
    for _ in range(100):
        call(0, stream, tensors, count)
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(500):
        call(0, stream, tensors, count)
    host[count] = round((time.perf_counter() - start) / 500 * 1e6, 2)
    torch.cuda.synchronize()
    while plugin.drain(1, 0.01):
        pass
passed = worst is not None and worst >= GOAL
print(json.dumps({"check": "bandwidth", "passed": passed, "why": [] if passed else [f"og1 reads at {worst or 0:.2f} of torch.sum, the goal is {GOAL}"],
                  "goal_of_torch_sum": GOAL, "least_of_torch_sum": worst, "blocks": args.blocks, "seconds_until_the_first_launch": round(ready, 3),
                  "host_microseconds_a_launch": host, "rows": rows, "device": torch.cuda.get_device_name(), "torch": torch.__version__}))
sys.exit(0 if passed else 1)
