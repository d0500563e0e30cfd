"""Calls of the CUDA driver as driver_recorder.cc writes them, and what probes may add to a program's.

  driver_calls.py BARE PROBED: prints what is wrong; exits 1 if anything is."""

import re
import sys
from collections import Counter, namedtuple

Call = namedtuple("Call", "thread name stream ours kernel")

# What a probe may call at each launch. Nothing of it waits, or orders streams.
QUESTIONS = {"cuCtxGetCurrent", "cuCtxGetId", "cuCtxPushCurrent", "cuCtxPopCurrent", "cuStreamGetCaptureInfo", "cuStreamGetId"}
LAUNCH = "cuLaunchKernel"
KERNELS = ("opguard_og1_small", "opguard_og1_large", "opguard_og1_plain_small", "opguard_og1_plain_large")
# Once for a device: context, ring, counter and kernels; a kernel may be loaded by its first launch. And once for 60 streams or so: scratch.
FIRST = {"cuInit": 1, "cuDriverGetVersion": 1, "cuDeviceGet": 1, "cuDeviceGetAttribute": 2, "cuDevicePrimaryCtxRetain": 1, "cuMemHostAlloc": 1,
         "cuMemHostRegister": 1, "cuMemHostGetDevicePointer": 1, "cuModuleGetFunction": 2, "cuModuleLoadDataEx": 4, "cuModuleGetGlobal": 2,
         "cuFuncLoad": 2, "cuThreadExchangeStreamCaptureMode": 16}  # fmt: skip
# What would wait for the device, order its streams or change its work.
# How often a program asks whether something has ended is a matter of time (torch's allocators do).
POLLING = {"cuEventQuery", "cuStreamQuery"}
# What torch itself asks the driver when it is asked for its device or whether a stream is captured, as a probe does once a step.
ASKED_OF_TORCH = {"cuCtxGetDevice", "cuDevicePrimaryCtxGetState", "cuStreamIsCapturing"}
# Where a compiler may have fused otherwise: its kernels, and memory for what they keep.
OF_COMPILER = re.compile("cuLaunch.*Kernel|cuMem(Alloc|Free|Create|Release|Map|Unmap|SetAccess|Address)")
FORBIDDEN = re.compile("Synchronize|cuEvent|cuStreamWait|cuStreamQuery|cuMemcpy|cuMemset|cuMemAlloc|cuMemFree|cuLaunchHostFunc|cuStreamCreate|cuGraph|BeginCapture|EndCapture")


def base(name):
    return re.sub(r"(_v\d)?(_ptsz|_ptds)?$", "", name)


def read(path):
    calls = []
    with open(path) as file:
        for line in file:
            thread, name, stream, ours, kernel = line.rstrip("\n").split("\t")
            calls.append(Call(int(thread), name, int(stream, 16), ours == "1", kernel))
    return calls


def is_launch(call):
    return base(call.name).startswith("cuLaunch") and "Kernel" in call.name


def numbered(calls):
    """[[call as text, ...] of each thread]: threads and streams by first use, whatever they are called in a process."""
    streams, threads = {0: 0}, {}
    for call in calls:
        text = base(call.name) + f" stream {streams.setdefault(call.stream, len(streams))}" * (call.stream != 0) + f" {call.kernel}" * bool(call.kernel)
        threads.setdefault(call.thread, []).append(text)
    return list(threads.values())


def compare(bare, probed, devices=1, kernels=True):
    """What is wrong, [] if the probed program's calls are the bare one's and launches of ours between. kernels: False where a compiler may have
    fused otherwise: then the program's own kernels, and what memory it takes, are left out on both sides."""
    why, extra = [], Counter(base(c.name) for c in probed if c.ours)
    if not extra[LAUNCH]:
        why.append("the program with probes has no launch of ours")
    if any(c.ours for c in bare):
        why.append("the bare program calls the driver from opguard")
    for call in probed:
        if call.ours and is_launch(call) and call.kernel not in KERNELS:
            why.append(f"a launch of ours is of {call.kernel}")
    for name, count in sorted(extra.items()):
        if FORBIDDEN.search(name):
            why.append(f"we call {name} ({count} times)")
        elif name != LAUNCH and name not in QUESTIONS and count > FIRST.get(name, 0) * devices:
            why.append(f"we call {name} {count} times; at most {FIRST.get(name, 0)} of a device's first meeting are known")
    bare, kept = ([c for c in calls if not c.ours and base(c.name) not in POLLING | ASKED_OF_TORCH] for calls in (bare, probed))
    if not kernels:
        bare, kept = ([c for c in calls if not OF_COMPILER.match(c.name)] for calls in (bare, kept))
    theirs, with_probes = numbered(bare), numbered(kept)
    if len(theirs) != len(with_probes):
        why.append(f"{len(theirs)} threads call the driver without probes, {len(with_probes)} with them")
    for thread, (a, b) in enumerate(zip(theirs, with_probes)):
        if a == b:
            continue
        at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
        added, gone = Counter(b) - Counter(a), Counter(a) - Counter(b)
        why.append(f"thread {thread}: call {at} of {len(a)}: bare {a[max(0, at - 2):at + 3]}, with probes {b[max(0, at - 2):at + 3]}; "
                   f"added in all {dict(added.most_common(5))}, missing {dict(gone.most_common(5))}")
    return why


def figures(bare, probed):
    return {"bare": len(bare), "probed": len(probed), "ours": dict(Counter(base(c.name) for c in probed if c.ours)),
            "kernels": [sum(map(is_launch, bare)), sum(is_launch(c) and not c.ours for c in probed)]}  # fmt: skip


if __name__ == "__main__":
    wrong = compare(read(sys.argv[1]), read(sys.argv[2]))
    print("\n".join(wrong))
    sys.exit(bool(wrong))
