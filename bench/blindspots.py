"""Which changes of a tensor a digest sees: og1 beside what other tools take.

  blindspots.py [--package DIR] [--json FILE]

DIR: the folder that holds the package opguard (build/release/python by default). A row is a pair of tensors, a column a digest of each alone:
  og1, xor32, xor64  opguard's
  hash_tensor        torch.hash_tensor as torch's DebugMode calls it (XOR over the values as float64 or int64)
  crc32              of the bytes in logical order (msProbe's mode "md5")
  l1                 the 1-norm in float64 (DebugMode's mode "norm")
  statistics         maximum, minimum, mean and 2-norm in float32 (msProbe's mode "statistics")
"seen": the digests differ; "-": they are equal. Where the pair's shapes differ too (marked *) a record differs even if the digest does not: all
these tools keep the shape beside it. Below, pairs that are one value, where "seen" would be a false alarm ("ALARM"). Exit code 1 if og1, with the
shape beside it, misses a change or gives an alarm.
"""
import argparse
import json
import sys
import zlib
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]

INTEGER = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def changed(x, index, bits=1):
    """x with bits of one element flipped."""
    y = x.clone()
    y.view(INTEGER[x.itemsize])[index] ^= bits
    return y


def swapped(x, i, j):
    y = x.clone()
    y[i], y[j] = x[j], x[i]
    return y


def changes():
    """{name: (a, b)}: two values that differ."""
    g = torch.Generator().manual_seed(0)
    x = torch.randn(256, 256, generator=g)
    brain, half, large, double = x.bfloat16(), x.half(), x * 1e4, x.double()
    larger = double.clone()
    larger[5, 7] *= 1 + 1e-9
    nan, brain_nan = x.clone(), brain.clone()
    nan[0, 0] = brain_nan[0, 0] = float("nan")
    twins, one = torch.cat([x, x]), changed(x, (5, 7))
    few = torch.randint(0, 2, (256, 256), generator=g, dtype=torch.bool)
    tokens = torch.randint(0, 50257, (8, 512), generator=g)
    sign = -0x80000000
    return {
        "one ulp of one element": (x, one),
        "one ulp, bf16": (brain, changed(brain, (5, 7))),
        "one ulp, f16": (half, changed(half, (5, 7))),
        "one ulp, f64": (double, changed(double, (5, 7))),
        "one ulp, float8": (x.to(torch.float8_e4m3fn), changed(x.to(torch.float8_e4m3fn), (5, 7))),
        "one ulp in a large sum": (large, changed(large, (5, 7))),
        "one element 1e-9 larger, f64": (double, larger),
        "one ulp up, one down": (x.abs(), changed(changed(x.abs(), (5, 7)), (5, 8))),
        "rows permuted": (x, x[torch.randperm(256, generator=g)]),
        "columns permuted": (x, x[:, torch.randperm(256, generator=g)]),
        "all elements permuted": (x, x.view(-1)[torch.randperm(1 << 16, generator=g)].view(256, 256)),
        "two elements swapped": (x, swapped(x, (3, 3), (200, 77))),
        "two elements of one lane swapped, bf16": (brain, swapped(brain, (3, 4), (3, 5))),
        "rows swapped at a power of two": (x, torch.cat([x[128:], x[:128]])),
        "batch of tokens in another order": (tokens, tokens.flip(0)),
        "shifted by one": (x, x.roll(1)),
        "one sign flipped": (x, changed(x, (3, 3), sign)),
        "all signs flipped": (x, -x),
        "two signs of one lane flipped": (x, changed(changed(x, (3, 4), sign), (3, 5), sign)),
        "twin halves changed alike": (twins, torch.cat([one, one])),
        "two elements changed by the same bits": (x, changed(changed(x, (5, 7), 64), (9, 1), 64)),
        "pairs of equal rows: other ones": (torch.cat([x[:2], x[:2]]), torch.cat([x[2:4], x[2:4]])),
        "a constant for another": (torch.full((256,), 2.0), torch.full((256,), 3.0)),
        "bool: two flags changed": (few, changed(changed(few, (5, 7)), (9, 1))),
        "NaN payload": (nan, changed(nan, (0, 0))),
        "NaN payload, bf16": (brain_nan, changed(brain_nan, (0, 0))),
        "NaN's sign": (nan, changed(nan, (0, 0), sign)),
        "NaN for infinity": (torch.where(x > 3, float("inf"), x), torch.where(x > 3, float("nan"), x)),
        "zero and minus zero": (torch.zeros(9), -torch.zeros(9)),
        "zeros of other length": (torch.zeros(4096), torch.zeros(8192)),
        "zeros behind": (x.view(-1), torch.cat([x.view(-1), torch.zeros(8)])),
        "zeros before": (x.view(-1), torch.cat([torch.zeros(8), x.view(-1)])),
        "no elements, and zeros": (torch.zeros(0, 3), torch.zeros(2, 3)),
        "reshaped": (x, x.view(128, 512)),
        "transposed": (x, x.T),
    }


