"""How many boundaries are found again after a refactoring: our matcher and the usual ways, on the same trees.

  refactor.py PACKAGE [PACKAGE ...] [--whole] [--opguard FILE] [--generator FILE] [--work DIR] [--sets tune,report,names] [--seed N]
              [--files N] [--no-peers] [--json FILE]
  refactor.py --table KEY FILE --json FILE [FILE ...]     puts results into a document between its marks; runs nothing

PACKAGE: an unpacked package (pip download --no-deps transformers, unzipped). The generator (refactor_bench.py of the shared benchmarks) makes
refactored trees with the true site of every call; it needs Python 3.12 and black, so this program runs under them too.

Sets `tune` and `report` are of files modeling_*.py: model folders are split in two halves by a hash of their names, rules and weights are chosen
on the sets `tune`, figures are those of `report`, which has other files and other seeds. In the sets `removed` whole statements go too: their
boundaries must not be bound to anything. In `live` the copies that the generator puts under `if False` are in code that runs. Sets `names` are of
any package's files: refactorings of bench/refactorings.py, in which a name stays and what it stood for goes, or the other way round.

--whole: the refactored files lie in their whole package, and the plan is of these files only (`opguard plan --only`), as a preflight's is of what
ran. --blind: as --whole, but the plan was made where nothing else was. Sets already in --work are used again. Exit code 0 if no site of any set
was bound wrongly.
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
from dataclasses import dataclass, field
from pathlib import Path

import marks
import refactorings

ROOT = Path(__file__).resolve().parents[1]
FEW = ["log", "rename_local", "kwargs", "split"]  # edits that go on around the refactoring in question


@dataclass
class Set:
    group: str  # tune, report: a half of the models; names: any file of the package
    operations: int  # refactorings a file
    files: int
    seed: int
    removed: int = 0  # statements removed a file
    kinds: list = field(default_factory=list)  # refactorings; none: the generator's own
    drop: str = ""  # what stands for the generator's `drop`, the one refactoring that may lose calls


SETS = {
    "tune-12": Set("tune", 12, 60, 101),
    "tune-40": Set("tune", 40, 30, 102),
    "tune-removed": Set("tune", 12, 40, 103, removed=6),
    "report-12": Set("report", 12, 120, 201),
    "report-40": Set("report", 40, 60, 202),
    "report-removed": Set("report", 12, 60, 203, removed=6),
    "report-live": Set("report", 12, 60, 204),
    "usual": Set("names", 12, 60, 301),
    "hard": Set("names", 40, 20, 302),
    "removed": Set("names", 12, 40, 303, removed=6),
    "wrappers": Set("names", 6, 40, 304, kinds=["wrapper"] * 3 + FEW),
    "swaps": Set("names", 3, 40, 305, kinds=["swap"] * 3 + FEW),
    "fused": Set("names", 4, 40, 306, kinds=["drop"] * 3 + FEW, drop="fuse"),
    "copies": Set("names", 6, 40, 307, kinds=["copy_above"] * 2 + FEW),
    "mixins": Set("names", 4, 40, 308, kinds=["mixin"] * 3 + FEW),
    "rebranded": Set("names", 1, 40, 309, kinds=["rebrand"]),
}


def half(path):
    """The half of the split that a model's folder is in."""
    return ("tune", "report")[hashlib.sha256(path.parent.name.encode()).digest()[0] & 1]


