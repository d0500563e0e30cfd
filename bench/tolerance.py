"""Runs `opguard diff --tolerance` on programs in other layouts, each right and with faults, and scores the answers.

  tolerance.py --python PY [--cases DIR] [--only NAME ...] [--faults | --controls] [--seeds N] [--minutes M] [--json FILE] [--keep DIR]
  tolerance.py --again DIR [--only NAME ...] [--json FILE]     # judges what --keep kept there with this build; records nothing
  tolerance.py --json FILE --table DOCUMENT     # the document's part, from what was kept; runs nothing

NAME is a case or the beginning of one: `tinyllama.cp_positions`, `mcore`, `gpt2`, `plain`, `parallel`.
Cases: DIR/tinyllama and DIR/mcore (their own faults.py), bench/ports and bench/parallel (bench/ports.py). PY has what their programs
import (bench/tolerance_env.sh). Answers are kept under --work and taken over while the tool stays the same.

exact: a statement that is right to name; near: its function; module: its class or module; candidate: exact, among the five other
candidates; wrong: another place. missed: called equivalent. undecided: inconclusive. failed: no answer; limit: the time limit. All are counted.
A case that is held out was not looked at while the tier was written: the first answer to it is kept for ever, as `first`.
"""
import argparse
import ast
import json
import os
import re
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import answers
import marks
import ports
from accuracy import run, tool_digest

ROOT = Path(__file__).resolve().parents[1]
# A case's word for what is wrong -> the kinds of docs/design/tolerance.md that say so.
KINDS = {
    "missing_reduce": {"missing_reduce", "declared"},  # declared: DTensor says whole, and the data are partial sums
    "wrong_reduce": {"missing_reduce", "scale"},  # over too few ranks it is partial still, over too many a multiple
    "scale": {"scale"},
    "wrong_data": {"value", "layout", "stale"},  # other elements than those meant: nobody's values, or another place's
    "wrong_layout": {"layout", "omits"},  # the right pieces at wrong places; one twice leaves another out
    "omits": {"omits"},
    "stale": {"stale"},
    "diverged_replicas": {"replicas"},
    "mapping": {"mapping"},
    "precision": {"precision"},
    "formula": {"value"},  # another function of the right inputs
    "untied": {"mapping", "replicas", "missing_reduce"},  # one parameter became two: each has a part of the gradient
    "exchanged": {"mapping", "layout", "stale"},  # each of two is the other's
}
PLACED = ("exact", "near", "module")
FIRST = ("class", "kind_right", "verdict", "kind", "b")  # of the first answer to a case that is held out
SETS = (("shared table", lambda r: r["set"] == "shared"),
        ("own cases, looked at", lambda r: r["set"] != "shared" and not r["held_out"]),
        ("own cases, held out", lambda r: r["set"] != "shared" and r["held_out"]))  # fmt: skip


def shared_cases(folder, python):
    """{"tinyllama.NAME": case} of the tables that faults.py lists."""
    found = {}
    for name in ("tinyllama", "mcore"):
        program = folder / name / "faults.py"
        if not program.is_file():
            print(f"tolerance: no {program}", file=sys.stderr)
            continue
        listed = subprocess.run([python, program, "--list"], capture_output=True, text=True, check=True).stdout
        for line in listed.splitlines():
            case, ranks, ref, args, kind = re.match(r"(\S+) +(\d+) \[(.*?)\] \[(.*?)\] (\S+)", line).groups()
            found[f"{name}.{case}"] = {**ports.DEFAULTS, "ranks": int(ranks), "ref": ref, "args": args, "kind": kind, "set": "shared",
                                       "reference": "train.py", "candidate": "train.py", "program": program, "name": case}  # fmt: skip
    return found


def make_trees(case, folder, python):
    """(good, faulty, what is expected). The tool must not find its answer in a tree."""
    good, faulty = folder / "good", folder / "faulty"
    control = case["kind"] == "none"
    if case["set"] == "shared":
        for tree, words in ((good, ["--good"]), (faulty, ["--fault", case["name"]])):
            if not (control and tree == faulty):
                subprocess.run([python, case["program"], *words, "--out", tree], check=True, capture_output=True)
    else:
        ports.make(case, good, False)
        if not control:
            ports.make(case, faulty, True)
    if control:
        return good, good, case
    expect = json.loads((faulty / "EXPECT.json").read_text())
    (faulty / "EXPECT.json").rename(folder / "EXPECT.json")
    return good, faulty, expect