def equals():
    """{name: (a, b)}: one value twice."""
    g = torch.Generator().manual_seed(1)
    x = torch.randn(64, 48, generator=g)
    nan = changed(torch.where(x > 1, float("nan"), x), (0, 0))
    z = torch.randn(16, 16, dtype=torch.complex64, generator=g)
    return {
        "a copy": (x, x.clone()),
        "a copy, with NaNs": (nan, nan.clone()),
        "transposed in memory": (x, x.T.contiguous().T),
        "with gaps": (x, torch.stack([x, -x], -1)[..., 0]),
        "broadcast": (x[:1].expand(64, 48), x[:1].repeat(64, 1)),
        "conjugate view": (z.conj(), z.conj().resolve_conj()),
        "negative view": (torch._neg_view(x), -x),
        "no elements": (torch.zeros(0, 3), torch.ones(0, 3)),
    }


def hash_tensor(t):
    t = t.contiguous()
    if t.is_complex():
        t = t.to(torch.complex128).view(torch.float64)
    t = t.to(torch.float64 if t.is_floating_point() else torch.int64)
    return torch.hash_tensor(t).item() if t.numel() else 0


def crc32(t):
    t = t.resolve_conj().resolve_neg().contiguous()
    return zlib.crc32(t.view(-1).view(torch.uint8).numpy().tobytes() if t.numel() else b"")


def l1(t):
    return repr(t.to(torch.complex128 if t.is_complex() else torch.float64).norm(p=1).item())


def statistics(t):
    if t.is_complex():
        t = torch.view_as_real(t.resolve_conj())
    t = t.float()
    return repr([f(t).item() for f in (torch.max, torch.min, torch.mean, torch.linalg.vector_norm)] if t.numel() else [])


def digests(rt):
    """{column: function of a tensor}; what two equal results are is `==`."""
    columns = {
        "og1": rt.fingerprint, "xor32": lambda t: rt.fingerprint(t, "xor32"), "xor64": lambda t: rt.fingerprint(t, "xor64"),
        "hash_tensor": hash_tensor, "crc32": crc32, "l1": l1, "statistics": statistics,
    }  # fmt: skip
    if not hasattr(torch, "hash_tensor"):  # from torch 2.9 on
        del columns["hash_tensor"]
    return columns


def table(pairs, columns):
    """{pair: {"shape": is the shape another, column: does the digest differ}}"""
    return {
        name: {"shape": a.shape != b.shape, **{column: digest(a) != digest(b) for column, digest in columns.items()}}
        for name, (a, b) in pairs.items()
    }  # fmt: skip


def show(rows, columns, words):
    for name, row in rows.items():
        print(f"{name + ('*' if row['shape'] else ''):42}" + "".join(f"{words[row[c]]:>12}" for c in columns))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", default=ROOT / "build" / "release" / "python")
    parser.add_argument("--json")
    options = parser.parse_args()
    sys.path.insert(0, str(options.package))
    from opguard import _rt

    columns = digests(_rt)
    differ, same = table(changes(), columns), table(equals(), columns)
    print(f"{'':42}" + "".join(f"{c:>12}" for c in columns))
    show(differ, columns, {True: "seen", False: "-"})
    print()
    show(same, columns, {True: "ALARM", False: "same"})
    missed = {c: sum(not row[c] for row in differ.values()) for c in columns}
    print(f"\n{'missed of %d (digest alone)' % len(differ):42}" + "".join(f"{missed[c]:12}" for c in columns))
    if options.json:
        result = {"torch": torch.__version__, "changes": differ, "equal": same, "missed": missed}
        Path(options.json).write_text(json.dumps(result, indent=1))
    good = all(row["og1"] or row["shape"] for row in differ.values()) and not any(row["og1"] for row in same.values())
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
