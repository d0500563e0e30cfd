"""What `opguard doctor -- CMD` finds in programs with a known fault, and in sound ones.

  doctor.py [--json FILE] [--folder DIR ...] [--only NAME] [-v]
  doctor.py --json FILE --table docs/guide/determinism.md     # from what --json wrote; runs nothing

A program says itself what is to be found, in comments:
  # expect: SUBJECT GROUND [NAME]   the finding that must be violated (docs/formats/json.md), `nothing` of a sound one
  # also: SUBJECT GROUND [NAME]     what follows from it and is true as well
  # run: torchrun --nproc-per-node 2    the command, `python` where nothing is said
  # steps: N
  ...  # fault                      the line that must be named
found: named, with its line. missed: not named. alarm: something else is violated. Exit code 1 where not all is as it should be.
`tuning` are the programs the doctor was written by; `held_out` were written afterwards and run once before any change.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import marks

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = ROOT / "tests" / "fixtures" / "determinism"


class Case:
    def __init__(self, path):
        self.path, self.name, self.suite = path.resolve(), path.stem, "held_out" if path.parent.name == "held_out" else "tuning"
        self.also, self.command, self.steps, self.line, self.expected = [], ["python"], "3", None, None
        for number, line in enumerate(path.read_text().splitlines(), 1):
            word, _, rest = line.removeprefix("# ").partition(": ")
            if line.startswith("# ") and word in ("expect", "also", "run", "steps"):
                self.read(word, rest.split())
            if line.endswith("# fault"):
                self.line = number
        if self.expected is None:
            raise ValueError(f"{path}: no line '# expect: ...'")

    def read(self, word, rest):
        if word == "run":
            self.command = rest
        elif word == "steps":
            self.steps = rest[0]
        elif word == "also":
            self.also.append((rest[0], rest[1], " ".join(rest[2:])))
        else:
            self.expected = [] if rest == ["nothing"] else [(rest[0], rest[1], " ".join(rest[2:]))]


def cases(folders=(PROGRAMS, PROGRAMS / "held_out")):
    return [Case(path) for folder in folders for path in sorted(Path(folder).glob("*.py"))]


def fits(finding, wanted):
    subject, ground, name = wanted
    return (finding["subject"], finding["ground"]) == (subject, ground) and name in (
        "", finding["name"], *finding["names"], finding["name"].partition(" ")[2])


def judge(case, answer):
    """(outcome, what was said beside it)."""
    if answer is None:
        return "no answer", []
    violated = [f for f in answer["findings"] if f["state"] == "violated"]
    right, others = [], []
    for finding in violated:
        if any(fits(finding, wanted) for wanted in case.expected):
            right.append(finding)
        elif not any(fits(finding, wanted) for wanted in case.also):
            others.append(f"{finding['subject']} {finding['ground']} {finding['name']}".strip())
    named = [f for f in right if case.line is None or (f["place"] or {}).get("line") == case.line]
    if case.expected and not right:
        return "missed", others
    if case.expected and not named:
        return "elsewhere", others
    return ("alarm" if others else "found" if case.expected else "sound"), others


def run(case, opguard, environment, more=()):
    """(answer or None, the completed process): the doctor of one program, in an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "doctor.json"
        done = subprocess.run(
            [str(opguard), "doctor", "--steps", case.steps, "--json", str(out), *more, "--", *case.command, str(case.path)],
            cwd=folder, env=environment, capture_output=True, text=True, timeout=600)  # fmt: skip
        return (json.loads(out.read_text()) if out.exists() else None), done


def place_table(kept, document):
    """The document's table, a row a program."""
    rows = [[f"`{r['program']}`", r["suite"], ", ".join(f"`{e}`" for e in r["expected"]) or "nothing", r["outcome"]] for r in kept["results"]]
    sums = [f"- {line}\n" for line in counts(kept["results"])]
    marks.put(document, "doctor", marks.table(["program", "suite", "to be found", "outcome"], rows) + "\n" + marks.wrapped("".join(sums)))


def counts(results):
    for suite in sorted({r["suite"] for r in results}):
        mine = [r for r in results if r["suite"] == suite]
        faulty, sound = [r for r in mine if r["expected"]], [r for r in mine if not r["expected"]]
        yield (f"{suite}: {sum(r['outcome'] == 'found' for r in faulty)} of {len(faulty)} faults found at their line and nothing else; "
               f"{sum(r['outcome'] == 'sound' for r in sound)} of {len(sound)} sound programs without an alarm")  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", type=Path)
    parser.add_argument("--folder", type=Path, action="append")
    parser.add_argument("--only", default="")
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("--table", type=Path, metavar="DOCUMENT")
    args = parser.parse_args()
    if args.table:
        return place_table(json.loads(args.json.read_text()), args.table)
    opguard = ROOT / "build" / "release" / "src" / "cli" / "opguard"
    environment = {**os.environ, "PATH": str(Path(sys.executable).parent) + os.pathsep + os.environ["PATH"], "OMP_NUM_THREADS": "1"}
    environment = {k: v for k, v in environment.items() if not k.startswith("OPGUARD_") and k != "PYTHONHASHSEED"}
    results = []
    for case in cases(args.folder or (PROGRAMS, PROGRAMS / "held_out")):
        if args.only not in case.name:
            continue
        began = time.monotonic()
        answer, done = run(case, opguard, environment)
        outcome, others = judge(case, answer)
        code = done.returncode
        if answer is not None and code != (1 if answer["counts"]["violated"] else 0):
            outcome = "exit code"
        seconds = time.monotonic() - began
        results.append({"program": case.name, "suite": case.suite, "outcome": outcome, "others": others, "exit": code,
                        "expected": [" ".join(e).strip() for e in case.expected]})
        print(f"{case.suite:9} {case.name:32} {outcome:10} exit {code} {seconds:5.1f} s  {'; '.join(others)}", flush=True)
        if args.verbose:
            print(done.stdout + done.stderr)
    print(*counts(results), sep="\n")
    if args.json:
        held = json.loads(args.json.read_text()) if args.json.exists() else {}
        held.update(results=results)
        args.json.write_text(json.dumps(held, indent=1) + "\n")
    return 0 if all(r["outcome"] in ("found", "sound") for r in results) else 1


if __name__ == "__main__":
    sys.exit(main())
