#!/usr/bin/env python3
"""What recording costs: a training step with every site probed beside the bare step, and one probe beside its bare operator.

  overhead.py [--build DIR] [--python FILE] [--sizes small,large] [--modes full,default,...] [--steps N]
              [--processes N] [--json FILE] [--check]

The program is bench/programs/gpt_step.py; its probes are what preflight and opguard-instrument make of it. Each mode has a process of its own (one thread),
in which bare and probed steps of one model alternate (--processes: so many, the modes in turn, since two of them may differ
more than their steps do); in the bare ones none of opguard's hooks is installed. x: medians over the steps of
probed / bare, in the process's own processor time (cpu, all its threads; a writer thread's share counts) and in wall time, and the ratio of the minima. Peers stand
beside them: `hash_tensor` (torch.hash_tensor of every operator's inputs and outputs under a dispatch mode, one transfer a step) and `DebugMode`
(torch's, log_tensor_hashes("hash_tensor", hash_inputs=True)). `noise` is the bare step twice.

The wrapper: the calling thread's processor time for og(id, torch.add)(a, b) less that for torch.add(a, b), 2 inputs of 4 floats and 1 output, no
gradients, everything that a record holds included (names, shapes, versions, storages, fingerprints, the coded event). Of 200 rounds of 500 calls the
fastest of each (which another process's load reaches least), and the differences of their 10th percentiles and medians.

--check: exit code 1 where a mode exceeds its goal.
"""
import argparse
import contextlib
import gc
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "bench" / "programs" / "gpt_step.py"
MODES = ["noise", "off", "sdc", "trusted", "default", "full", "hash_tensor", "DebugMode"]
GOALS = {"small": {"default": 1.1, "full": 1.15, "sdc": 1.02}, "large": {"default": 1.04, "full": 1.08, "sdc": 1.02}}
WRAPPER_GOAL_US = 0.5


def instrumented_copy(build, python, work):
    """The program's text with a probe at every boundary, made as for any program."""
    tools = build / "src" / "cli"
    bare, probed = work / "bare", work / "probed"
    for tree in (bare, probed):
        tree.mkdir()
        (tree / PROGRAM.name).write_bytes(PROGRAM.read_bytes())
    plan = work / "plan.json"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    for command in (
        [tools / "opguard", "preflight", "-o", plan, "--", python, PROGRAM.name, "tiny"],
        [tools / "opguard-instrument", probed, "--plan", plan, "--apply"],
    ):
        done = subprocess.run([str(word) for word in command], cwd=bare, **quiet)
        if done.returncode != 0:
            sys.exit(f"{command[0]}: {done.stderr}")
    return probed / PROGRAM.name


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def once(step):
    wall, cpu = time.perf_counter(), time.process_time()
    step()
    return (time.perf_counter() - wall) * 1e3, (time.process_time() - cpu) * 1e3


class Bare:
    """While it lasts, nothing of opguard is installed: neither probes, nor torch's hooks."""

    def __init__(self, torch, probed, bare):
        self.torch, self.probed, self.bare = torch, probed, bare
        optim = sys.modules["torch.optim.optimizer"]
        self.tables = [optim._global_optimizer_pre_hooks, optim._global_optimizer_post_hooks]

    def __enter__(self):
        self.hooks = [dict(table) for table in self.tables]
        self.functions = {name: getattr(self.torch.autograd, name) for name in ("backward", "grad")}
        for table in self.tables:
            table.clear()
        for name, function in self.functions.items():
            setattr(self.torch.autograd, name, getattr(function, "__wrapped__", function))
        self.classes = {name: getattr(self.probed, name).forward for name in ("GPT", "Block", "Attention")}
        for name in self.classes:
            getattr(self.probed, name).forward = getattr(self.bare, name).forward

    def __exit__(self, *error):
        for table, hooks in zip(self.tables, self.hooks):
            table.update(hooks)
        for name, function in self.functions.items():
            setattr(self.torch.autograd, name, function)
        for name, forward in self.classes.items():
            getattr(self.probed, name).forward = forward


