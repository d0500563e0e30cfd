"""The tree as a house: rooms, floors, arrows, circles, and how much of it is comment.

  rooms.py [--revision REV] [--build DIR] [--json FILE]
  rooms.py --json FILE --table docs/design/index.md     # puts what FILE holds into the document; reads no source

A room is a folder of src/, or python/opguard. An arrow A -> B: a file of A includes or imports one of B.
--build: an arrow also counts the functions of B that A's objects call, by the symbols of the build's archives.
A room's floor is one above the highest room that it uses; floor 1 uses none.
Where rooms use each other in a circle, the thinnest arrows that open it are called upward.
Files that include or import each other in a circle are named; an import inside of a function ties no circle.
A comment is a line that holds nothing else; of Python also the lines of doc-strings. Empty lines are not counted.

--json FILE holds one measurement a revision: one that is there already is replaced, the others stay.
"""
import argparse
import ast
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter, defaultdict
from itertools import permutations
from pathlib import Path

import marks

ROOT = Path(__file__).resolve().parents[1]
SOURCES = (".cc", ".h", ".cu", ".inc", ".py")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def room_of(file):
    parts = Path(file).parts
    return parts[1] if parts[0] == "src" else "python"


def python_imports(text, file, files):
    """(file of the tree, whether the import stands at module level) of a Python file's imports.

    `from opguard import _rt` is no arrow: a package's __init__.py only hands names on.
    """
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            package = ".".join(Path(file).parts[1 : -node.level]) if node.level else ""
            base = ".".join(filter(None, (package, node.module)))
            names = [base, *(f"{base}.{a.name}" for a in node.names)]
        else:
            continue
        for path in ("python/" + name.replace(".", "/") + ".py" for name in names):
            if path in files and path != file:
                yield path, node in tree.body


def comment_lines(text, file):
    """(lines that are nothing but comment, lines that are not empty)"""
    lines = [line.strip() for line in text.splitlines()]
    comments = {n for n, line in enumerate(lines) if line.startswith("#" if file.endswith(".py") else "//")}
    if file.endswith(".py"):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(node) is not None:
                doc = node.body[0]
                comments |= set(range(doc.lineno - 1, doc.end_lineno))
    filled = {n for n, line in enumerate(lines) if line}
    return len(comments & filled), len(filled)


