"""How well `opguard` pairs two logs whose operator sequences differ, beside what other tools' matchers make of the same edits.

  align.py [--opguard FILE] [--writer FILE] [--peers DIR] [--size small] [--seeds 10] [--inserted own|source] [--only ROW]... [--work DIR] [--json FILE]

The operators are those of one real training step (AdamW, a small GPT) under torch's DebugMode, traced and edited by DIR/peers_align.py itself (same
seeds, same edits, known truth: an operator inserted, deleted, moved); its matchers run on the same lists in the same process. Each side is written as
a log with the runtime's own writer (bench/logs_from_json.cc) and paired by `opguard dump LOG_A LOG_B`. Exit code 0 if every row keeps its goal.

What the two logs hold, all of it measured on the real step or a function of it:
- boundary: module path + ATen operator, nothing else. An inserted copy has the boundary of its source; 80 `view`s of backward share one.
- phase (forward, backward, optimizer); step 0, micro-batch 0; occurrence, counted in each log by itself, as the runtime counts.
- per tensor argument and result: dtype, shape, version counter, size, and a fingerprint of its real bytes (BLAKE2b: a digest of bytes, shape and
  element size, and one of the bytes alone; zero for zeros, as og1). Arguments written in place have a second slot, read after the operator.
- number of the memory block, counted in each log from 1 by first appearance; addresses from another base in each log.
- non-tensor arguments and results as text.
- start and end: the real ones in A; in B, the operators in their edited order, each with its duration times 0.7 to 1.4.
Values differ from the pivot on, as `peers_align.py` has it: in B every value that the pivot or an operator after it (in the traced order) left is
another one, both where it is returned or written and where it is read later; equal values stay equal to each other. So no fingerprint of those is in
both logs. What an earlier operator left is equal in both, also where a later operator reads it. Results that are Python numbers differ likewise.
An inserted operator reads and leaves values and memory that nothing else in the log has (`--inserted own`), or reads what its source reads and
leaves what nothing else has (`--inserted source`).
A moved operator takes its values along, even in front of those that made them.
"""
import argparse
import bisect
import hashlib
import importlib.util
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KIND_IN, KIND_OUT, KIND_WRITTEN = range(3)
FORWARD, _, BACKWARD, OPTIMIZER = range(4)
INSERTED = 10 ** 6  # ids from here on are inserted operators' (peers_align.edit)
# name: (edits, least found %, most wrong %, pivots)
ROWS = {
    "identical": ({}, 100, 0),
    "1 inserted op": ({"one": 5}, 100, 0),
    "1% ins + 1% del": ({"ins": .01, "dele": .01}, 100, 0),
    "2% moved <8": ({"swap": .02}, 100, 0),
    "1% ins/del + 2% moved": ({"ins": .01, "dele": .01, "swap": .02}, 99, .1),
    "5% ins/del + 5% moved": ({"ins": .05, "dele": .05, "swap": .05}, 95, 1),
}


def load(path):
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def number(*parts):
    """64 bits that depend on all parts."""
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=8).digest(), "little")


