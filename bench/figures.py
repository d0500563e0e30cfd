"""The tables of docs/results whose rows come from many programs.

  figures.py ROWS.json KEY DOCUMENT      # a table between the marks <!-- KEY --> and <!-- /KEY -->; runs nothing

ROWS.json: {"columns": [...], "said": a column, "rows": [{column: text, ...}]}. The cell `said` is what was measured:

  "json", "say"   the program's own --json output, kept in that file, in the words of said.py's function of that name
  "measured"      before that file was kept: the text itself, with the date of the page, the command and the machine

A row may have both: as soon as the program's output is kept, the text gives way to it.
"""
import argparse
import json
from pathlib import Path

import marks
import said

ROOT = Path(__file__).resolve().parents[1]


def kept(row):
    """What the row's program measured, in words; "" where its output is not kept.

    torture.py --only read keeps that test alone: the row of `kills` still has nothing.
    """
    path = ROOT / row["json"] if "json" in row else None
    if path is None or not path.exists():
        return ""
    name, *words = row["say"].split()
    return getattr(said, name)(json.loads(path.read_text()), *words)


def cell(row, column):
    """What is kept of the row, else as it was written down."""
    return kept(row) or row[column]


def rows_of(page):
    return [[cell(row, c) if c == page["said"] else row[c] for c in page["columns"]] for row in page["rows"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path)
    parser.add_argument("key")
    parser.add_argument("document", type=Path)
    o = parser.parse_args()
    page = json.loads(o.rows.read_text())
    marks.put(o.document, o.key, marks.table(page["columns"], rows_of(page)))


if __name__ == "__main__":
    main()
