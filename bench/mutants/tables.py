"""The results of mutants.py as lines for the terminal and as a document."""
from mutants.judge import CLASSES, RIGHT, wilson


def row(result):
    """One pair: what was said and what is true."""
    true = ", ".join(result["true"].get("b") or result["true"].get("a") or []) if result["true"] else "-"
    return (f"{result['class']:15} {result['name']} {result['operator'] or 'control':17} {result['program']:15} +{result['refactorings']:<2} "
            f"{result['verdict']:12} {result['kind']:9} a {result['a']} b {result['b']} true {true} {result['proof']} {result['seconds']:.0f} s\n"
            f"                {result['note']}")


def share(hits, number):
    low, high = wilson(hits, number)
    return f"{hits} of {number} ({100 * hits / max(number, 1):.1f} %, {100 * low:.1f} to {100 * high:.1f})"


def groups(results, key):
    found = {}
    for result in results:
        found.setdefault(key(result), []).append(result)
    return sorted(found.items())


def hits(results, *classes):
    return sum(r["class"] in classes for r in results)


def summary(results):
    mutants = [r for r in results if r["operator"]]
    controls = [r for r in results if not r["operator"]]
    lines = []
    if mutants:
        lines += [f"mutants: {share(hits(mutants, *RIGHT), len(mutants))} at the statement or its first use",
                  f"  at the statement itself: {share(hits(mutants, 'statement'), len(mutants))}",
                  f"  in the function: {share(hits(mutants, *RIGHT, 'function'), len(mutants))}",
                  "  " + ", ".join(f"{name} {hits(mutants, name)}" for name in CLASSES if hits(mutants, name))]  # fmt: skip
    if controls:
        lines.append(f"controls: {share(hits(controls, 'right'), len(controls))} identical; false alarms {hits(controls, 'false_alarm')}, "
                     f"others {len(controls) - hits(controls, 'right', 'false_alarm')}")  # fmt: skip
    return lines


HEAD = """# Accuracy on random mutants

Written by `bench/mutants.py --tables`, not edited by hand. A mutant changes one statement of a library that a small training program runs; its truth is known
by construction. Beside it stand 0, 3 or 10 refactorings that leave every bit. A control has refactorings alone. Intervals are Wilson's, 95 %.

- statement: the pivot lies in the mutated statement; first use: in the statement that first takes a mutated number; function: in the same function;
  candidate: another candidate is one of the first two. A mutant that changes nothing that counts (bare runs) is drawn again.
- *first tries*: seeds that nobody looked at. *looked at*: seeds whose failures were studied, so their figures are no measure of generality.

"""


def table(title, results, key):
    text = f"| {title} | mutants | at the statement | or first use | in the function | false identical |\n|---|---|---|---|---|---|\n"
    for name, found in groups([r for r in results if r["operator"]], key):
        low, high = wilson(hits(found, *RIGHT), len(found))
        text += (f"| {name} | {len(found)} | {hits(found, 'statement')} | {hits(found, *RIGHT)} ({100 * low:.0f} to {100 * high:.0f} %) | "
                 f"{hits(found, *RIGHT, 'function')} | {hits(found, 'false_identical')} |\n")  # fmt: skip
    return text


def markdown(files):
    """The document of several results files, first tries apart."""
    text = HEAD
    for title, first in (("First tries", True), ("Looked at", False)):
        chosen = [f for f in files if f["first_try"] is first]
        results = [r for f in chosen for r in f["results"]]
        if not results:
            continue
        text += f"## {title}\n\nSeeds {', '.join(str(f['seed']) for f in chosen)}; commit {', '.join(sorted({f['tool']['commit'] for f in chosen}))}. "
        text += f"Drawn in vain: {sum(f['equivalent'] for f in chosen)} that changed nothing that counts, {sum(f['failed'] for f in chosen)} that failed.\n\n"
        text += "".join(f"- {line.strip()}\n" for line in summary(results)) + "\n"
        text += table("operator", results, lambda r: r["operator"]) + "\n"
        text += table("refactorings beside", results, lambda r: r["refactorings"]) + "\n"
        text += table("program", results, lambda r: r["program"]) + "\n"
    return text.rstrip("\n") + "\n"
