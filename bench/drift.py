"""Real drift: a plan made on one release of a package, applied to later ones.

  drift.py [--opguard FILE] [--files GLOB] [--work DIR] [--verbose] [--json FILE] OLD NEW...

OLD, NEW: unpacked releases (folders). Every call of OLD becomes a boundary. The oracle is a line diff: a call all of whose lines are unchanged, in a
function whose name is unchanged, is expected at the line the diff moved it to, at its own column. Calls on edited lines have no oracle and are
only counted. Files that are equal in both releases are matched with the others and reported apart. Exit code 0 if every expected call is bound
again and none elsewhere.
"""
import argparse
import ast
import difflib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def calls(data):
    """(start, end) byte offsets of every call -> (first line, last line, column, enclosing definitions, with decorators)."""
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = {}

    def visit(node, scope):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            scope = f"{scope}.{node.name}"
        if isinstance(node, ast.JoinedStr):
            return  # positions inside f-strings differ between versions of Python
        if isinstance(node, ast.Call):
            span = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
            found[span] = (node.lineno, node.end_lineno, node.col_offset, scope)
        for child in ast.iter_child_nodes(node):
            visit(child, scope)

    visit(ast.parse(data), "")
    return found


def expected(old, new):
    """(start, end) of a call of old -> (start, end) in new, or None where its lines or its function's name changed."""
    a, b = calls(old), calls(new)
    if old == new:
        return {span: span for span in a}
    line_map = {}
    for i, j, n in difflib.SequenceMatcher(None, old.splitlines(), new.splitlines(), autojunk=False).get_matching_blocks():
        line_map.update((i + k + 1, j + k + 1) for k in range(n))
    at = {(first, last, column, end - start, scope): (start, end) for (start, end), (first, last, column, scope) in b.items()}
    result = {}
    for (start, end), (first, last, column, scope) in a.items():
        to = line_map.get(first)
        whole = to and all(line_map.get(first + k) == to + k for k in range(last - first + 1))
        result[start, end] = at.get((to, to + last - first, column, end - start, scope)) if whole else None
    return result


def compare(opguard, old, new, plan, work, verbose):
    answer = work / "match.json"
    done = subprocess.run([opguard, "match", "--plan", plan, new, "--json", answer], capture_output=True, text=True)
    if done.returncode > 1:
        raise RuntimeError(done.stderr)
    answers = {}
    boundaries = {b["id"]: b for b in json.loads(plan.read_text())["boundaries"]}
    for said in json.loads(answer.read_text())["boundaries"]:
        b = boundaries[said["boundary"]]
        answers.setdefault(b["file"], {})[b["start"], b["end"]] = said
    row = {"files": 0, "files_changed": 0, "calls": 0, "calls_in_changed_files": 0, "expected": 0, "moved_line": 0, "rebound": 0, "unbound": 0,
           "wrong": 0, "edited": 0, "edited_bound": 0}  # fmt: skip
    for path in sorted(old.rglob("*.py")):
        name = path.relative_to(old).as_posix()
        row["files"] += 1
        data, other = path.read_bytes(), (new / name).read_bytes() if (new / name).exists() else b""
        mine = answers.get(name, {})
        oracle = expected(data, other)
        row["calls"] += len(oracle)
        if data != other:
            row["files_changed"] += 1
            row["calls_in_changed_files"] += len(oracle)
        for span, want in oracle.items():
            said = mine.get(span)
            at = said and said["site"]
            got = (at["start"], at["end"]) if at and at["file"] == name else at and (at["file"], at["start"])
            if want is None:
                row["edited"] += 1
                row["edited_bound"] += got is not None
                continue
            row["expected"] += 1
            row["moved_line"] += data.count(b"\n", 0, span[0]) != other.count(b"\n", 0, want[0])
            outcome = "rebound" if got == want else "unbound" if got is None else "wrong"
            row[outcome] += 1
            if outcome != "rebound" and verbose:
                print(f"  {outcome}: {name}:{data.count(b'%c' % 10, 0, span[0]) + 1} {data[span[0]:span[1]][:70]!r}: want "
                      f"{other.count(b'%c' % 10, 0, want[0]) + 1}, got {at and (at['file'], at['line'])} {said and said['why']}")  # fmt: skip
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--opguard", type=Path, default=ROOT / "build" / "release" / "src" / "cli" / "opguard")
    parser.add_argument("--files", help="only files of this pattern, as 'modeling_*.py'")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--verbose", action="store_true", help="print every expected call that is not bound there")
    parser.add_argument("--json", type=Path)
    parser.add_argument("releases", nargs="+", type=Path, metavar="RELEASE")
    options = parser.parse_args()
    opguard, rows = options.opguard.resolve(), []
    with tempfile.TemporaryDirectory() as scratch:
        work = options.work or Path(scratch)
        trees = []
        for k, release in enumerate(options.releases):
            tree = release
            if options.files:
                tree = work / f"release-{k}"
                for path in release.rglob(options.files):
                    copy = tree / path.relative_to(release)
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    copy.write_bytes(path.read_bytes())
            trees.append(tree)
        plan = work / "plan.json"
        subprocess.run([opguard, "plan", "--static", trees[0], "--all-calls", "-o", plan], check=True, capture_output=True)
        for release, tree in list(zip(options.releases, trees))[1:]:
            row = compare(opguard, trees[0], tree, plan, work, options.verbose)
            rows.append({"old": str(options.releases[0]), "new": str(release), **row})
            print(f"{options.releases[0]} -> {release}: {row['files_changed']} of {row['files']} files changed; of {row['expected']} calls on "
                  f"unchanged lines ({row['moved_line']} moved line) {row['rebound']} re-bound, {row['unbound']} not, {row['wrong']} wrong; "
                  f"{row['edited_bound']} of {row['edited']} calls on edited lines bound", flush=True)  # fmt: skip
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if any(row["wrong"] or row["unbound"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
