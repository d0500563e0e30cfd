"""Runs opguard once on each pair that has an answer and no result yet, and adds what it said to first_tries.json.

  first_try.py OUT --opguard PATH [--only NAME,...] [--jobs 2]
  first_try.py OUT --opguard PATH --again [--only NAME,...]   # pairs that have a result, run anew: what another build says of them
  first_try.py OUT --opguard PATH --rejudge [--json FILE]     # the kept logs under another build: `opguard align`

A result is never replaced: it stands for a build that had not seen the pair. --again keeps its logs in OUT/again and lists the pairs that were
exact at first and are not now; --rejudge writes beside the kept logs and runs no program.
"""
import argparse
import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from accuracy import environment, run  # noqa: E402
from cases import make_trees, read_entries  # noqa: E402
from judging import judge, kind_is_right  # noqa: E402

RESULTS = HERE / "first_tries.json"


def short(place):
    return f"{place['file']}:{place['line']}" if place else None


def row(entry, answer, code, seconds, build):
    """What is kept of an answer: enough to judge it again by hand."""
    shown = {"case": entry.name, "expected": entry.expect["verdict"], "class": judge(entry.expect, answer),
             "kind_right": kind_is_right(entry.expect, answer), "exit": code, "seconds": round(seconds, 1), "build": build}
    if answer:
        pivot = answer.get("pivot")
        shown |= {"verdict": answer["verdict"], "why": answer.get("why", ""), "unequal_pairs": answer.get("unequal_pairs")}
        if pivot:
            shown |= {"kind": pivot["kind"], "operator": pivot["operator"], "phase": pivot["phase"], "step": pivot["step"],
                      "a": short(pivot.get("a")), "b": short(pivot.get("b")),
                      "candidates": [[short(c.get("a")), short(c.get("b"))] for c in answer.get("candidates", [])]}
    return shown


def first_try(entry, opguard, folder, build):
    env, work, out = environment(entry), folder / "work", folder / "answer.json"
    make_trees(entry)
    # What is there is from a run that was stopped before it answered.
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = [str(opguard), "diff", str(entry.tree_a), str(entry.tree_b)]
    for package in entry.packages:
        command += ["--with", package]
    command += ["--run-a", entry.run_a, "--run-b", entry.run_b, "--json", str(out), "--work", str(work)]
    start = time.monotonic()
    code, report = run(command, folder, env, 900)
    (folder / "report.txt").write_text(report)
    answer = json.loads(out.read_text()) if out.is_file() else None
    return row(entry, answer, code, time.monotonic() - start, build)


def rejudge(entry, opguard, folder, build):
    out, start = folder / "again.json", time.monotonic()
    out.unlink(missing_ok=True)
    logs = [str(folder / "work" / f"run_{side}" / "log") for side in "ab"]
    code, report = run([str(opguard), "align", *logs, "--json", str(out)], folder, environment(entry), 600)
    (folder / "again.txt").write_text(report)
    answer = json.loads(out.read_text()) if out.is_file() else None
    return row(entry, answer, code, time.monotonic() - start, build)


def keep(found):
    """Adds a row. The file is read anew, since two of these may run side by side."""
    with (HERE / "first_tries.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
        RESULTS.write_text("[\n" + ",\n".join(json.dumps(r) for r in [*kept, found]) + "\n]\n")


def counts(rows):
    text = []
    for verdict in ("diverged", "identical"):
        of = [r for r in rows if r["expected"] == verdict]
        classes = {c: sum(r["class"] == c for r in of) for c in ("exact", "near", "candidate", "wrong", "right")}
        text.append(f"{verdict}: {len(of)} pairs; " + ", ".join(f"{n} {c}" for c, n in classes.items() if n))
    return "\n".join(text)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out", type=Path)
    p.add_argument("--opguard", type=Path, default=HERE.parents[1] / "build" / "release" / "src" / "cli" / "opguard")
    p.add_argument("--only", default="")
    p.add_argument("--jobs", type=int, default=1)
    p.add_argument("--logs", type=Path, help="a folder per pair: report, answer, logs (default OUT/logs, with --again OUT/again)")
    p.add_argument("--again", action="store_true")
    p.add_argument("--rejudge", action="store_true")
    p.add_argument("--json", type=Path, help="with --again, --rejudge: every answer")
    p.add_argument("--count", action="store_true", help="only count what is there")
    o = p.parse_args()
    out, opguard = o.out.resolve(), o.opguard.resolve()
    logs = (o.logs or out / ("again" if o.again else "logs")).resolve()
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    if o.count:
        print(counts(kept))
        return
    os.environ["OPGUARD_TORCH_BASE"] = str(out / "torchbase")
    # The commit the program was built from: its tree holds the build folder.
    build = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True,
                           cwd=opguard.parent).stdout.strip()
    answered = json.loads((HERE / "expect.json").read_text())
    first = {r["case"]: r["class"] for r in kept}
    entries = [e for e in read_entries_of(out, answered) if o.rejudge or (e.name in first) == o.again]
    if o.only:
        entries = [e for e in entries if e.name in o.only.split(",")]
    if o.rejudge:
        entries = [e for e in entries if (logs / e.name / "work" / "run_a").is_dir()]
    rows, work = [], rejudge if o.rejudge else first_try
    with ThreadPoolExecutor(o.jobs) as pool:
        for found in pool.map(lambda e: work(e, opguard, logs / e.name, build), entries):
            rows.append(found)
            print(f"{found['class']:<10}{found['case']:<28}{found.get('verdict', 'no answer'):<13}{found.get('kind', ''):<10}"
                  f"{found.get('a') or '-'} | {found.get('b') or '-'}  {found['seconds']} s", flush=True)
            if not (o.rejudge or o.again):
                keep(found)
    print(counts(rows if o.rejudge or o.again else json.loads(RESULTS.read_text())))
    if o.again:
        lost = [r["case"] for r in rows if first[r["case"]] in ("exact", "right") and r["class"] != first[r["case"]]]
        print(f"{len(lost)} that were right at their first try are not now: {', '.join(lost) or '-'}")
    if o.json:
        o.json.write_text(json.dumps(rows, indent=1))


def read_entries_of(out, answered):
    # The answers of expect.json, whatever was laid out when.
    found = []
    for entry in read_entries_safely(out, answered):
        if entry.name in answered and ".self_" not in entry.name:
            entry.expect = {**entry.expect, **answered[entry.name]}
            entry.packages = entry.expect.get("with", [])
            found.append(entry)
    return found


def read_entries_safely(out, answered):
    for name, expect in answered.items():
        path = out / "cases" / name / "expect.json"
        if path.is_file():
            data = json.loads(path.read_text())
            path.write_text(json.dumps({**data, **expect}, indent=1))
    for path in (out / "cases").glob("*/expect.json"):
        if path.parent.name not in answered:
            data = json.loads(path.read_text())
            path.write_text(json.dumps({"verdict": "identical", "kinds": [], "statements": [], "functions": [], **data}))
    return read_entries(out / "cases", out / "venvs", out / "trees_of_logs")


if __name__ == "__main__":
    main()
