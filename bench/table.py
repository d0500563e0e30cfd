"""The results of accuracy.py as lines for the terminal and as docs/results/accuracy.md.

  table.py FILE docs/results/accuracy.md     # from what accuracy.py --json wrote to FILE; runs nothing
"""
import json
import sys
from pathlib import Path

import first_tries
import marks


def place(location):
    """file:line of a location or statement, without the long way to it."""
    if not location:
        return "-"
    parts = location["file"].split("/")
    return f"{'/'.join(parts[-2:])}:{location.get('line', location.get('first_line'))}"


def expected(result):
    want = result["expected"]
    if want["verdict"] == "identical":
        return "identical"
    first = {}
    for statement in want["statements"]:
        first.setdefault(statement["side"], statement)
    return "; ".join(f"{side} {place(first[side])}" for side in sorted(first))


def said(result):
    """(verdict, kind, place in a, place in b) of the answer."""
    answer = result["answer"]
    if not answer:
        return (f"none (exit {result['exit']})" if result["exit"] is not None else "none (time limit)"), "", "-", "-"
    pivot = answer.get("pivot") or {}
    return answer["verdict"], pivot.get("kind", ""), place(pivot.get("a")), place(pivot.get("b"))


def yes_no(value):
    return {True: "yes", False: "NO", None: "n/a"}[value]


def print_row(result):
    verdict, kind, a, b = said(result)
    print(f"{result['class']:9} {result['case']:42} {verdict:12} {kind:9} a {a:32} b {b:32} "
          f"kind {yes_no(result['kind_right']):3} losses {yes_no(result['losses_equal']):3} {result['seconds']:6.1f} s",
          flush=True)


def count(results, *classes):
    return sum(r["class"] in classes for r in results)


def is_self(result):
    """A program compared with itself, which shows little: no release, no refactoring."""
    return ".self_" in result["case"]


def goals(results):
    """One line a goal of the milestone, with what was reached."""
    suites = {s: [r for r in results if r["suite"] == s] for s in ("minitrain", "library", "control")}
    lines = []
    if mini := suites["minitrain"]:
        crashed = sum(r["answer"] is None for r in mini)
        lines.append(f"minitrain: {count(mini, 'exact', 'right')} of {len(mini)} right (goal: 14 of 17); "
                     f"{crashed} without an answer (goal: 0)")
    if library := suites["library"]:
        verdicts = sum(r["answer"] is not None for r in library)
        lines.append(f"library cases: {verdicts} of {len(library)} end in a verdict (goal: all); "
                     f"{count(library, 'exact', 'near')} name the expected function (goal: half), "
                     f"{count(library, 'exact')} the statement")
    for name, of_itself in (("controls", False), ("programs against themselves", True)):
        if control := [r for r in suites["control"] if is_self(r) is of_itself]:
            lines.append(f"{name}: {count(control, 'right')} of {len(control)} identical (goal: all)")
    kinds = [r["kind_right"] for r in results if r["kind_right"] is not None]
    losses = [r["losses_equal"] for r in results if r["losses_equal"] is not None]
    lines.append(f"kind: {sum(kinds)} of {len(kinds)} as expected")
    lines.append(f"losses: instrumented and bare runs print bit-equal losses in {sum(losses)} of {len(losses)} (goal: all)")
    return lines


HEAD = """# Accuracy

Written by `make results` from `bench/results/accuracy.json`, which `make accuracy` (bench/accuracy.py) makes of the shared
cases. {opguard}, commit {commit}. Programs: Python {python} unless a case brings its own; {machine}.

- exact: the pivot is the expected statement, on either side
- near: in the expected function
- candidate: one of the other five candidates is exact
- wrong: none of these
- right: a control that was found identical
- kind: whether the kind of difference is one of the expected ones
- losses: whether the instrumented and the bare runs of both sides print bit-equal losses. n/a: two bare runs differ already,
  or no loss is printed
- expected: the first expected statement of each side; several may count

"""

ROW = "| case | expected | verdict | kind | pivot in a | pivot in b | class | kind right | losses | s |\n|---|---|---|---|---|---|---|---|---|---|\n"


def write_markdown(path, head, results):
    text = marks.wrapped(HEAD.format(**head)) + "".join(f"- {line}\n" for line in goals(results))
    tables = (("minitrain: a good tree and faulty trees", lambda r: r["suite"] == "minitrain"),
              ("Library cases: two releases or two commands", lambda r: r["suite"] == "library"),
              ("Controls: refactorings and other settings", lambda r: r["suite"] == "control" and not is_self(r)),
              ("Programs against themselves", is_self))  # fmt: skip
    for title, belongs in tables:
        rows = [r for r in results if belongs(r)]
        if not rows:
            continue
        text += f"\n## {title}\n\n{ROW}"
        for r in rows:
            verdict, kind, a, b = said(r)
            text += (f"| {r['case'].removeprefix('minitrain.')} | {expected(r)} | {verdict} | {kind} | {a} | {b} | {r['class']} | "
                     f"{yes_no(r['kind_right'])} | {yes_no(r['losses_equal'])} | {r['seconds']:.0f} |\n")
    misses = [r for r in results if r["class"] not in ("exact", "right")]
    if misses:
        text += "\n## What was said where it was not exact\n\n"
        for r in misses:
            text += marks.wrapped(f"- **{r['case']}** ({r['class']}): {explain(r)}").rstrip() + "\n"
    path.write_text(first_tries.place(text, first_tries.section()[0]))


def explain(result):
    answer = result["answer"]
    if not answer:
        lines = [line for line in result["message"].splitlines() if line.strip()]
        return "no answer; the last line printed: `" + (lines[-1].replace("`", "'")[-200:] if lines else "") + "`"
    pivot = answer.get("pivot")
    if not pivot:
        return answer.get("why") or f"the verdict was {answer['verdict']}"
    # Where a call is named in place of the operator, the class is the call's; the operator's place is told beside it.
    inside = [place(pivot[side]["operator_at"]) for side in "ab" if pivot.get(side) and pivot[side].get("operator_at")]
    told = f" The call is named; the operator in it stands at {' and '.join(inside)}" if inside else ""
    return f"{pivot['operator']} ({pivot['phase']}, step {pivot['step']}): {pivot['why']}" + (f".{told}" if told else "")


if __name__ == "__main__":
    found = json.loads(Path(sys.argv[1]).read_text())
    write_markdown(Path(sys.argv[2]), found, found["results"])
