"""How many boundaries are found again after a refactoring: our matcher and the usual ways, on the same trees.

  refactor.py PACKAGE [--opguard FILE] [--generator FILE] [--work DIR] [--sets tune,report] [--no-peers] [--json FILE]

PACKAGE: an unpacked package with modeling_*.py files (pip download --no-deps transformers, unzipped). The generator (refactor_bench.py of the
shared benchmarks) makes refactored trees with the true site of every call; it needs Python 3.12 and black, so this program runs under them too.
Model folders are split in two halves by a hash of their names: rules and weights are chosen on the sets `tune`, figures are those of `report`,
which has other files and other seeds. In the sets `removed` whole statements go too: their boundaries must not be bound to anything. In `live` the copies that
the generator puts under `if False` are in code that runs. Sets already in --work are used again. Exit code 0 if no site of any set was bound wrongly.
"""
import argparse
import ast
import contextlib
import hashlib
import importlib.util
import io
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# half, refactorings a file, files, seed, statements removed a file
SETS = {
    "tune-12": ("tune", 12, 60, 101, 0),
    "tune-40": ("tune", 40, 30, 102, 0),
    "tune-removed": ("tune", 12, 40, 103, 6),
    "report-12": ("report", 12, 120, 201, 0),
    "report-40": ("report", 40, 60, 202, 0),
    "report-removed": ("report", 12, 60, 203, 6),
    "report-live": ("report", 12, 60, 204, 0),
}


def half(path):
    """The half of the split that a model's folder is in."""
    return ("tune", "report")[hashlib.sha256(path.parent.name.encode()).digest()[0] & 1]


def load_generator(path):
    spec = importlib.util.spec_from_file_location("refactor_bench", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_set(generator, package, work, name):
    """Original and refactored trees and the truth in work/name."""
    which, operations, files, seed, removed = SETS[name]
    out = work / name
    if (out / "truth.json").exists():
        return out
    sources = work / f"half-{which}"
    if not sources.exists():
        for path in sorted(package.rglob("modeling_*.py")):
            if half(path) == which:
                copy = sources / path.relative_to(package)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)
    bench = load_generator(generator)
    if removed:
        # Any statement with calls may go, not only a logging call; what reads its result does not matter here.
        bench.OPS["drop"] = lambda src, rng, ctx: remove_statements(bench, src, rng, removed)
        bench.WEIGHT["drop"] = 4
    if name.endswith("live"):
        bench.OPS["decoy"] = lambda src, rng, ctx: live_copy(bench, src, rng)
    with contextlib.redirect_stdout(io.StringIO()):
        bench.gen(argparse.Namespace(pkg=sources, out=out, files="modeling_*.py", max_files=files, ops=operations, seed=seed, only="",
                                     verbose=False))  # fmt: skip
    return out


def live_copy(bench, src, rng):
    """The generator's hard negative, a copy of a statement in a block of its own, in code that runs: it copies under `if False`."""
    found = [s for s in bench.body_stmts(src) if isinstance(s, (ast.Assign, ast.Expr)) and isinstance(s.value, ast.Call) and b"\n" not in src.text(s)]
    statement = rng.choice(found)
    indent = src.own_line(statement)
    copy = indent + b"if __name__:\n" + indent + b"    " + src.text(statement) + b"\n"
    at = src.line0(statement) if rng.random() < 0.5 else src.line1(statement)
    return bench.splice(src.buf, [(at, at, copy)])


def remove_statements(bench, src, rng, count):
    """The source with some simple statements that hold calls replaced by `pass`."""
    simple = (ast.Assign, ast.AugAssign, ast.Expr, ast.Return)
    found = [s for s in bench.body_stmts(src) if isinstance(s, simple) and any(isinstance(n, ast.Call) for n in ast.walk(s))]
    gone = rng.sample(found, min(count, len(found)))
    return bench.splice(src.buf, [(src.s(s), src.e(s), b"pass") for s in gone])


