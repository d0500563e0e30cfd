"""How much of a program the diff wraps, with and without the narrowing to tensors, and what a step costs under each.

  wraps.py [--cases DIR] [--venvs DIR] [--venv DIR] [--only NAME,...] [--rounds 5] [--json bench/results/wraps.json]
  wraps.py --json bench/results/wraps.json --table docs/formats/plan-format.md      # what FILE holds into the document; runs nothing

The programs are side a of the shared cases (all faulty trees of minitrain have one) with the packages of their `--with`, and a Llama of transformers, whose
loaded files stand in its tree (bench/mutants). Counted in the diff of `opguard instrument --plan`:

  x = og("m.add:aaaa", y) + z        one probe, one wrapped operand, one changed line
  x = og("m.relu:bbbb", relu)(y)     one probe, no wrapped operand: what stands in it is a callee

Python 3.11 gives all `{x}` of an f-string one span, and the tests of `if a and b:`; "before" is a plan by a tracer that does not tell them apart. Both plans
are put into the tree and recorded by one build: they differ in what is wrapped alone. The steps of the Llama and of minitrain are timed by step_times.py:
each round has a bare process, one with the wide plan and one with the narrow one. Ratios are of the medians of a round; the table has the median of the
rounds, and the least and the greatest. Under another Python than 3.11 before and after are the same.
"""
import argparse
import json
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import marks
from accuracy import describe
from cases import make_environment, make_trees, read_entries
from mutants.programs import PROGRAMS, Base, Runner

ROOT = Path(__file__).resolve().parents[1]
PACKAGE_MODEL = "llama"
TIMED = ("minitrain", PACKAGE_MODEL)
PROBE = re.compile(r"""\bog(?:_\d+)?(?:\.\w+)*\((["'])([a-z0-9_.]+:[a-z0-9_.]+)\1""")


@dataclass
class Tree:
    name: str
    folder: Path
    command: list  # runs in the folder
    packages: list
    python: Path
    path: str = ""  # put first on PATH


def environment(tree):
    env = {k: v for k, v in os.environ.items() if not k.startswith("OPGUARD_")}
    env["PATH"] = os.pathsep.join(filter(None, [tree.path, env["PATH"]]))
    return {**env, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "HF_HUB_OFFLINE": "1"}


def call(command, tree, cwd):
    done = subprocess.run([str(word) for word in command], cwd=cwd, env=environment(tree), capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command[:3]))}: exit code {done.returncode}: {(done.stderr or done.stdout)[-1500:]}")
    return done.stdout


def case_trees(cases, venvs, work):
    """Side a of each case; of cases with one good tree that tree once."""
    seen = set()
    for entry in read_entries(cases, venvs, work):
        if entry.suite == "control" or entry.case.name in seen:
            continue
        seen.add(entry.case.name)
        base = make_environment(entry.case, venvs)
        make_trees(entry)
        python = venvs / entry.case.name / "a" / "bin" / "python"
        yield Tree(entry.case.name, entry.tree_a, shlex.split(entry.run_a), entry.packages, python if python.exists() else base / "bin" / "python", entry.path)


def package_tree(venv, work):
    program, runner = PROGRAMS[PACKAGE_MODEL], Runner(venv, 900)
    try:
        base = Base(program, work / PACKAGE_MODEL, venv, runner)
    finally:
        runner.close()
    return Tree(program.name, base.tree, program.command(), [], venv / "bin" / "python", str(venv / "bin"))


def widened(tools, work):
    """The folder of a command whose tracer tells the spans of 3.11 as they are, so that all operands of a span are wrapped.

    It is this build's, laid out as an installed one: bin/ beside lib/python3/site-packages/opguard.
    """
    shutil.rmtree(work, ignore_errors=True)
    (work / "bin").mkdir(parents=True)
    shutil.copy(tools / "opguard", work / "bin" / "opguard")
    package = work / "lib" / "python3" / "site-packages" / "opguard"
    shutil.copytree(tools.parents[1] / "python" / "opguard", package)
    positions = package / "trace" / "positions.py"
    text, count = re.subn(r"(?m)^_SHARES_SPANS = .*$", "_SHARES_SPANS = False", positions.read_text())
    assert count == 1, "the tracer's switch has another name"
    positions.write_text(text)
    return work / "bin"


def counted(diff, plan):
    """The probes of a diff, the operands they wrap that are no callees, and the lines it changes, import lines left out."""
    forms = {b["id"]: b["form"] for b in plan["boundaries"]}
    added = [line[1:] for line in diff.splitlines() if line.startswith("+") and not line.startswith("+++")]
    taken = [line[1:] for line in diff.splitlines() if line.startswith("-") and not line.startswith("---")]
    ids = [found[1] for line in added for found in PROBE.findall(line)]
    return {"probes": len(ids), "operands": sum(forms[i] != "call" for i in ids), "lines": len(taken)}


def instrumented(tree, tools, work):
    """(counts, plan) by a build of these commands."""
    plan = work / "plan.json"
    packages = [word for package in tree.packages for word in ("--with", package)]
    call([tools / "opguard", "preflight", "-q", "-o", plan, "--tree", tree.folder, *packages, "--", *tree.command], tree, tree.folder)
    diff = call([tools / "opguard", "instrument", tree.folder, "--plan", plan, "--python", tree.python, *packages], tree, tree.folder)
    (work / "probes.diff").write_text(diff)
    return counted(diff, json.loads(plan.read_text())), plan


