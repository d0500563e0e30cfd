"""Soundness of `opguard prove`: correct plans with one statement changed at random; whatever is proved is run in float64 and compared.

    bench/prove_mutations.py [--number N] [--seed N] [--jobs N] [--json FILE] [--table DOCUMENT]

A mutation deletes a statement, changes a number, swaps two arguments, swaps + and -, or * and /, changes a dimension's sign, a group or a reduction. Of each
plan that is still `proved` all ranks run with gloo, from the model's random parameters, and every output is compared with the model's. A proof whose numbers
differ by more than 1e-6 is wrong; there must be none. With --table nothing runs.
"""

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLANS = ("tp", "tpsp", "dp", "cp", "pp")

NUMERIC = r"""
import sys, os, importlib.util, torch, torch.distributed as dist
import torch.multiprocessing as mp
sys.dont_write_bytecode = True
def load(path):
    sys.path.insert(0, os.path.dirname(path))
    spec = importlib.util.spec_from_file_location("the_plan", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
def held(t):
    t = t.detach()
    return t.to_local() if hasattr(t, "to_local") else t
def run(rank, path, world, port, queue):
    try:
        torch.set_num_threads(1)
        torch.set_default_dtype(torch.float64)
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        module = load(path)
        d = dict(module.DIMS)
        torch.manual_seed(1)
        model = module.logical(d)
        g = torch.Generator().manual_seed(7)
        with torch.no_grad():
            for t in model["state"].values():
                t.copy_(torch.randn(t.shape, generator=g) * 0.5)
            for t in model["tokens"].values():
                t.copy_(torch.randint(0, d["vocab"], t.shape, generator=g))
        full = {n: t.detach().clone() for n, t in {**model["state"], **model["tokens"]}.items()}
        want = {n: held(t).clone() for n, t in model["step"]().items() if t is not None}
        import datetime
        dist.init_process_group("gloo", rank=rank, world_size=world, timeout=datetime.timedelta(seconds=40))
        torch.manual_seed(2)
        plan = module.plan(rank, d)
        with torch.no_grad():
            for n, t in {**plan["state"], **plan["tokens"]}.items():
                held(t).copy_(plan["place"](n, full[n]))
        found = {n: held(t).clone() for n, t in plan["step"]().items() if t is not None}
        worst, where = 0.0, ""
        for n, t in found.items():
            if n not in want:
                continue
            w = want[n]
            base = n.split(":", 1)[-1]
            if base != n and base in full and base in plan["state"]:
                w = plan["place"](base, w)
            if w.shape != t.shape:
                queue.put((float("inf"), n + ": another shape")); return
            error = float(((w - t).abs() / (w.abs().clamp(min=1e-3) + t.abs())).max()) if t.numel() else 0.0
            if not error <= worst:
                worst, where = error, n
        queue.put((worst, where))
    except BaseException as e:
        queue.put((float("inf"), "%s: %s" % (type(e).__name__, str(e)[:200])))
if __name__ == "__main__":
    path, port = sys.argv[1:]
    world = load(path).WORLD
    context = mp.get_context("spawn")
    queue = context.Queue()
    ranks = [context.Process(target=run, args=(r, path, world, int(port), queue)) for r in range(world)]
    for p in ranks: p.start()
    answers = [queue.get(timeout=100) for _ in ranks]
    for p in ranks: p.join(5)
    print("%r\t%s" % max(answers))
"""


class Mutation(ast.NodeTransformer):
    """Changes the n-th place where it can."""

    def __init__(self, at):
        self.at, self.seen, self.done = at, -1, ""

    def here(self):
        self.seen += 1
        return self.seen == self.at

    def visit_Expr(self, node):
        if isinstance(node.value, ast.Call) and self.here():
            self.done = f"line {node.lineno}: deleted {ast.unparse(node)[:60]}"
            return ast.copy_location(ast.Pass(), node)
        return self.generic_visit(node)

    def visit_AugAssign(self, node):
        if self.here():
            self.done = f"line {node.lineno}: deleted {ast.unparse(node)[:60]}"
            return ast.copy_location(ast.Pass(), node)
        return self.generic_visit(node)

    def visit_Constant(self, node):
        if type(node.value) in (int, float) and self.here():
            new = {0: 1, 1: 0, -1: 0}.get(node.value, node.value * 2)
            self.done = f"line {node.lineno}: {node.value} is {new}"
            return ast.copy_location(ast.Constant(new), node)
        return node

    def visit_BinOp(self, node):
        swapped = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}.get(type(node.op))
        if swapped and self.here():
            before = ast.unparse(node)[:40]
            new = ast.copy_location(ast.BinOp(node.left, swapped(), node.right), node)
            self.done = f"line {node.lineno}: {before} is {ast.unparse(new)[:40]}"
            return new
        return self.generic_visit(node)

    def visit_keyword(self, node):
        if node.arg == "group" and self.here():
            self.done = f"line {node.lineno}: all ranks in place of {ast.unparse(node.value)}"
            return None
        return self.generic_visit(node)

    def visit_Attribute(self, node):
        other = {"tpg": "dpg", "dpg": "tpg", "t": "r", "r": "t", "tp": "dp", "dp": "tp", "MAX": "SUM", "all_reduce": None}.get(node.attr)
        if other and isinstance(node.ctx, ast.Load) and self.here():
            self.done = f"line {node.lineno}: {ast.unparse(node)} is .{other}"
            return ast.copy_location(ast.Attribute(node.value, other, node.ctx), node)
        return self.generic_visit(node)