def match(opguard, out):
    """Site id -> [file, start, end] or None, as the generator scores it; and each boundary's answer by site id."""
    plan, answer = out / "plan.json", out / "match.json"
    subprocess.run([opguard, "plan", "--static", out / "orig", "--all-calls", "-o", plan], check=True, capture_output=True)
    done = subprocess.run([opguard, "match", "--plan", plan, out / "mut", "--json", answer], capture_output=True, text=True)
    if done.returncode > 1:
        raise RuntimeError(done.stderr)
    boundaries = {b["id"]: b for b in json.loads(plan.read_text())["boundaries"]}
    answers = {}
    for said in json.loads(answer.read_text())["boundaries"]:
        boundary = boundaries[said["boundary"]]
        answers[boundary["file"], boundary["start"], boundary["end"]] = said
    predicted = {}
    for site in json.loads((out / "truth.json").read_text())["sites"]:
        said = answers.get((site["file"], *site["span"]))
        at = said and said["site"]
        predicted[site["id"]] = [at["file"], at["start"], at["end"]] if at else None
    return predicted, answers


def count(sites, predicted):
    """Figures of one subset of the sites."""
    real = sum(s["new"] is not None for s in sites)
    bound = [s for s in sites if predicted.get(s["id"]) is not None]
    right = sum(predicted[s["id"]] == s["new"] for s in bound)
    gone = [s for s in sites if s["new"] is None]
    return {"sites": len(sites), "recall": right / max(real, 1), "precision": right / max(len(bound), 1), "wrong": len(bound) - right,
            "removed": len(gone), "removed_not_bound": sum(predicted.get(s["id"]) is None for s in gone)}  # fmt: skip


def run_peers(bench, out):
    """The generator's reference matchers on the same trees: name -> figures of operator sites."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        bench.base(argparse.Namespace(out=out))
    pattern = r"(?m)^(.*?)\s+ops n\s+(\d+) accuracy \S+ precision (\S+) recall (\S+) wrong (\d+)"
    return {name: {"sites": int(n), "recall": float(r), "precision": float(p), "wrong": int(w)}
            for name, n, p, r, w in re.findall(pattern, text.getvalue())}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", type=Path)
    parser.add_argument("--opguard", type=Path, default=ROOT / "build" / "release" / "src" / "cli" / "opguard")
    parser.add_argument("--generator", type=Path, default=ROOT.parent / "shared" / "bench" / "refactor_bench.py")
    parser.add_argument("--work", type=Path, help="keep the trees here, and use those that are here")
    parser.add_argument("--sets", default="report", help="tune, report, or names of " + ", ".join(SETS))
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    wanted = options.sets.split(",")
    names = [name for name in SETS if name in wanted or SETS[name][0] in wanted]
    bench = load_generator(options.generator)
    report = {"split": "sha256 of the model folder's name, first byte even: tune, odd: report", "sets": []}
    with tempfile.TemporaryDirectory() as scratch:
        work = options.work or Path(scratch)
        for name in names:
            which, operations, files, seed, removed = SETS[name]
            out = make_set(options.generator, options.package, work, name)
            predicted, _ = match(options.opguard.resolve(), out)
            sites = json.loads((out / "truth.json").read_text())["sites"]
            row = {"set": name, "half": which, "refactorings": operations, "removed_statements": removed, "seed": seed, "files": len({s["file"] for s in sites}),
                   "operators": count([s for s in sites if s["op"]], predicted), "calls": count(sites, predicted),
                   "peers": {} if options.no_peers else run_peers(bench, out)}  # fmt: skip
            report["sets"].append(row)
            print(f"{name}: {row['files']} files of the {which} half, {operations} refactorings each, {removed} statements removed, seed {seed}")
            for label, figures in (("opguard, all calls", row["calls"]), ("opguard", row["operators"]), *row["peers"].items()):
                removed = f"  removed and not bound {figures['removed_not_bound']}/{figures['removed']}" if "removed" in figures else ""
                print(f"  {label:18} n {figures['sites']:6} recall {figures['recall']:.4f} precision {figures['precision']:.4f} "
                      f"wrong {figures['wrong']}{removed}", flush=True)  # fmt: skip
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    return 1 if any(row["calls"]["wrong"] for row in report["sets"]) else 0


if __name__ == "__main__":
    sys.exit(main())
