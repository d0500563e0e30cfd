"""Writes expect.json from answers.txt: places become statements, and the functions around them.

  answers.py OUT          # OUT: where make.py has laid the pairs out (the releases' sources are read)

answers.txt, one pair a block:
  NAME diverged structure,value      or      NAME identical
    a lion_pytorch/lion_pytorch.py:20-21      a statement of side a (lines); its function counts as near
    b run.py:14                               the program's own file
    near b lion_pytorch/lion_pytorch.py:5     a line of a further function that counts as near
    note: why
"""
import ast
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def function_at(source, line):
    """(qualified name, first line, last line) of the innermost function that holds the line; the module otherwise."""
    found = ("<module>", 1, len(source.splitlines()))

    def look(node, prefix):
        nonlocal found
        for child in ast.iter_child_nodes(node):
            name = prefix
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                name = f"{prefix}.{child.name}" if prefix else child.name
                first = min([child.lineno, *(d.lineno for d in child.decorator_list)])
                if not isinstance(child, ast.ClassDef) and first <= line <= child.end_lineno:
                    found = (name, first, child.end_lineno)
            look(child, name)

    look(ast.parse(source), "")
    return found


def place(text, case, entry, packages):
    side, where = text.split()
    file, _, lines = where.partition(":")
    first, _, last = lines.partition("-")
    if file == "run.py":
        path, package = HERE / "run" / f"{entry.get('run', case)}.py", ""
    else:
        tries = [packages / s.replace("==", "-") / file for s in entry[side].split()]
        path = next((p for p in tries if p.is_file()), None)
        if path is None:
            sys.exit(f"answers.py: error: {case}: no {file} on side {side}")
        package = file.split("/")[0].removesuffix(".py")
    source = path.read_text()
    name, start, end = function_at(source, int(first))
    shown = {"side": side, "package": package, "file": file, "function": name}
    statement = {**shown, "first_line": int(first), "last_line": int(last or first)}
    if statement["last_line"] > len(source.splitlines()):
        sys.exit(f"answers.py: error: {case}: {where} is past the end of the file")
    return statement, {**shown, "first_line": start, "last_line": end}


def main():
    packages = Path(sys.argv[1]).resolve() / "pkgs"
    table = json.loads((HERE / "table.json").read_text())["cases"]
    expected, case = {}, None
    for raw in (HERE / "answers.txt").read_text().splitlines():
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if not raw.startswith(" "):
            case, verdict, *kinds = line.split()
            expected[case] = {"verdict": verdict, "kinds": kinds[0].split(",") if kinds else [],
                              "statements": [], "functions": [], "with": table[case].get("with", [])}
        elif line.startswith("note:"):
            expected[case]["note"] = line.removeprefix("note:").strip()
        else:
            near = line.startswith("near ")
            statement, function = place(line.removeprefix("near "), case, table[case], packages)
            if not near:
                expected[case]["statements"].append(statement)
            if function not in expected[case]["functions"]:
                expected[case]["functions"].append(function)
    (HERE / "expect.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