def mutated(source, chance):
    """(source, what was done) of a random place."""
    counter = Mutation(-1)
    counter.visit(ast.parse(source))
    mutation = Mutation(chance.randrange(counter.seen + 1))
    tree = ast.fix_missing_locations(mutation.visit(ast.parse(source)))
    return ast.unparse(tree), mutation.done


def judged(o, n, plan, source, done, port):
    """What opguard says of one mutation, and whether the numbers agree where it is proved."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        shutil.copy(o.cases / "llama.py", folder / "llama.py")
        (folder / "numeric.py").write_text(NUMERIC)
        path = folder / "plan.py"
        path.write_text(source)
        try:
            ran = subprocess.run([o.opguard, "prove", path, "--python", o.python, "--json", folder / "result.json"], capture_output=True, text=True, timeout=300)
            verdict = {0: "proved", 1: "refuted", 2: "unknown", 3: "bad_input"}.get(ran.returncode, "crashed")
        except subprocess.TimeoutExpired:
            verdict = "timeout"
        result = {"plan": plan, "mutation": done, "verdict": verdict}
        if verdict == "unknown":
            result["why"] = ran.stdout.split("\n")[0][:200]
        if verdict == "proved":
            numbers = subprocess.run([o.python, folder / "numeric.py", path, str(port)], capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
            worst, _, where = numbers.stdout.strip().rpartition("\n")[2].partition("\t")
            result.update(worst=float(worst) if worst else float("inf"), where=where or numbers.stderr[-200:])
            result["wrong"] = not result["worst"] <= 1e-6
            if result["wrong"] and o.json:
                (o.json.parent / f"wrong_{n}.py").write_text(source)
    if verdict not in ("refuted", "bad_input"):
        print(n, result, flush=True)
    return result


def keep(o, results, seconds):
    """The summary of what was judged so far; with --json it is written down."""
    count = {v: sum(r["verdict"] == v for r in results) for v in ("proved", "refuted", "unknown", "bad_input", "crashed", "timeout")}
    summary = {"number": len(results), "seed": o.seed, **count, "wrong": sum(r.get("wrong", False) for r in results), "seconds": round(seconds)}
    if o.json:
        finite = [{k: (v if v != float("inf") else None) for k, v in r.items()} for r in results]
        o.json.write_text(json.dumps({"summary": summary, "results": finite}, indent=1) + "\n")
    return summary


def table(kept):
    s = kept["summary"]
    return "| plans with one change | proved | of these wrong | refuted | unknown | not to be captured |\n|---|---|---|---|---|---|\n| %(number)d | %(proved)d | %(wrong)d | %(refuted)d | %(unknown)d | %(bad_input)d |" % s


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time")
    parser.add_argument("--cases", type=Path, default=ROOT.parent / "shared" / "cases" / "prove")
    parser.add_argument("--opguard", type=Path, default=ROOT / "build" / "release" / "src" / "cli" / "opguard")
    parser.add_argument("--python", type=Path, default=ROOT / ".venv" / "bin" / "python")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--table", type=Path, metavar="DOCUMENT")
    o = parser.parse_args()
    if o.table:
        from marks import put

        put(o.table, "prove_mutations", table(json.loads(o.json.read_text())))
        return 0
    if not o.cases.is_dir():
        print(f"skipped: no {o.cases}")
        return 77
    chance, drawn = random.Random(o.seed), []
    for n in range(o.number):
        plan = chance.choice(PLANS)
        drawn.append((n, plan, *mutated((o.cases / (plan + ".py")).read_text(), chance), 20000 + chance.randrange(20000)))
    begin = time.monotonic()
    results = []
    with ThreadPoolExecutor(o.jobs) as pool:
        for result in pool.map(lambda one: judged(o, *one), drawn):
            results.append(result)
            # Each tenth, all so far are kept: a run that is stopped has measured what it has measured.
            if len(results) % 10 == 0 or len(results) == o.number:
                summary = keep(o, results, time.monotonic() - begin)
    print(summary)
    return 1 if summary["wrong"] or summary["crashed"] else 0


if __name__ == "__main__":
    sys.exit(main())
