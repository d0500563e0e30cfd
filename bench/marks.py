"""The part of a document that a program writes: between the lines <!-- KEY --> and <!-- /KEY -->."""
import re
import textwrap


def put(document, key, text):
    """The document with the text between the marks, in place of what stood there."""
    begin, end = f"<!-- {key} -->", f"<!-- /{key} -->"
    head, rest = document.read_text().split(begin)
    document.write_text(f"{head}{begin}\n{text.rstrip()}\n{end}{rest.split(end)[1]}")


def table(headings, rows):
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def wrapped(text):
    """Prose and list items at 118 columns."""
    parts = [textwrap.fill(" ".join(part.split()), 118, subsequent_indent="  " * part.startswith("- "), break_on_hyphens=False)
             for part in re.split(r"\n\n|\n(?=- )", text.strip())]  # fmt: skip
    return "".join(part + ("\n" if part.startswith("- ") and after.startswith("- ") else "\n\n") for part, after in zip(parts, parts[1:] + [""]))