def step_ms(tree, folder, tools, work, repeat):
    """The median processor time of a step of a tree, recorded where tools are given."""
    times, log = work / "times.json", work / "log"
    shutil.rmtree(log, ignore_errors=True)
    timed = ["python", ROOT / "bench" / "step_times.py", times, repeat, *tree.command[1:]]
    call([tools / "opguard", "run", "-q", "--log", log, "--", *timed] if tools else timed, tree, folder)
    return statistics.median(json.loads(times.read_text()))


def step_ratios(tree, plans, tools, work, rounds, repeat):
    """{"before/bare": [...], ...}, one of each a round. plans: by name."""
    folders = {"bare": tree.folder}
    for name, plan in plans.items():
        folders[name] = work / f"tree_{name}"
        shutil.rmtree(folders[name], ignore_errors=True)
        shutil.copytree(tree.folder, folders[name])
        call([tools / "opguard", "instrument", folders[name], "--plan", plan, "--apply"], tree, tree.folder)
    found = {"before/bare": [], "after/bare": [], "after/before": []}
    for _ in range(rounds):
        ms = {name: step_ms(tree, folder, None if name == "bare" else tools, work, repeat) for name, folder in folders.items()}
        for ratio, seen in found.items():
            over, under = ratio.split("/")
            seen.append(ms[over] / ms[under])
    return found


def measure(tree, before, after, work, options):
    row = {"name": tree.name, "packages": tree.packages, "error": None}
    try:
        plans = {}
        for name, tools in (("before", before), ("after", after)):
            (work / name).mkdir(parents=True, exist_ok=True)
            row[name], plans[name] = instrumented(tree, tools, work / name)
        if tree.name in TIMED:
            row["ratios"] = step_ratios(tree, plans, after, work, options.rounds, options.repeat)
    except RuntimeError as error:
        row["error"] = str(error)
    return row


def cells(row):
    if row["error"]:
        return [row["name"], "did not run"] + [""] * 3
    pairs = [f"{row['before'][key]:,} -> {row['after'][key]:,}" for key in ("probes", "operands", "lines")]
    return [f"{row['name']} ({', '.join(row['packages'])})" if row["packages"] else row["name"], *pairs]


def spread(ratios):
    return f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"


def markdown(found):
    rows = found["rows"]
    ran = [row for row in rows if not row["error"]]
    text = marks.wrapped("Measured by `bench/wraps.py`: before, all operands of a span are wrapped; after, the tensors. A callee is no wrapped operand. "
                         f"Build {found['commit']}; Python {found['python']}; {found['machine']}.")  # fmt: skip
    text += marks.table(("program", "probes", "wrapped operands", "changed lines"), map(cells, rows))
    total = {key: [sum(row[side][key] for row in ran) for side in ("before", "after")] for key in ("probes", "operands", "lines")}
    text += "\n" + marks.wrapped("All together: " + ", ".join(f"{name} {a:,} -> {b:,} ({100 * (b - a) / max(a, 1):+.1f} %)" for name, (a, b) in
                                                              zip(("probes", "wrapped operands", "changed lines"), total.values())) + ".")  # fmt: skip
    timed = [row for row in ran if "ratios" in row]
    if timed:
        text += marks.wrapped(f"Processor time of a step, {len(timed[0]['ratios']['after/before'])} rounds of alternate processes, all recorded by this build: "
                              "the median of the rounds' ratios, and their range.")  # fmt: skip
        columns = ("before/bare", "after/bare", "after/before")
        text += marks.table(("program", *(column.replace("/", " / ") for column in columns)),
                            ([row["name"], *(spread(row["ratios"][column]) for column in columns)] for row in timed))  # fmt: skip
        if alike := [row["name"] for row in timed if row["before"] == row["after"]]:
            text += "\n" + marks.wrapped(f"Of {' and '.join(alike)} both diffs are the same: after / before is the machine's noise.")
    return text


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--cases", type=Path, default=ROOT.parent / "shared" / "cases")
    p.add_argument("--venvs", type=Path, default=ROOT / "build" / "venvs", help="environments of the cases")
    p.add_argument("--venv", type=Path, default=ROOT / "build" / "venvs" / "mutants", help="made by bench/mutants_env.sh")
    p.add_argument("--tools", type=Path, default=ROOT / "build" / "release" / "src" / "cli")
    p.add_argument("--work", type=Path, default=ROOT / "build" / "wraps")
    p.add_argument("--only", default="", help="names, separated by commas")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--repeat", type=int, default=8, help="passes of the program in one process")
    p.add_argument("--json", type=Path)
    p.add_argument("--table", type=Path)
    o = p.parse_args()
    if o.table:
        return marks.put(o.table, "wraps", markdown(json.loads(o.json.read_text())))
    o.cases, o.venvs, o.venv, o.work, o.tools = (path.absolute() for path in (o.cases, o.venvs, o.venv, o.work, o.tools))
    before = widened(o.tools, o.work / "wide")
    wanted = [name for name in o.only.split(",") if name]
    trees = list(case_trees(o.cases, o.venvs, o.work / "cases")) + [package_tree(o.venv, o.work)]
    rows = []
    for tree in trees:
        if wanted and tree.name not in wanted:
            continue
        rows.append(measure(tree, before, o.tools, o.work / "runs" / tree.name, o))
        print(" | ".join(cells(rows[-1])), rows[-1]["error"] or "", flush=True)
    found = {**describe(o.tools / "opguard", o.venv / "bin" / "python"), "rows": rows}
    if o.json:
        o.json.write_text(json.dumps(found, indent=1) + "\n")
    print(markdown(found))


if __name__ == "__main__":
    main()