def statement(path, line):
    """(first, last) line of the smallest statement there; of one with a body its head."""
    best = (line, line)
    try:
        tree = ast.parse(path.read_text())
    except (OSError, SyntaxError):
        return best
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and node.lineno <= line:
            last = node.body[0].lineno - 1 if getattr(node, "body", None) else node.end_lineno
            if line <= last and node.lineno >= (best[0] if best != (line, line) else 0):
                best = (node.lineno, last)
    return best


def lies_in(location, place, tree):
    """Of a place (file, function, text): with a text the statement that has it, else the function."""
    file, function, text = place
    if not location or not (location["file"] == file or location["file"].endswith("/" + file)):
        return False
    if not text:
        return location.get("function") == function
    first, last = statement(tree / file, location["line"])
    return text in "\n".join((tree / file).read_text().splitlines()[first - 1 : last])


def module_of(answer):
    """The module of the pivot's tensor, as the placements tell it."""
    pivot = answer["pivot"]
    for p in answer.get("tolerance", {}).get("placements", []):
        if p["boundary"] == pivot["boundary"] and p["state"] == "beyond" and p["step"] == pivot["step"]:
            return p["module"]
    return ""


def judge(expect, answer, code, tree):
    """The class of an answer; see the head of this file. Of a control: right, alarm, undecided, failed, limit."""
    if answer is None:
        return "limit" if code is None else "failed"
    verdict = answer["verdict"]
    if expect["kind"] == "none":
        return {"identical": "right", "equivalent": "right", "diverged": "alarm"}.get(verdict, "undecided")
    if verdict != "diverged":
        return "undecided" if verdict == "inconclusive" else "missed"
    location = (answer.get("pivot") or {}).get("b")
    if any(lies_in(location, place, tree) for place in expect["exact"]):
        return "exact"
    if any(lies_in(location, (file, function, ""), tree) for file, function, _ in expect["near"] + expect["exact"]):
        return "near"
    classes = {(file, function.rpartition(".")[0]) for file, function, _ in expect["near"] + expect["exact"] if "." in function}
    if location and any(location["file"].endswith(file) and location.get("function", "").startswith(name + ".") for file, name in classes):
        return "module"
    if answer.get("pivot") and expect["module"] and module_of(answer) == expect["module"]:
        return "module"
    others = [c.get("b") for c in answer.get("candidates", [])[:5]]
    return "candidate" if any(lies_in(other, place, tree) for other in others for place in expect["exact"]) else "wrong"


def kind_is_right(expect, answer):
    """None where no kind is expected."""
    if expect["kind"] == "none":
        return None
    return bool(answer and answer.get("pivot") and answer["pivot"]["kind"] in KINDS[expect["kind"]])


def place(location):
    return f"{'/'.join(location['file'].split('/')[-2:])}:{location['line']}" if location and location["file"] else ""


def environment(python):
    env = {k: v for k, v in ports.environment().items() if not k.startswith("OPGUARD_")}
    return {**env, "PATH": f"{Path(python).parent}{os.pathsep}{env['PATH']}"}


def answer_of(name, case, seed, o):
    """The result of one case, as it is kept. Trees and logs go once it is known, unless --keep."""
    if o.again:
        folder = o.again / f"{name}.{seed}"
        faulty, logs = folder / "faulty", folder / "work"
        expect = case if case["kind"] == "none" else json.loads((folder / "EXPECT.json").read_text())
        out = o.work / "again" / f"{name}.{seed}.json"
        out.parent.mkdir(parents=True, exist_ok=True)
        out.unlink(missing_ok=True)
        command = [str(o.opguard), "align", "--tolerance", str(logs / "run_a" / "log"), str(logs / "run_b" / "log")]
        for noise in sorted((logs / "run_a").glob("noise_*")):
            command += ["--noise", str(noise / "log")]
    else:
        folder = o.work / "runs" / f"{name}.{seed}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        good, faulty, expect = make_trees(case, folder, o.python)
        a, b = ports.commands(case, o.python)
        out = folder / "answer.json"
        command = [str(o.opguard), "diff", "--tolerance", *(["--isolate"] if o.isolate else []), str(good), str(faulty), "--run-a", a, "--run-b", b, "--jitter-seed", str(seed)]
        for package in case["packages"]:
            command += ["--with", package]
        command += ["--work", str(folder / "work")]
    start = time.monotonic()
    code, said = run([*command, "--json", str(out)], folder, environment(o.python), o.timeout)
    seconds = time.monotonic() - start
    answer = json.loads(out.read_text()) if out.is_file() else None
    pivot = (answer or {}).get("pivot") or {}
    tolerance = (answer or {}).get("tolerance") or {}
    found = {
        "case": name, "set": case["set"], "seed": seed, "held_out": case["held_out"], "expected": expect["kind"], "class": judge(expect, answer, code, faulty),
        "kind_right": kind_is_right(expect, answer), "exit": code, "verdict": answer["verdict"] if answer else "", "kind": pivot.get("kind", ""), "phase": pivot.get("phase", ""),
        "a": place(pivot.get("a")), "b": place(pivot.get("b")), "compared": tolerance.get("compared"), "beyond": tolerance.get("beyond"),
        "worst_ratio": tolerance.get("worst_ratio"), "seconds": round(seconds, 1), "why": (answer or {}).get("why", "") if answer else said[-1500:]}  # fmt: skip
    if o.isolate:
        found["isolated"] = isolation_of(answer)
    if o.again:
        return found
    (folder / "report.txt").write_text(said)
    if o.keep:
        kept = o.keep / folder.name
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(folder, kept)
    shutil.rmtree(folder / "work", ignore_errors=True)
    return found


