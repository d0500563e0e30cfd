"""A context that is destroyed under us (cudaDeviceReset): the program goes on, the log is whole, what is missing is counted and said."""

import tempfile

from program import UNREADABLE, Check, run_program

from runtime_log import logs_in

SOURCE = r"""
import ctypes, os, time, torch
x = torch.randn(1 << 20, device="cuda")
for _ in range(200):
    og("reset.before", torch.relu)(x)
torch.cuda.synchronize()
time.sleep(1)
for _ in range(20):
    og("reset.under_way", torch.relu)(x)
print(ctypes.CDLL("libcuda.so.1").cuDevicePrimaryCtxReset_v2(0))
og("reset.after", lambda t: 0)(x)
begin = time.monotonic()
recording.close()
print(time.monotonic() - begin)
os._exit(0)  # torch's own end is not what is tried here
"""

with Check("reset") as check:
    folder = tempfile.mkdtemp(prefix="opguard-gpu-")
    result = run_program(SOURCE, folder, env={"OPGUARD_MODE": "full"})
    (log,) = logs_in(folder)
    code, seconds = result.stdout.split()
    check(code == "0", f"cuDevicePrimaryCtxReset: {code}")
    check(float(seconds) < 20, f"the log was closed after {seconds} s")
    check(log.closed, "the log is closed")
    check(not any(s.flags & UNREADABLE for e in log.of("reset.before") for s in e.slots), "what had come is there")
    check(all(s.flags & UNREADABLE for e in log.of("reset.after") for s in e.slots if s.kind == "in"), "what came later is unreadable")
    check("was destroyed" in result.stderr, f"it is said: {result.stderr[-500:]}")
    check.figures["lost"], check.figures["stderr"] = log.lost, result.stderr[-500:]