def peer(mode, torch, step):
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    def hash_of(t):
        t = t.detach()
        return torch.hash_tensor(t.view(torch.uint8) if t.dtype == torch.bool else t) if t.numel() else torch.zeros((), dtype=torch.uint64)

    class Hashing(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.hashes = []

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.hashes += [hash_of(t) for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
            result = function(*args, **(kwargs or {}))
            self.hashes += [hash_of(t) for t in tree_leaves(result) if isinstance(t, torch.Tensor)]
            return result

    def hashed():
        with Hashing() as hashing:
            step()
        torch.stack(hashing.hashes).tolist()

    def debugged():
        from torch.utils._debug_mode import DebugMode

        with DebugMode(), DebugMode.log_tensor_hashes(hash_fn="hash_tensor", hash_inputs=True):
            step()

    return hashed if mode == "hash_tensor" else debugged


def medians(pairs, clock):
    bare, probed = ([pair[side][clock] for pair in pairs] for side in (0, 1))
    ratios = sorted(p / b for b, p in zip(bare, probed))
    return {
        "x": round(statistics.median(ratios), 3),
        "quartiles": [round(ratios[len(ratios) // 4], 3), round(ratios[-1 - len(ratios) // 4], 3)],
        "min_x": round(min(probed) / min(bare), 3),
        "bare_ms": round(statistics.median(bare), 2),
        "probed_ms": round(statistics.median(probed), 2),
    }


def start(mode, package, log):
    sys.path.insert(0, str(package))
    from opguard.load import startup
    from opguard.record import recording

    os.environ.update(OPGUARD_LOG=str(log), OPGUARD_MODE=mode)
    startup.options = startup.read_environment(os.environ)
    recording.start(startup.options)


def of_mode(options):
    """In a process of its own."""
    import torch

    torch.set_num_threads(1)
    recording = options.one not in ("noise", "hash_tensor", "DebugMode")
    if recording:
        start(options.one, options.build / "python", options.work / "log")
    else:
        sys.path.insert(0, str(options.build / "python"))
    probed, bare = load(options.work / "probed" / PROGRAM.name, "gpt_probed"), load(options.work / "bare" / PROGRAM.name, "gpt_bare")
    state = probed.build(options.sizes)
    outside = Bare(torch, probed, bare)

    def bare_step():
        with outside:
            return once(lambda: bare.step(*state))

    def other():
        if options.one == "noise":
            return bare_step()
        if recording:
            return once(lambda: probed.step(*state))
        with outside:
            return once(peer(options.one, torch, lambda: bare.step(*state)))

    for _ in range(3):
        bare_step(), other()
    gc.collect()
    pairs = []
    for turn in range(options.steps):
        gc.collect()
        first, second = (bare_step, other) if turn % 2 == 0 else (other, bare_step)
        x, y = first(), second()
        pairs.append((x, y) if turn % 2 == 0 else (y, x))
    row = {"mode": options.one, "size": options.sizes, "steps": options.steps, "pairs": pairs}
    if recording and options.one != "off":
        from opguard.record import recording

        recording.close()
        files = list((options.work / "log").glob("*.log"))
        row["log_bytes_a_step"] = round(sum(f.stat().st_size for f in files) / (options.steps + 3))
    return row


def wrapper(options):
    """Microseconds that a probe adds to one operator."""
    import torch

    torch.set_num_threads(1)
    if options.wrapper != "off":
        start(options.wrapper, options.build / "python", options.work / "log")
    else:
        sys.path.insert(0, str(options.build / "python"))
    from opguard import og

    add, count = torch.add, 500
    a, b = torch.rand(4), torch.rand(4)

    def plain():
        for _ in range(count):
            add(a, b)

    def probed():
        for _ in range(count):
            og("add:aaaa", add)(a, b)

    def timed(loop):
        begin = time.thread_time()
        loop()
        return (time.thread_time() - begin) / count * 1e6

    with torch.no_grad():
        timed(plain), timed(probed)
        bare, all_of_it = (sorted(times) for times in zip(*[(timed(plain), timed(probed)) for _ in range(200)]))
    row = {"mode": options.wrapper, "bare_us": round(bare[0], 3)}
    for name, at in (("us", 0), ("tenth_us", 20), ("median_us", 100)):
        row[name] = round(all_of_it[at] - bare[at], 3)
    return row


def together(rows):
    """One row of a mode's processes: the medians of all their pairs, and each process's own."""
    pairs = [pair for row in rows for pair in row.pop("pairs")]
    row = {**rows[0], "processes": len(rows), "wall": medians(pairs, 0), "cpu": medians(pairs, 1)}
    if len(rows) > 1:
        size = len(pairs) // len(rows)
        row["each"] = [medians(pairs[at : at + size], 1)["x"] for at in range(0, len(pairs), size)]
    return row


def child(options, *words):
    done = subprocess.run(
        [options.python, __file__, "--build", options.build, "--steps", str(options.steps), *map(str, words)],
        capture_output=True, text=True, env=dict(os.environ, OMP_NUM_THREADS="1"),
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if not lines:
        sys.exit(f"{words}: {done.stderr[-2000:]}")
    return json.loads(lines[0][7:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has torch")
    parser.add_argument("--sizes", default="small,large")
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--wrapper", help=argparse.SUPPRESS)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.build = options.build.resolve()
    if options.one or options.wrapper:
        print("RESULT " + json.dumps(of_mode(options) if options.one else wrapper(options)))
        return 0
    failed, rows, wrappers = [], [], []
    with contextlib.ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        instrumented_copy(options.build, options.python, work)
        modes = options.modes.split(",")
        print(f"{'size':8}{'mode':13}{'bare ms':>9}{'ms':>9}{'cpu x':>8}{'quartiles':>16}{'wall x':>8}{'min x':>7}{'log KiB':>9}")
        for size in filter(None, options.sizes.split(",")):
            of_mode_rows = {mode: [] for mode in modes}
            for _ in range(options.processes):
                for mode in modes:
                    for log in (work / "log").glob("*"):
                        log.unlink()
                    of_mode_rows[mode].append(child(options, "--one", mode, "--sizes", size, "--work", work))
            for mode in modes:
                row = together(of_mode_rows[mode])
                rows.append(row)
                cpu, goal = row["cpu"], GOALS.get(size, {}).get(mode)
                late = goal is not None and cpu["x"] > goal
                failed += [f"{size} {mode}"] * late
                print(f"{size:8}{mode:13}{cpu['bare_ms']:9}{cpu['probed_ms']:9}{cpu['x']:8}{str(cpu['quartiles']):>16}{row['wall']['x']:8}"
                      f"{row['wall']['min_x']:7}{row.get('log_bytes_a_step', 0) / 1024:9.1f}{'  goal ' + str(goal) if goal else ''}{' MISSED' if late else ''}", flush=True)  # fmt: skip
        for mode in [m for m in modes if m in ("off", "sdc", "trusted", "default", "full")]:
            row = child(options, "--wrapper", mode, "--work", work)
            wrappers.append(row)
            late = row["us"] > WRAPPER_GOAL_US and mode in ("default", "full")
            failed += [f"wrapper {mode}"] * late
            print(f"wrapper {mode:13}{row['us']:8} us (10th percentile {row['tenth_us']}, median {row['median_us']}) beside {row['bare_us']} us"
                  f"{' MISSED' if late else ''}", flush=True)  # fmt: skip
    if options.json:
        options.json.write_text(json.dumps({"steps": rows, "wrapper": wrappers}, indent=1) + "\n")
    return 1 if failed and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