def isolation_of(answer):
    """What --isolate told: the proof's state, and how many faults, of them proven, followers, values in place."""
    told = ((answer or {}).get("tolerance") or {}).get("isolation")
    if not told:
        return None
    return {"state": answer["proof"]["state"], "faults": len(told["faults"]), "proven": sum(f["state"] == "proven" for f in told["faults"]),
            "follow": told["follow"], "hidden": told["hidden"], "put": told["put"], "not_put": sum(told["not_put"].values()), "pivot_follows": told["pivot_follows"],
            "first": told["faults"][0]["place"] if told["faults"] else "", "why": answer["proof"]["why"]}  # fmt: skip


def isolated_line(results):
    """How many verdicts were proven, of those that are `diverged`."""
    told = [r["isolated"] for r in results if r.get("isolated")]
    return (f"isolated: {len(told)} diverged, {sum(t['state'] == 'proven' for t in told)} proven, {sum(t['faults'] == 1 for t in told)} with one fault, "
            f"{sum(t['faults'] > 1 for t in told)} with several, {sum(t['put'] == 0 for t in told)} without a value that could be put in, "
            f"{sum(t['pivot_follows'] for t in told)} whose first pivot only follows")  # fmt: skip


def counts(rows):
    """The row of the table of some faults: how many, and of each class."""
    def of(*classes):
        return sum(r["class"] in classes for r in rows)

    right = sum(bool(r["kind_right"]) for r in rows)
    return (str(len(rows)), str(of(*PLACED, "candidate", "wrong")), str(of("exact")), str(of("near")), str(of("module")), str(of("candidate")), str(of("wrong")), str(of("missed")),
            str(of("undecided")), str(of("failed", "limit")), str(right))  # fmt: skip


def tables(results):
    faults, controls = [r for r in results if r["expected"] != "none"], [r for r in results if r["expected"] == "none"]
    head = ("faults", "of them", "diverged", "exact", "near", "module", "candidate", "wrong", "missed", "undecided", "no answer", "kind right")
    rows = [(name, *counts([r for r in faults if which(r)])) for name, which in SETS]
    first = [{**r, **r["first"]} for r in faults if "first" in r]
    rows.append(("held out, first tries", *counts(first)))
    text = marks.table(head, rows)
    met = sorted({r["first"]["commit"] for r in faults if "first" in r})
    batches = [[r for r in faults if r.get("first", {}).get("commit") == build] for build in met]
    rows = [(f"{build}, {when}", *counts([{**r, **r["first"]} if when == "first" else r for r in of])) for build, of in zip(met, batches) for when in ("first", "now")]
    rows.append(("all, now", *counts(faults)))
    text += "\n" + marks.table(("held out, by the build that met them", *head[1:]), rows)
    alike = []
    for name, which in SETS:
        of = [r for r in controls if which(r)]
        alike.append((name, str(len({r["case"] for r in of})), str(len(of)), *(str(sum(r["class"] in c for r in of)) for c in (("right",), ("alarm",), ("undecided",), ("failed", "limit")))))
    met = [{**r, **r["first"]} for r in controls if "first" in r]
    alike.append(("held out, first tries", str(len({r["case"] for r in met})), str(len(met)), *(str(sum(r["class"] in c for r in met)) for c in (("right",), ("alarm",), ("undecided",), ("failed", "limit")))))
    text += "\n" + marks.table(("controls", "of them", "runs", "equivalent", "diverged", "undecided", "no answer"), alike)
    other = [r for r in results if r["class"] not in ("exact", "right") or r["kind_right"] is False]
    lines = [(f"{r['case']}{'' if r['expected'] != 'none' else ', seed ' + str(r['seed'])}", r["expected"], r["class"], r["kind"], f"`{r['b']}`" if r["b"] else "") for r in other]
    return text + "\n" + marks.table(("not exact, or of another kind", "what it is", "class", "kind said", "named"), lines)