class Tracer:
    """Hooks of DebugMode that keep what a probe would read of every operator."""

    def __init__(self):
        self.open, self.alive, self.makers, self.writers, self.count = [], [], {}, {}, 0

    def slot(self, tensor, kind, index, name):
        import torch

        self.alive.append(tensor.untyped_storage())  # so that no memory block is used twice
        plain = tensor.detach()
        data = plain.contiguous().view(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
        storage = tensor.untyped_storage().data_ptr()
        strides = tuple(tensor.stride())
        span = (1 + sum((n - 1) * s for n, s in zip(tensor.shape, strides))) * tensor.element_size() if tensor.numel() else 0
        shape, dtype = tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")
        flat = h = m = 0
        if any(data):
            flat, h, m = (number(what, hashlib.blake2b(data).digest()) for what in ("flat", ("h", shape), ("m", shape)))
        view = storage, tensor.storage_offset(), shape, strides
        return {"kind": kind, "index": index, "name": name, "dtype": dtype, "shape": shape, "version": tensor._version, "block": storage,
                "offset": tensor.storage_offset() * tensor.element_size(), "size": span, "value": (h, m, flat), "view": view}

    def before(self, func, types, args, kwargs, call):
        import torch

        slots, scalars = [], []

        def visit(value, name):
            if isinstance(value, torch.Tensor):
                slot = self.slot(value, KIND_IN, len(slots), name)
                # Who left these bytes: the last that returned just this view, or wrote into the block.
                slot["maker"] = max(self.makers.get(slot["view"], -1), self.writers.get(slot["block"], -1))
                slots.append(slot)
            elif isinstance(value, (list, tuple)) and any(isinstance(v, torch.Tensor) for v in value):
                for i, v in enumerate(value):
                    visit(v, f"{name}[{i}]")
            else:
                scalars.append(f"{name}={value!r}")

        for i, value in enumerate(args):
            visit(value, f"arg{i}")
        for name, value in kwargs.items():
            visit(value, name)
        backward = torch._C._current_graph_task_id() != -1
        self.open.append((slots, ", ".join(scalars), backward, time.monotonic_ns()))

    def after(self, func, types, args, kwargs, result):
        import torch

        end = time.monotonic_ns()
        slots, scalars, backward, start = self.open.pop()
        uid, results, outs = self.count, [], 0
        self.count += 1
        for i, value in enumerate(result if isinstance(result, (list, tuple)) else [result]):
            if isinstance(value, torch.Tensor):
                slots.append(self.slot(value, KIND_OUT, outs, f"out{i}"))
                outs += 1
            elif value is not None:
                results.append(value)
        written = 0
        for argument, value in [*zip(func._schema.arguments, args), *((a, kwargs[a.name]) for a in func._schema.arguments if a.name in kwargs)]:
            if argument.alias_info is None or not argument.alias_info.is_write:
                continue
            for tensor in value if isinstance(value, (list, tuple)) else [value]:
                slots.append(self.slot(tensor, KIND_WRITTEN, written, argument.name))
                self.writers[slots[-1]["block"]] = uid
                written += 1
        for slot in slots:
            if slot["kind"] != KIND_IN:
                slot["maker"] = uid
                self.makers[slot["view"]] = uid
        return {"opguard": {"name": str(func), "call": uid, "slots": slots, "scalars": scalars, "results": results, "backward": backward, "times": (start, end)}}


def trace(peers, size):
    """The operators of peers_align.trace and, by their ids, what a probe would have read of each."""
    import torch
    from torch.utils._debug_mode import DebugMode

    torch.set_num_threads(1)
    _, step = peers.build(size)
    step()
    tracer = Tracer()
    with DebugMode(record_nn_module=True) as mode, DebugMode.dispatch_hooks(record_hook=tracer.after, pre_log_hook=tracer.before):
        step()
    probed = [call.record["opguard"] for call in mode.logs if type(call).__name__ == "_OpCall"]
    # Hooks also see calls that DebugMode does not list: what these left counts as left by the operator before them.
    calls = [read["call"] for read in probed]
    for read in probed:
        for slot in read["slots"]:
            slot["maker"] = bisect.bisect_right(calls, slot["maker"]) - 1
    return probed


class Side:
    """One log: the operators of `ops` in that order."""

    def __init__(self, name, ops, probed, pivot, inserted):
        self.strings, self.metas, self.blocks, self.events = {}, {}, {}, []
        self.name, self.counts, self.rng = name, {}, random.Random(name)
        self.base = self.rng.randrange(1 << 30, 1 << 46) & ~63
        clock = 10 ** 9
        for op in ops:
            read = probed[op.uid if op.uid < INSERTED else self.source(op)]
            start, end = read["times"]
            if name == "b":
                start, end = clock, clock + int((end - start) * self.rng.uniform(.7, 1.4))
                clock = end + self.rng.randrange(200, 2000)
            phase = OPTIMIZER if op.mod.startswith("Optimizer") else BACKWARD if read["backward"] else FORWARD
            boundary = f"{op.mod}/{op.name}"
            occurrence = self.counts[boundary, phase] = self.counts.get((boundary, phase), -1) + 1
            slots = [self.slot(slot, op.uid, pivot, inserted) for slot in read["slots"]]
            differs = op.uid >= INSERTED or name == "b" and op.uid >= pivot
            results = ", ".join(repr(number(op.uid, v) / 2 ** 40 if differs else v) for v in read["results"])
            self.events.append([self.text(boundary), 0, phase, 0, 0, occurrence, self.text(read["scalars"]), self.text(results), start, end, slots])

    def source(self, op):
        """What an inserted operator is a copy of (peers_align.edit replaces the id, the signature is the very object)."""
        return next(uid for uid, other in enumerate(self.original) if other.sig is op.sig)

    original = []  # the traced operators

    def text(self, text):
        return self.strings.setdefault(text, len(self.strings)) if text else None

    def slot(self, slot, uid, pivot, inserted):
        salt = None
        if uid >= INSERTED and not (inserted == "source" and slot["kind"] == KIND_IN):
            salt = uid
        elif self.name == "b" and slot["maker"] >= pivot:
            salt = "b"
        h, m, flat = slot["value"] if salt is None else (number(salt, v) for v in slot["value"])
        block = slot["block"], salt if salt != "b" else None
        place = self.blocks.setdefault(block, len(self.blocks) + 1)
        meta = self.metas.setdefault((slot["dtype"], "cpu", slot["shape"]), len(self.metas))
        return [slot["kind"], slot["index"], self.text(slot["name"]), meta, 0, slot["version"], place, h, m, flat,
                self.base + (place << 24) + slot["offset"], slot["size"]]

    def write(self, writer, folder):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        content = {"rank": 0, "world": 1, "strings": list(self.strings), "metas": list(self.metas), "events": self.events}
        (folder / "ops.json").write_text(json.dumps(content))
        subprocess.run([writer, folder / "ops.json", folder], check=True)


def pairs_of(opguard, a, b):
    """[(index in a, index in b, equal)] in the order of a, and the milliseconds that the whole command took."""
    start = time.perf_counter()
    result = subprocess.run([opguard, "dump", a, b], capture_output=True, text=True, check=True)
    ms = 1e3 * (time.perf_counter() - start)
    lines = [line.split() for line in result.stdout.splitlines() if line.startswith("= ")]
    return [(int(line[1]), int(line[2]), "equal" in line[4:]) for line in lines], ms


def score(a, b, pairs, common, pivot, equal):
    """As peers_align.main: found, wrong, whether the first mismatch is the pivot, mismatches before it."""
    bad = {i for i, op in enumerate(a) if op.uid >= pivot}
    good = sum(a[i].uid == b[j].uid for i, j in pairs)
    mismatches = [(i, j) for i, j in sorted(pairs) if not equal(i, j)]
    first = mismatches[0] if mismatches else None
    return {"found": 100 * good / len(common), "wrong": 100 * (len(pairs) - good) / max(1, len(pairs)),
            "pivot": bool(first) and a[first[0]].uid == pivot == b[first[1]].uid, "false": sum(i not in bad for i, _ in mismatches)}


def mean(rows, key):
    return sum(row[key] for row in rows) / len(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--opguard", type=Path, default=ROOT / "build/dev/src/cli/opguard")
    parser.add_argument("--writer", type=Path, default=ROOT / "build/dev/bench/logs_from_json")
    parser.add_argument("--peers", type=Path, default=ROOT.parent.parent / "shared/bench", help="the folder of peers_align.py")
    parser.add_argument("--size", default="small")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--inserted", choices=("own", "source"), default="own")
    parser.add_argument("--only", action="append", help="a row by its name; repeatable")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--work", type=Path, help="keep the logs here")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    peers = load(options.peers / "peers_align.py")
    a, probed = peers.trace(options.size), trace(peers, options.size)
    assert [op.name for op in a] == [p["name"] for p in probed]  # the hooks changed nothing
    Side.original = a
    matchers = {} if options.no_peers else {"strict": peers.strict, "count key": peers.countkey, "queue (-fm)": peers.queue, "lcs (difflib)": peers.lcs}
    rows, kept = [], True
    with tempfile.TemporaryDirectory() as scratch:
        work = options.work or Path(scratch)
        print(f"{len(a)} operators, {sum(len(p['slots']) for p in probed)} records; {options.seeds} seeds; true pairs found, wrong pairs of those given, "
              "first mismatch is the true pivot, mismatches before it, time (opguard: of the whole command)")
        for name, (edits, least, most) in ROWS.items():
            if options.only and name not in options.only:
                continue
            edits = {k: len(a) // 5 if k == "one" else v for k, v in edits.items()}
            results = {"opguard": [], **{m: [] for m in matchers}}
            refused = dict.fromkeys(matchers, 0)
            for seed in range(options.seeds):
                b = peers.edit(a, random.Random(seed), **edits)
                in_b = {op.uid for op in b}
                common = [op.uid for op in a if op.uid in in_b]
                pivot = common[len(common) // 2]
                folder = work / name.replace(" ", "_").replace("/", "-").replace("%", "") / str(seed)
                for side, ops in (("a", a), ("b", b)):
                    Side(side, ops, probed, pivot, options.inserted).write(options.writer, folder / side)
                given, ms = pairs_of(options.opguard, folder / "a", folder / "b")
                equal = {(i, j) for i, j, same in given if same}
                one = score(a, b, [(i, j) for i, j, _ in given], common, pivot, lambda i, j: (i, j) in equal)
                results["opguard"].append({"seed": seed, **one, "ms": ms})
                for matcher, match in matchers.items():
                    start = time.perf_counter()
                    given = match(a, b)
                    ms = 1e3 * (time.perf_counter() - start)
                    if given is None:
                        refused[matcher] += 1
                        continue
                    one = score(a, b, given, common, pivot, lambda i, j: a[i].uid == b[j].uid and a[i].uid < pivot)
                    results[matcher].append({"seed": seed, **one, "ms": ms})
            for matcher, runs in results.items():
                row = {"row": name, "matcher": matcher, "seeds": options.seeds, "refused": refused.get(matcher, 0)}
                if runs:
                    row |= {key: mean(runs, key) for key in ("found", "wrong", "false", "ms")} | {"pivots": sum(r["pivot"] for r in runs), "runs": runs}
                    text = (f"found {row['found']:6.2f}%  wrong {row['wrong']:6.2f}%  pivot {row['pivots']}/{len(runs)}  "
                            f"false {row['false']:6.1f}  {row['ms']:7.1f} ms")
                else:
                    text = f"refused {row['refused']}/{options.seeds}"
                if matcher == "opguard":
                    row["kept"] = row["found"] >= least and row["wrong"] <= most and (least < 100 or row["pivots"] == options.seeds)
                    kept &= row["kept"]
                    text += f"   goal {least}% / {most}% {'kept' if row['kept'] else 'MISSED'}"
                rows.append(row)
                print(f"{name:24}{matcher:15}{text}", flush=True)
    if options.json:
        options.json.write_text(json.dumps({"operators": len(a), "inserted": options.inserted, "rows": rows}, indent=1) + "\n")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