def load_generator(path):
    spec = importlib.util.spec_from_file_location("refactor_bench", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sources_of(package, group, work):
    """The files that a group of sets may refactor, copied from the package; once for all of its sets."""
    sources = work / f"sources-{group}"
    if sources.exists():
        return sources
    for path in sorted(package.rglob("modeling_*.py" if group != "names" else "*.py")):
        if half(path) == group if group != "names" else path.read_bytes().count(b"(") > 60:
            copy = sources / path.relative_to(package)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    return sources


def make_set(generator, package, work, name, options):
    """Original and refactored trees and the truth in work/name; with --whole the package's other files too."""
    this = SETS[name]
    out = work / name
    if (out / "truth.json").exists():
        return out
    bench = load_generator(generator)
    bench.OPS.update(wrapper=refactorings.make_wrapper(bench), swap=refactorings.make_swap(bench), copy_above=refactorings.make_copy(bench),
                     mixin=refactorings.make_mixin(bench), rebrand=refactorings.make_rebrand(bench))  # fmt: skip
    if this.removed:
        # Any statement with calls may go, not only a logging call; what reads its result does not matter here.
        bench.OPS["drop"] = lambda src, rng, ctx: remove_statements(bench, src, rng, this.removed)
        bench.WEIGHT["drop"] = 4
    if this.drop == "fuse":
        bench.OPS["drop"] = refactorings.make_fuse(bench)
        bench.WEIGHT["drop"] = 20
    if name.endswith("live"):
        bench.OPS["decoy"] = lambda src, rng, ctx: live_copy(bench, src, rng)
    usual = [kind for kind in bench.OPS if kind not in ("wrapper", "swap", "copy_above", "mixin", "rebrand")]
    with contextlib.redirect_stdout(io.StringIO()):
        bench.gen(argparse.Namespace(pkg=sources_of(package, this.group, work), out=out, files="*.py", max_files=options.files or this.files,
                                     ops=this.operations, seed=this.seed + options.seed, only=",".join(this.kinds or usual), verbose=False))  # fmt: skip
    if "rebrand" in this.kinds:
        rename_files(out)
    if options.whole or options.blind:
        put_into_package(out, package, blind=options.blind)
    return out


def rename_files(out):
    """Gives every file of the refactored tree another name, and the truth with it."""
    truth = json.loads((out / "truth.json").read_text())
    for name in sorted({site["new"][0] for site in truth["sites"] if site["new"]}):
        old = Path(name)
        new = old.with_name(old.stem.replace(old.parent.name, "quasar") + ".py" if old.parent.name and old.parent.name in old.stem else f"quasar_{old.name}")
        (out / "mut" / old).rename(out / "mut" / new)
        for site in truth["sites"]:
            if site["new"] and site["new"][0] == name:
                site["new"][0] = str(new)
    (out / "truth.json").write_text(json.dumps(truth))


def put_into_package(out, package, blind):
    """The package's other files, as they are, into the refactored tree and, unless the plan is to be blind, into the original."""
    planned = {str(path.relative_to(out / "orig")) for path in (out / "orig").rglob("*.py")}
    for tree in ("mut",) if blind else ("mut", "orig"):
        for path in package.rglob("*.py"):
            name = str(path.relative_to(package))
            to = out / tree / name
            if name not in planned and not to.exists():
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, to)


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


def match(opguard, out, whole):
    """Site id -> [file, start, end] or None, as the generator scores it; and each boundary's answer by site id."""
    plan, answer = out / "plan.json", out / "match.json"
    truth = json.loads((out / "truth.json").read_text())["sites"]
    only = [word for name in sorted({site["file"] for site in truth}) for word in ("--only", name)] if whole else []
    done = subprocess.run([opguard, "plan", "--static", out / "orig", "--all-calls", *only, "-o", plan], capture_output=True, text=True)
    if done.returncode == 0:
        done = subprocess.run([opguard, "match", "--plan", plan, out / "mut", "--json", answer], capture_output=True, text=True)
    if done.returncode > 1:
        raise RuntimeError(done.stderr)
    boundaries = {b["id"]: b for b in json.loads(plan.read_text())["boundaries"]}
    answers = {}
    for said in json.loads(answer.read_text())["boundaries"]:
        boundary = boundaries[said["boundary"]]
        answers[boundary["file"], boundary["start"], boundary["end"]] = said
    predicted = {}
    for site in truth:
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