def chosen(o):
    cases = {**shared_cases(o.cases, o.python), **{n: {**c, "set": n.partition(".")[0]} for n, c in ports.tables().items()}}
    jobs = []
    for name, case in cases.items():
        control = case["kind"] == "none"
        if o.only and not any(name == n or name.startswith(n) for n in o.only) or (o.faults and control) or (o.controls and not control):
            continue
        if (case["held_out"] and o.tuned) or (o.held_out and not case["held_out"]):
            continue
        jobs += [(name, case, seed) for seed in (range(o.seeds) if control else [0])]
    return jobs


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--python", default=str(ROOT / "build" / "venv-tolerance" / "bin" / "python"))
    p.add_argument("--cases", type=Path, default=ROOT.parent / "shared" / "cases" / "parallel")
    p.add_argument("--opguard", type=Path, default=ROOT / "build" / "release" / "src" / "cli" / "opguard")
    p.add_argument("--work", type=Path, default=ROOT / "build" / "tolerance")
    p.add_argument("--only", nargs="+", metavar="NAME")
    p.add_argument("--faults", action="store_true", help="no controls")
    p.add_argument("--controls", action="store_true", help="controls alone")
    p.add_argument("--held-out", action="store_true", help="only the cases that are held out")
    p.add_argument("--tuned", action="store_true", help="only those that are not")
    p.add_argument("--seeds", type=int, default=3, help="of the jitter, for every control")
    p.add_argument("--timeout", type=float, default=900, help="seconds for one command")
    p.add_argument("--minutes", type=float, help="start no further case after that")
    p.add_argument("--keep", type=Path, metavar="DIR", help="copy trees, logs and reports there")
    p.add_argument("--again", type=Path, metavar="DIR", help="judge the logs there again, of --keep, and run nothing")
    p.add_argument("--fresh", action="store_true", help="repeat finished cases")
    p.add_argument("--isolate", action="store_true", help="diff with --isolate; prints how many verdicts are proven")
    p.add_argument("--json", type=Path)
    p.add_argument("--table", type=Path, metavar="DOCUMENT")
    o = p.parse_args()
    if o.table:
        marks.put(o.table, "tolerance", tables(json.loads(o.json.read_text())["results"]))
        return
    o.opguard, o.work, o.cases = o.opguard.resolve(), o.work.resolve(), o.cases.resolve()
    o.python = os.path.abspath(o.python)  # not resolved: the link is what makes it a virtual environment's
    for needed in (o.opguard, Path(o.python)):
        if not needed.is_file():
            sys.exit(f"tolerance.py: error: no {needed}")
    digest = tool_digest(o.opguard)
    commit = answers.commit_of(o.opguard)
    start, results, left, missing = time.monotonic(), [], 0, []
    for name, case, seed in chosen(o):
        if o.minutes and time.monotonic() - start > o.minutes * 60:
            left += 1
            continue
        if o.again and not (o.again / f"{name}.{seed}" / "work").is_dir():
            missing.append(f"{name}.{seed}")
            continue
        path = o.work / ("isolated" if o.isolate else "judged" if o.again else "results") / f"{name}.{seed}.json"
        results.append(r := answers.result(path, digest, o.fresh, partial(answer_of, name, case, seed, o)))
        kind = "" if r["kind_right"] is None else "kind " + ("right" if r["kind_right"] else f"{r['kind']} for {r['expected']}")
        print(f"{name:28} {seed} {r['class']:10} {r['verdict']:12} {kind:34} {r['b']:34} {r['seconds']:5.0f} s", flush=True)
        if r.get("isolated"):
            print("    " + ", ".join(f"{k} {v}" for k, v in r["isolated"].items()), flush=True)
        if o.json:
            answers.keep(o.json, r, commit, FIRST)
    print(tables(results))
    if o.isolate:
        print(isolated_line(results))
    if missing:
        print(f"not kept: {len(missing)}, as {missing[0]}")
    if left:
        print(f"not run: {left}, for --minutes")


if __name__ == "__main__":
    main()
