"""operators.txt -> a table of C++ and one of Python: generate.py TABLE OUT.inc OUT.py

    cat     moves=copy              {.name = "cat", .moves = Moves::copy},      "cat": {"moves": ("copy",)},
    normal  draws=torch,numpy       {.name = "normal", .draws = kTorch | kNumpy},

A row that is not as the table's head says is an error with its place, and nothing is written."""

import re
import sys

# What a column may hold, in the order of C++'s fields. A column with `kind` is an enum class there and holds one value,
# one without is a set of bits.
COLUMNS = {
    "moves": ("Moves", "view either copy"),
    "allocates": ("Allocates", "garbage constant resized"),
    "draws": (None, "torch numpy python asked none"),
    "seeds": (None, "torch numpy python"),
    "overwrites": (None, "self first list"),
    "uncounted": ("Uncounted", "statistics module parameters"),
    "parameters": ("Parameters", "lists clips"),
    "elements": ("Elements", "none form array"),
    "communicates": (None, "c10d functional operator"),
    "python": (
        "",
        "add sub mul div floordiv mod pow matmul lshift rshift and or xor neg invert lt le gt ge eq ne"
        " getitem setitem iter",
    ),
}
PYTHON_ONLY = {"communicates"}


class Fault(Exception):
    pass


def rows(text):
    """(name, column -> values) of each row."""
    last = ""
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        words = list(re.finditer(r"\S+", line))
        name = words[0][0]

        def fault(word, what):
            return Fault(f"{number}:{word.start() + 1}: error: {what}\n{line}\n{' ' * word.start()}^")

        if not re.fullmatch(r"\w+", name) or len(words) == 1:
            raise fault(words[0], "a row is a name and its properties: NAME COLUMN=VALUE...")
        if name <= last:
            raise fault(words[0], f"'{name}' stands behind '{last}': rows are sorted, and a name has one")
        last, row = name, {}
        for word in words[1:]:
            column, _, value = word[0].partition("=")
            if column not in COLUMNS or column in row:
                raise fault(word, f"'{column}' is given twice" if column in row else f"no column '{column}'")
            kind, known = COLUMNS[column]
            values = tuple(value.split(","))
            if not set(values) <= set(known.split()):
                raise fault(word, f"{column} is one of: {known}")
            if len(values) > 1 and (kind is not None or "none" in values):
                raise fault(word, f"{column} has one value")
            row[column] = values
        yield name, row


def field(column, values):
    kind = COLUMNS[column][0]
    if kind is None:
        return " | ".join("k" + value.capitalize() for value in values)
    return f"{kind}::{values[0]}" if kind else f'"{values[0]}"'


def cpp_row(name, row):
    fields = [f'.name = "{name}"']
    for column in COLUMNS:
        if column in row and column not in PYTHON_ONLY and (COLUMNS[column][0] or row[column] != ("none",)):
            fields.append(f".{column} = {field(column, row[column])}")
    return "{" + ", ".join(fields) + "},\n"


def main(table, out_cpp, out_python):
    with open(table, encoding="utf-8") as file:
        try:
            all_rows = list(rows(file.read()))
        except Fault as fault:
            sys.exit(f"{table}:{fault}")
    with open(out_cpp, "w", encoding="utf-8") as file:
        file.write("// Made by src/operators/generate.py of operators.txt.\n")
        file.writelines(cpp_row(name, row) for name, row in all_rows)
    with open(out_python, "w", encoding="utf-8") as file:
        file.write('"""Made by src/operators/generate.py of operators.txt: name -> column -> values."""\n\nTABLE = {\n')
        file.writelines(f'    "{name}": {row},\n' for name, row in all_rows)
        file.write("}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
