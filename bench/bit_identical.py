"""opguard.testing.assert_bit_identical on pairs whose operator is known (bench/bit_identical/pairs.py): is it the one that is named?

  bit_identical.py [--json FILE] [--only NAME ...] [--show]     runs the pairs
  bit_identical.py --json FILE --table DOCUMENT                 writes the document's table from FILE; runs nothing

exact: every side that is named is named at a marked statement. near: in a marked statement's function. wrong: else, or nothing.
Each pair that passes or raises something else is wrong too. Costs: the time of a call that is equal, beside both functions alone.
"""
import argparse
import json
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PAIRS = HERE / "bit_identical" / "pairs.py"


def statements():
    """{pair: [marked lines]}, {line: first line of its function}"""
    marked, functions, current, name = {}, {}, {}, None
    for number, line in enumerate(PAIRS.read_text().splitlines(), 1):
        indent = len(line) - len(line.lstrip())
        if found := re.match(r"( *)def (\w+)", line):
            current = {depth: first for depth, first in current.items() if depth < indent}
            current[indent] = number
            if not indent:
                name = found[2]
        inside = [first for depth, first in current.items() if depth < indent or first == number]
        functions[number] = max(inside, default=0)
        if line.endswith("# pivot"):
            marked.setdefault(name, []).append(number)
    return marked, functions


def judge(pivot, marked, functions, name):
    """-> (class, {side: line})"""
    lines = {side: pivot[side]["line"] for side in "ab" if pivot and pivot[side] and pivot[side].get("path") == str(PAIRS)}
    # The helper that runs both sides' updates is marked under the pair that gives it its update.
    wanted = marked[name]
    if not lines:
        return "wrong", lines
    if all(line in wanted for line in lines.values()):
        return "exact", lines
    near = {functions[line] for line in wanted}
    return ("near" if all(functions[line] in near for line in lines.values()) else "wrong"), lines


def run(names, show):
    sys.path[:0] = [str(ROOT / "build" / "release" / "python"), str(PAIRS.parent)]
    import pairs
    import torch

    from opguard.testing import NotBitIdentical, assert_bit_identical

    torch.set_num_threads(1)
    marked, functions = statements()
    rows = []
    for name, make in pairs.PAIRS.items():
        if names and name not in names:
            continue
        a, b, arguments = make()
        row = {"pair": name, "class": "wrong", "told": "", "a": None, "b": None}
        begin = time.perf_counter()
        try:
            assert_bit_identical(a, b, *arguments)
        except NotBitIdentical as error:
            pivot = error.pivot
            row["class"], lines = judge(pivot, marked, functions, name)
            row.update(lines, told=f"{pivot['kind']} at {pivot['boundary']}, {pivot['phase']}" if pivot else "no operator")
            if show:
                print(error, "\n")
        except Exception as error:
            row["told"] = f"{type(error).__name__}: {error}"
        row["seconds"] = round(time.perf_counter() - begin, 2)
        rows.append(row)
        print(f"{row['class']:6} {name:20} a {row['a'] or '-':>4} b {row['b'] or '-':>4}  {row['seconds']:5.2f} s  {row['told']}", flush=True)
    return {"first_try": False, "torch": torch.__version__, "rows": rows, **cost(assert_bit_identical)}


def cost(check):
    """Of a pair that is equal: 8 layers of attention and a backward pass."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Sequential(*(nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True) for _ in range(8)))
    x = torch.randn(4, 64, 64)

    def alone():
        for _ in range(2):
            model(x).sum().backward()

    def best(call):
        times = []
        for _ in range(5):
            begin = time.perf_counter()
            call()
            times.append(time.perf_counter() - begin)
        return min(times)

    alone_s, checked_s = best(alone), best(lambda: check(model, model, x))
    imported = "import pytest, time; t = time.perf_counter(); import opguard.testing.plugin; print(time.perf_counter() - t)"
    imports = [subprocess.run([sys.executable, "-c", imported], cwd=ROOT / "build" / "release" / "python", capture_output=True, text=True, check=True)
               for _ in range(5)]  # fmt: skip
    return {"plugin_ms": round(min(float(done.stdout) for done in imports) * 1e3, 1), "alone_ms": round(alone_s * 1e3, 1), "checked_ms": round(checked_s * 1e3, 1)}


def write_table(found, document):
    count = {kind: sum(row["class"] == kind for row in found["rows"]) for kind in ("exact", "near", "wrong")}
    text = "| pair | named | how |\n|---|---|---|\n"
    for row in found["rows"]:
        text += f"| {row['pair'].replace('_', ' ')} | {row['class']} | {row['told']} |\n"
    text += f"\n{len(found['rows'])} pairs (bench/bit_identical.py, torch {found['torch']}): {count['exact']} exact, {count['near']} near, {count['wrong']} wrong.\n"
    if "first" in found:
        text += f"At the first try they were {found['first']['exact']}, {found['first']['near']} and {found['first']['wrong']}.\n"
    text += f"A pair that is equal took {found['checked_ms']:g} ms, both functions alone {found['alone_ms']:g} ms (8 layers).\n"
    text += f"Loading the plugin takes {found['plugin_ms']:g} ms.\n"
    path = ROOT / document
    page = path.read_text()
    begin, end = "<!-- bit_identical -->\n", "<!-- /bit_identical -->"
    path.write_text(page[: page.index(begin) + len(begin)] + text + page[page.index(end) :])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these pairs; --json is not written")
    parser.add_argument("--show", action="store_true", help="print each failure")
    parser.add_argument("--table", metavar="DOCUMENT")
    o = parser.parse_args()
    if o.table:
        write_table(json.loads(o.json.read_text()), o.table)
        return 0
    found = run(o.only, o.show)
    if o.json and not o.only:
        # The first try of each pair stands as it was: the counts of the file that is replaced, or these.
        before = json.loads(o.json.read_text()) if o.json.exists() else {}
        count = {kind: sum(row["class"] == kind for row in found["rows"]) for kind in ("exact", "near", "wrong")}
        found["first"] = before.get("first", count)
        del found["first_try"]
        o.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0 if all(row["class"] == "exact" for row in found["rows"]) else 1


if __name__ == "__main__":
    sys.exit(main())
