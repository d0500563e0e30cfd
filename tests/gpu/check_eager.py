"""Eager programs on the GPU: every dtype and layout has the fingerprint that the processor computes of a copy, in full and in default, with
autograd, optimizers, several streams and memory that is used again at once."""

import tempfile
from pathlib import Path

import torch
from program import Check, record

import tensor_files

VALUES = r"""
from opguard import _rt
torch.manual_seed(0)
def told(name, x):
    og(name, torch.clone)(x)
    print(name, *_rt.fingerprint(x.detach().cpu(), "all"))
dtypes = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool,
          torch.complex64, torch.complex128]
dtypes += [getattr(torch, n) for n in ("float8_e4m3fn", "float8_e5m2", "uint16", "uint32") if hasattr(torch, n)]
for dtype in dtypes:
    name = str(dtype)[6:]
    x = (torch.randn(37, 5, 64, device="cuda") * 50).to(dtype)
    told(f"{name}.whole", x)
    told(f"{name}.permuted", x.permute(2, 0, 1))
    told(f"{name}.slice", x[1:, ::2, 3:50])
    told(f"{name}.expanded", x[:, :1].expand(37, 9, 64))
    told(f"{name}.odd", x.reshape(-1)[1:1000:3])
    told(f"{name}.scalar", x[0, 0, 0])
    told(f"{name}.empty", x[:0])
told("large", torch.randn(64 << 20, device="cuda"))
told("rows", torch.randn(100003, 3, device="cuda"))
mask = torch.full((64, 64), float("-inf"), device="cuda").triu(1)
for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
    told("mask." + str(dtype)[6:], mask.to(dtype))
told("negated", torch.randn(9, dtype=torch.complex64, device="cuda").conj().imag)
"""

TRAIN = r"""
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.LayerNorm(512), torch.nn.Linear(512, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
for step in range(4):
    for micro in range(2):
        x, y = torch.randn(64, 256, device="cuda"), torch.randint(10, (64,), device="cuda")
        loss = og("train.loss", torch.nn.functional.cross_entropy)(og("train.model", model)(x), y)
        og("train.backward", loss.backward)()
    og("train.clip", torch.nn.utils.clip_grad_norm_)(model.parameters(), 1.0)
    og("train.step", optimizer.step)()
    optimizer.zero_grad()
"""

# Blocks that are freed right after the call, and taken at once by the next one, on two streams.
REUSED = r"""
from opguard import _rt
side = torch.cuda.Stream()
for i in range(200):
    x = torch.full((1 << 16,), float(i), device="cuda")
    y = og("reused.add", torch.add)(x, 1)
    del x, y
    with torch.cuda.stream(side):
        z = torch.full((1 << 16,), float(-i), device="cuda")
        w = og("reused.side", torch.add)(z, 1)
        del z, w
for i in range(200):
    print(*_rt.fingerprint(torch.full((1 << 16,), float(i)), "all"), *_rt.fingerprint(torch.full((1 << 16,), float(-i)), "all"))
"""

TRANSPLANT = r"""
x = torch.zeros(2, device="cuda", requires_grad=True)
y = og("transplant.exp", torch.exp)(x)
y.sum().backward()
print(y.tolist(), y._version, x.grad.tolist())
"""

with Check("eager") as check:
    with check.part("values"):
        lines, log, _ = record(VALUES, OPGUARD_MODE="full")
        check.sound(log, "values")
        wrong = []
        for line in lines:
            name, h, m, flat, pattern, digest = line.split()
            (event,) = log.of(name)
            slot = event.slots[0]
            number = [int(word) if word != "None" else 0 for word in (h, m, flat, pattern, digest)]
            if (*slot.value, slot.flat, slot.pattern, slot.digest or 0) != tuple(number):
                wrong.append(name)
        check(not wrong, f"the GPU's fingerprints are the processor's (differ: {wrong})")
        check.figures["tensors"] = len(lines)
    for mode in ("full", "default", "trusted", "sdc"):
        with check.part(f"train {mode}"):
            _, log, _ = record(TRAIN, OPGUARD_MODE=mode)
            check.sound(log, f"train {mode}")
            times = [(e.device_start_ns, e.device_end_ns) for e in log.events if e.flags & 8]
            check(times and all(0 < a <= b for a, b in times), f"train {mode}: the device's times are in order")
            if mode == "full":
                check.figures["events"] = len(log.events)
                losses = [e.get("in", "root0").value for e in log.events if e.kind == "loss"]
                outs = [e.get("out", "out0").value for e in log.of("train.loss")]
                check(losses == outs, "what an operator left is what the next one reads")
            if mode == "default":
                check(any(s.flags & 32 for e in log.events for s in e.slots), "values are carried over")
    with check.part("reused"):
        lines, log, _ = record(REUSED, OPGUARD_MODE="full")
        check.sound(log, "reused")
        expected = [[int(word) if word != "None" else 0 for word in line.split()] for line in lines]
        for boundary, at in (("reused.add", 0), ("reused.side", 5)):
            read = [e.get("in", "arg0").value for e in log.of(boundary)]
            check(read == [(row[at], row[at + 1]) for row in expected], f"{boundary}: each read before its memory was used again")
        check({e.stream for e in log.of("reused.add")} != {e.stream for e in log.of("reused.side")}, "two streams have two numbers")
    with check.part("transplant"):
        path = tensor_files.write(Path(tempfile.mkdtemp(prefix="opguard-gpu-")) / "v.safetensors", {"v": torch.tensor([7.0, 8.0])})
        lines, log, _ = record(TRANSPLANT, OPGUARD_MODE="full", OPGUARD_TRANSPLANT=f"transplant.exp@0:out0={path}")
        check.sound(log, "transplant")
        check(lines == ["[7.0, 8.0] 0 [7.0, 8.0]"], f"a transplanted value is what the program reads, and what autograd has saved ({lines})")
        check(log.settings.get("transplant") == "done 1 of 1", f"transplant: {log.settings.get('transplant')} {log.settings.get('transplant.0')}")
