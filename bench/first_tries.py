"""The section of docs/results/accuracy.md on programs nobody had looked at: pairs of releases, and random mutants.

  first_tries.py [--mutants FILE ...] [--out docs/results/accuracy.md] [--json FILE]

--mutants: results of mutants.py --json; without it, those in bench/results. The section replaces the one that is there.
"""
import argparse
import json
import textwrap
from pathlib import Path

from mutants.judge import RIGHT, wilson
from mutants.tables import hits, share, summary, table

HERE = Path(__file__).resolve().parent
TITLE = "## First tries\n"
INTRO = """
Programs nobody had looked at when the tool first ran on them: each result stands for the build that met it, and is
never replaced. What the tables above hold was seen while the tool was written, and says nothing about others. Written
by `bench/first_tries.py`; intervals are Wilson's, 95 %.
"""


def pairs_counts(rows):
    """(lines of the counts, the counts) of some pairs."""
    parting = [r for r in rows if r["expected"] == "diverged"]
    alike = [r for r in rows if r["expected"] == "identical"]
    text = f"- at the statement: {share(hits(parting, 'exact'), len(parting))}\n"
    text += f"- in the function: {share(hits(parting, 'exact', 'near'), len(parting))}\n"
    text += f"- alike, and called identical: {share(hits(alike, 'right'), len(alike))}; false alarms {sum(r.get('verdict') == 'diverged' for r in alike)}\n"
    return text, {"parting": len(parting), "exact": hits(parting, "exact"), "near": hits(parting, "near"),
                  "alike": len(alike), "right": hits(alike, "right")}  # fmt: skip


def pairs_section():
    rows = json.loads((HERE / "release_pairs" / "first_tries.json").read_text())
    table = json.loads((HERE / "release_pairs" / "table.json").read_text())
    text = "\n### Pairs of releases\n\nAnswers written from the sources and an oracle dump before any run (bench/release_pairs/README.md).\n"
    counted = {}
    for name, about in table["sets"].items():
        of = [r for r in rows if table["cases"][r["case"]].get("set", "1") == name]
        lines, counted[name] = pairs_counts(of)
        text += f"\nSet {name}, {about} (builds {', '.join(sorted({r['build'][:7] for r in of}))}):\n\n" + lines
        if missed := [r for r in of if r["class"] not in ("exact", "right")]:
            text += "\n| pair | class | kind | named in a | named in b |\n|---|---|---|---|---|\n"
            for r in missed:
                text += f"| {r['case']} | {r['class']} | {r.get('kind') or ''} | {r.get('a') or '-'} | {r.get('b') or '-'} |\n"
    return text, {"pairs": counted}


def label(results):
    """The seed; where it was asked in parts, by one build each, also which: `part` and `remark` of its file, written by hand."""
    return f"{results['seed']}{results.get('part', '')}"


def mutants_section(files):
    found = [json.loads(f.read_text()) for f in files]
    found = [f for f in found if f["first_try"] and f["results"]]
    if not found:
        return "", {}
    results = [r for f in found for r in f["results"]]
    text = "\n### Random mutants of library code\n\n"
    seeds = ", ".join(label(f) for f in found)
    about = f"The truth is known by construction (bench/mutants.py). Seeds {seeds}, which nobody had looked at when they ran."
    text += textwrap.fill(about, 118) + "\n\n"
    text += "| seed | mutants at the statement or first use | wrong | false identical | controls identical |\n|---|---|---|---|---|\n"
    for f in found:  # each met a build of its own
        of = [r for r in f["results"] if r["operator"]]
        alike = [r for r in f["results"] if not r["operator"]]
        text += (f"| {label(f)} | {share(hits(of, *RIGHT), len(of))} | {hits(of, 'wrong')} | {hits(of, 'false_identical')} | "
                 f"{share(hits(alike, 'right'), len(alike))} |\n")  # fmt: skip
    text += "".join("\n" + textwrap.fill(f"{label(f)}: {f['remark']}.", 118) + "\n" for f in found if "remark" in f)
    text += "\nAll together:\n\n"
    text += "".join(f"- {line.strip()}\n" for line in summary(results)) + "\n" + table("operator", results, lambda r: r["operator"])
    mutants = [r for r in results if r["operator"]]
    low, high = wilson(hits(mutants, "false_identical"), len(mutants))
    text += f"\nFalse `identical`: {hits(mutants, 'false_identical')} of {len(mutants)} ({100 * low:.1f} to {100 * high:.1f} %).\n"
    return text, {"mutants": {c: hits(mutants, c) for c in {r["class"] for r in mutants}}}


def section(files=None):
    """(the section, its counts)"""
    pairs, counted = pairs_section()
    mutants, more = mutants_section(sorted((HERE / "results").glob("mutants-*.json")) if files is None else files)
    return TITLE + INTRO + pairs + mutants, {**counted, **more}


def place(document, text):
    """The document with the section at its end, in place of the one it had."""
    head, _, _ = document.partition("\n" + TITLE)
    return head.rstrip("\n") + "\n\n" + text


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--mutants", type=Path, nargs="+")
    p.add_argument("--out", type=Path)
    p.add_argument("--json", type=Path)
    o = p.parse_args()
    text, counts = section(o.mutants)
    if o.json:
        o.json.write_text(json.dumps(counts, indent=1) + "\n")
    if o.out:
        o.out.write_text(place(o.out.read_text(), text))
    else:
        print(text)


if __name__ == "__main__":
    main()