def measure(bench, package, name, work, options):
    this = SETS[name]
    out = make_set(options.generator, package, work, name, options)
    predicted, answers = match(options.opguard.resolve(), out, options.whole)
    sites = json.loads((out / "truth.json").read_text())["sites"]
    row = {"package": package.name, "set": name, "group": this.group, "refactorings": this.operations, "removed_statements": this.removed,
           "seed": this.seed + options.seed, "files": len({s["file"] for s in sites}), "whole": options.whole, "blind": options.blind,
           "operators": count([s for s in sites if s["op"]], predicted), "calls": count(sites, predicted),
           "peers": {} if options.no_peers else run_peers(bench, out)}  # fmt: skip
    row["wrongly_bound"] = [
        {"call": f"{s['file']}:{s['line']} {s['callee']}", "bound": predicted[s["id"]], "true": s["new"], "why": answers[s["file"], *s["span"]]["why"]}
        for s in sites if predicted.get(s["id"]) is not None and predicted[s["id"]] != s["new"]
    ]  # fmt: skip
    return row


def write_table(path, key, reports):
    """A row for each package and set, between the marks <!-- refactor:KEY --> and <!-- /refactor:KEY --> of a document."""
    headings = ("package", "set", "whole", "files", "operators", "recall", "wrong", "calls", "recall", "wrong", "removed, bound", "seed")
    rows = []
    for report in reports:
        for row in report["sets"]:
            o, c = row["operators"], row["calls"]
            rows.append([row["package"], row["set"], "yes" if row["whole"] else "", str(row["files"]), f"{o['sites']:,}", f"{100 * o['recall']:.2f} %", str(o["wrong"]),
                         f"{c['sites']:,}", f"{100 * c['recall']:.2f} %", str(c["wrong"]), f"{c['removed'] - c['removed_not_bound']} of {c['removed']}", str(row["seed"])])  # fmt: skip
    marks.put(path, f"refactor:{key}", marks.table(headings, rows))
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", type=Path, nargs="*")
    parser.add_argument("--opguard", type=Path, default=ROOT / "build" / "release" / "src" / "cli" / "opguard")
    parser.add_argument("--generator", type=Path, default=ROOT.parent / "shared" / "bench" / "refactor_bench.py")
    parser.add_argument("--work", type=Path, help="keep the trees here, and use those that are here")
    parser.add_argument("--sets", default="report", help="tune, report, names, or names of " + ", ".join(SETS))
    parser.add_argument("--seed", type=int, default=0, help="added to each set's own")
    parser.add_argument("--files", type=int, help="files of a set")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--blind", action="store_true")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--json", type=Path, nargs="+")
    parser.add_argument("--table", nargs=2, metavar=("KEY", "FILE"))
    options = parser.parse_args()
    if options.table:
        return write_table(Path(options.table[1]), options.table[0], [json.loads(path.read_text()) for path in options.json])
    wanted = options.sets.split(",")
    names = [name for name in SETS if name in wanted or SETS[name].group in wanted]
    bench = load_generator(options.generator)
    report = {"split": "sha256 of the model folder's name, first byte even: tune, odd: report", "sets": []}
    with tempfile.TemporaryDirectory() as scratch:
        for package in options.packages:
            for name in names:
                row = measure(bench, package, name, (options.work or Path(scratch)) / package.name, options)
                report["sets"].append(row)
                print(f"{row['package']} {name}: {row['files']} files, {row['refactorings']} refactorings each, "
                      f"{row['removed_statements']} statements removed, seed {row['seed']}{', whole' * row['whole']}{', blind' * row['blind']}")  # fmt: skip
                for label, figures in (("opguard, all calls", row["calls"]), ("opguard", row["operators"]), *row["peers"].items()):
                    removed = f"  removed and not bound {figures['removed_not_bound']}/{figures['removed']}" if "removed" in figures else ""
                    print(f"  {label:18} n {figures['sites']:6} recall {figures['recall']:.4f} precision {figures['precision']:.4f} "
                          f"wrong {figures['wrong']}{removed}", flush=True)  # fmt: skip
                if options.json:
                    options.json[0].write_text(json.dumps(report, indent=1) + "\n")
    return 1 if any(row["calls"]["wrong"] for row in report["sets"]) else 0


if __name__ == "__main__":
    sys.exit(main())