def circles(arrows):
    """The strongly connected parts of more than one node (Tarjan), each sorted."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in arrows.get(node, ()):
            if other not in index:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            part = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(part) > 1:
                found.append(sorted(part))

    sys.setrecursionlimit(10_000)
    for node in sorted(arrows):
        if node not in index:
            visit(node)
    return sorted(found)


def upward(arrows):
    """The thinnest arrows without which no rooms use each other in a circle: [(from, to)]."""
    found = []
    for part in circles(arrows):
        def against(order):
            place = {room: n for n, room in enumerate(order)}
            return [(a, b) for a in part for b in arrows[a] if b in place and place[a] < place[b]]

        found += min((against(order) for order in permutations(part)), key=lambda back: sum(arrows[a][b] for a, b in back))
    return found


def floors(rooms, arrows, back):
    def floor(room):
        return 1 + max((floor(other) for other in arrows.get(room, ()) if (room, other) not in back), default=0)

    return {room: floor(room) for room in rooms}


def archive_calls(build):
    """{room: {room: functions}}: which functions that another room defines the objects of a room call, by nm."""
    defined, wanted = {}, defaultdict(set)
    src = build / "src"
    for library in sorted([*src.rglob("*.a"), *src.rglob("*.o")]):
        room = library.relative_to(src).parts[0]
        if library.suffix == ".o" and room not in ("cli", "runtime", "inject", "keep"):
            continue  # it lies in the archive too
        for line in subprocess.run(["nm", "-P", library], capture_output=True, text=True).stdout.splitlines():
            name, kind = (line.split() + ["", ""])[:2]
            if kind in ("T", "R", "B", "D"):  # W: an inline function, which everybody has
                defined[name] = room
            elif kind == "U":
                wanted[room].add(name)
    calls = {}
    for room, names in wanted.items():
        count = Counter(defined[n] for n in names if n in defined and defined[n] != room)
        calls[room] = dict(sorted(count.items()))
    return calls


def measure(tree, files):
    texts = {f: (tree / f).read_text(errors="replace") for f in files}
    ties, arrows = defaultdict(set), defaultdict(Counter)
    rooms = defaultdict(lambda: {"files": 0, "lines": 0, "comments": 0})
    for file, text in texts.items():
        comments, lines = comment_lines(text, file)
        room = rooms[room_of(file)]
        room["files"] += 1
        room["lines"] += lines
        room["comments"] += comments
        if file.endswith(".py"):
            used = dict(sorted(python_imports(text, file, texts)))
        else:
            beside = str(Path(file).parent)
            used = {f: True for name in INCLUDE.findall(text) for f in (f"src/{name}", f"{beside}/{name}") if f in texts}
        for other, at_once in used.items():
            if at_once:
                ties[file].add(other)
            if room_of(other) != room_of(file):
                arrows[room_of(file)][room_of(other)] += 1
    back = upward(arrows)
    for room, floor in floors(rooms, arrows, back).items():
        rooms[room].update(floor=floor, uses=dict(sorted(arrows[room].items())))
    return {
        "rooms": dict(sorted(rooms.items(), key=lambda r: (-r[1]["floor"], r[0]))),
        "floors": max(r["floor"] for r in rooms.values()),
        "arrows": sum(map(len, arrows.values())),
        "upward": [f"{a} -> {b}" for a, b in back],
        "circles": circles(ties),
        "lines": sum(r["lines"] for r in rooms.values()),
        "comments": sum(r["comments"] for r in rooms.values()),
    }


def of_revision(revision):
    """The measurement of a commit, out of its archive; of the files as they lie here without one."""
    def git(*arguments):
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=True).stdout

    head, date = git("log", "-1", "--format=%h %cs", revision or "HEAD").decode().split()
    about = {"revision": head, "date": date}
    places = ("src", "python/opguard")
    if revision is None:
        if git("status", "--porcelain", "--", *places):
            about["revision"] += " and changes"
        files = git("ls-files", "--", *places).decode().split()
        return {**about, **measure(ROOT, [f for f in files if f.endswith(SOURCES) and (ROOT / f).is_file()])}
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "tree.tar"
        archive.write_bytes(git("archive", revision, "--", *places))
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
            files = [m.name for m in tar.getmembers() if m.isfile() and m.name.endswith(SOURCES)]
        return {**about, **measure(Path(folder), files)}


def share(comments, lines):
    return f"{100 * comments / lines:.1f} %"


def tables(measured):
    """The comparison of the revisions, then the rooms of the last one."""
    text = "| commit | date | rooms | floors | arrows | upward | circles of files | lines | of these comment |\n"
    text += "|---|---|---|---|---|---|---|---|---|\n"
    for m in measured:
        named = "; ".join(", ".join(f"`{file}`" for file in c) for c in m["circles"])
        text += (f"| {m['revision']} | {m['date']} | {len(m['rooms'])} | {m['floors']} | {m['arrows']} | {', '.join(m['upward']) or 'none'} | "
                 f"{named or 'none'} | {m['lines']:,} | {share(m['comments'], m['lines'])} |\n")  # fmt: skip
    last = measured[-1]
    calls = last.get("calls", {})
    text += f"\nThe rooms of {last['revision']}, the top floor first:\n\n"
    text += "| floor | room | files | lines | comment | includes or imports (of these, functions called) |\n|---|---|---|---|---|---|\n"
    for name, room in last["rooms"].items():
        called = calls.get(name, {})
        used = ", ".join(f"{other} {n} ({called[other]})" if other in called else f"{other} {n}" for other, n in room["uses"].items())
        text += f"| {room['floor']} | {name} | {room['files']} | {room['lines']:,} | {share(room['comments'], room['lines'])} | {used or '-'} |\n"
    return text


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--revision")
    p.add_argument("--build", type=Path)
    p.add_argument("--json", type=Path)
    p.add_argument("--table", type=Path)
    o = p.parse_args()
    kept = json.loads(o.json.read_text()) if o.json and o.json.exists() else []
    if o.table:
        marks.put(o.table, "rooms", tables(kept))
        return
    found = of_revision(o.revision)
    if o.build:
        found["calls"] = archive_calls(o.build)
    if o.json:
        kept = [m for m in kept if m["revision"] != found["revision"]] + [found]
        o.json.write_text(json.dumps(sorted(kept, key=lambda m: m["date"]), indent=1) + "\n")
    print(tables([found]), end="")


if __name__ == "__main__":
    main()
