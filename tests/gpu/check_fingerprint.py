"""The kernel on the device against the processor, for every dtype and layout: og1, its companions, xor64; many tensors a launch; graphs; loss.

check_fingerprint.py --plugin FILE [--double FILE]: with --double through tests/device/cuda_double.cc, on tensors in host memory.
Prints one JSON object; exits 0 if all agree, 1 if not, 77 without what it needs."""

import argparse
import itertools
import json
import sys
import time

try:
    import torch
except ImportError:
    sys.exit(print("skipped: no torch here") or 77)

from plugin import Plugin, Tensor, tensor_of

parser = argparse.ArgumentParser()
parser.add_argument("--plugin", required=True)
parser.add_argument("--double")
args = parser.parse_args()
if not args.double and not torch.cuda.is_available():
    sys.exit(print("skipped: torch sees no GPU") or 77)
place = "cpu" if args.double else "cuda"
if args.double:
    # The program's part: torch has a context where it has tensors.
    import ctypes
    driver = ctypes.CDLL(args.double)
    context = ctypes.c_void_p()
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    driver.cuCtxSetCurrent(context)
torch.manual_seed(0)

DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool,
          torch.complex64, torch.complex128]
DTYPES += [getattr(torch, n) for n in ("float8_e4m3fn", "float8_e5m2", "uint16", "uint32", "uint64") if hasattr(torch, n)]


def made(shape, dtype):
    count = max(torch.Size(shape).numel(), 1)
    if dtype is torch.bool:
        return (torch.rand(shape) < 0.5).to(place)
    size = torch.empty((), dtype=dtype).element_size()
    return torch.randint(0, 256, (count * size,), dtype=torch.uint8).view(dtype)[:torch.Size(shape).numel()].reshape(shape).to(place)


def layouts(dtype):
    x = made((37, 5, 64), dtype)
    yield "whole", x
    yield "permuted", x.permute(2, 0, 1)
    yield "transposed", x.transpose(1, 2)
    yield "slice", x[1:, ::2, 3:50]
    yield "expanded", x[:, :1].expand(37, 9, 64)
    yield "odd", x.reshape(-1)[1:1000:3]
    yield "shifted", x.reshape(-1)[1:4097]
    yield "scalar", x[0, 0, 0]
    yield "empty", x[:0]
    yield "five dimensions", made((3, 2, 4, 5, 24), dtype).permute(0, 2, 1, 3, 4)
    for length in (1, 2, 3, 7, 8, 24, 31, 33, 96, 255, 257, 1000, 2049, 5000):
        yield f"rows of {length}", made((67, length), dtype)
    yield "one long row", made((300001,), dtype)
    yield "long rows", made((5, 40003), dtype)


def large():
    if args.double:
        return
    yield "1 GiB", torch.randn(256 << 20, device=place)
    yield "rows", torch.randn(100003, 3, device=place)
    yield "logits", torch.randn(2048, 50257, device=place, dtype=torch.bfloat16)
    yield "a matrix", torch.randn(4096, 4096, device=place)
    yield "its transpose", torch.randn(4096, 4096, device=place).t()
    yield "heads", torch.randn(8, 1024, 16, 64, device=place, dtype=torch.bfloat16).transpose(1, 2)


def masks():
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        for low in (float("-inf"), -1e4, -30000.0):
            mask = torch.full((65, 64), low).triu(1).to(dtype).to(place)
            yield f"mask {dtype} {low}", mask
            yield f"mask {dtype} {low} expanded", mask[None, None].expand(2, 3, 65, 64)
        yield f"no mask {dtype}", torch.full((65, 64), -9999.0).triu(1).to(dtype).to(place)


plugin = Plugin(args.plugin, args.double)
why, compared = [], 0
began = time.monotonic()
named = [(f"{str(d)[6:]} {name}", x) for d in DTYPES for name, x in layouts(d)] + list(masks()) + list(large())
stream = 0 if args.double else torch.cuda.current_stream().cuda_stream
started = time.monotonic()
for group in itertools.batched(named, 7) if hasattr(itertools, "batched") else [named[i:i + 7] for i in range(0, len(named), 7)]:
    tensors = (Tensor * len(group))(*[tensor_of(x, i + 1) for i, (_, x) in enumerate(group)])
    for xor in (False, True):
        plugin.launch(tensors, stream, xor=xor)
        values = plugin.drain(len(group))
        for i, (name, x) in enumerate(group):
            compared += 1
            at_home = x.cpu()
            # .cpu() makes expanded tensors dense, which is the same content.
            if i + 1 not in values:
                why.append(f"{name}: no record")
            elif xor and values[i + 1].h != plugin.xor_here(at_home):
                why.append(f"{name}: xor64 {values[i + 1].h:x}, the processor has {plugin.xor_here(at_home):x}")
            elif not xor and values[i + 1].content() != plugin.here(at_home).content():
                why.append(f"{name}: {values[i + 1].content()}, the processor has {plugin.here(at_home).content()}")
            elif not xor and not 0 < values[i + 1].start_ns <= values[i + 1].end_ns:
                why.append(f"{name}: from {values[i + 1].start_ns} to {values[i + 1].end_ns} ns")

if not args.double:
    # A graph records once a replay, with that replay's values; nothing for the capture.
    x = torch.zeros(1000, 300, device="cuda")
    graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    tensors = (Tensor * 1)(tensor_of(x, 5))
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        plugin.launch(tensors, side.cuda_stream)
    torch.cuda.synchronize()
    plugin.drain(1)
    with torch.cuda.graph(graph, stream=side):
        x.add_(1)
        plugin.launch(tensors, side.cuda_stream)
    for replay in range(3):
        graph.replay()
        torch.cuda.synchronize()
        values = plugin.drain(1)
        if 5 not in values or values[5].content() != plugin.here(x.cpu()).content():
            why.append(f"graph: replay {replay} has {values[5].content() if values else 'no record'}")
    # Several streams at a time.
    streams, inputs = [torch.cuda.Stream() for _ in range(4)], [torch.randn(3000, 1000, device="cuda") for _ in range(4)]
    torch.cuda.synchronize()
    for turn in range(50):
        for i, (s, y) in enumerate(zip(streams, inputs)):
            plugin.launch((Tensor * 1)(tensor_of(y, 1 + i + 4 * turn)), s.cuda_stream)
    values, expected = plugin.drain(200), [plugin.here(y.cpu()).content() for y in inputs]
    wrong = sum(v.content() != expected[(v.ticket - 1) % 4] for v in values.values())
    if len(values) != 200 or wrong:
        why.append(f"streams: {len(values)} of 200 records, {wrong} wrong")
print(json.dumps({"check": "fingerprint", "passed": not why, "why": why[:20], "wrong": len(why), "compared": compared, "lost": plugin.library.opguard_test_lost(),
                  "seconds_ready": round(started - began, 3), "device": "double" if args.double else torch.cuda.get_device_name(), "torch": torch.__version__}))
sys.exit(1 if why else 0)
