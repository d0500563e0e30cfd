"""The shared cases as entries: what to run, in which trees, and what is expected. Knows no case by its name.

A tree is a copy of the case without what gives the answer away: its README, its expectations and its docstrings
(blanked in place, so that every line and column stays).
"""
import ast
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

HINTS = ("README.md", "EXPECTED.md", "expect.json", "faults.py", "setup.sh", "__pycache__")


@dataclass
class Entry:
    name: str
    suite: str  # "minitrain", "library", "control"
    tree_a: Path
    tree_b: Path
    run_a: str
    run_b: str
    expect: dict
    packages: list = field(default_factory=list)
    faults: tuple = None  # (case folder, fault of side a or None, fault of side b or None)
    case: Path = None  # the folder the trees are copied from
    path: str = ""  # put first on PATH


def blank_docstrings(text):
    """The text with every docstring's characters turned into spaces between its quotes."""
    lines = text.splitlines(keepends=True)
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if not node.body or ast.get_docstring(node, clean=False) is None:
            continue
        doc = node.body[0].value
        first, last = doc.lineno - 1, doc.end_lineno - 1
        source = "".join(lines[first : last + 1])
        start = len(lines[first].encode()[: doc.col_offset].decode())
        end = len(source) - len(lines[last]) + len(lines[last].encode()[: doc.end_col_offset].decode())
        literal = source[start:end]
        quote = '"""' if literal.endswith('"""') else "'''" if literal.endswith("'''") else literal[-1]
        head = literal.index(quote) + len(quote)
        body = "".join(c if c in "\r\n" else " " for c in literal[head : -len(quote)])
        changed = source[:start] + literal[:head] + body + literal[-len(quote) :] + source[end:]
        lines[first : last + 1] = changed.splitlines(keepends=True)
    return "".join(lines)


def copy_tree(case, out):
    """A copy of a case's folder without hints, beside a copy of `_common`'s oracle, which its program imports."""
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(case, out, ignore=shutil.ignore_patterns(*HINTS))
    without_docstrings(out)
    common = out.parent / "_common"
    common.mkdir(exist_ok=True)
    shutil.copy(case.parent / "_common" / "oracle.py", common / "oracle.py")


def without_docstrings(tree):
    for path in tree.rglob("*.py"):
        path.write_text(blank_docstrings(path.read_text()))


def make_trees(entry):
    """Writes the trees of an entry anew."""
    for tree, side in ((entry.tree_a, 0), (entry.tree_b, 1)):
        if side == 1 and tree == entry.tree_a:
            continue
        fault = entry.faults[side] if entry.faults else None
        if fault is None:
            copy_tree(entry.case, tree)
            continue
        shutil.rmtree(tree, ignore_errors=True)
        tree.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, entry.case / "faults.py", "--fault", fault, "--out", tree],
                       check=True, stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
        # The tool must not find its answer beside the tree.
        Path(f"{tree}.expect.json").unlink()
        without_docstrings(tree)


def make_environment(case, venvs):
    """The virtual environments of a case, by its own setup.sh, where they are missing."""
    base = Path(os.environ.get("OPGUARD_TORCH_BASE", venvs / "torchbase"))
    env = {**os.environ, "OPGUARD_TORCH_BASE": str(base)}
    here = venvs / case.name
    if (case / "setup.sh").is_file():
        if not (here / "a" / "bin" / "python").exists():
            print(f"accuracy: making the environments of {case.name}", flush=True)
            subprocess.run(["bash", case / "setup.sh", here], check=True, env=env)
    elif not (base / "bin" / "python").exists():
        print("accuracy: making the torch environment", flush=True)
        subprocess.run(["bash", case.parent / "_common" / "mkvenv.sh", venvs / case.name], check=True, env=env)
    return base


IDENTICAL = {"verdict": "identical", "kinds": [], "statements": [], "functions": []}


def read_entries(cases, venvs, work):
    """Every entry of a folder of cases, in the order of their names, and the controls that follow from them."""
    base = Path(os.environ.get("OPGUARD_TORCH_BASE", venvs / "torchbase"))
    entries = []
    for path in sorted(cases.glob("*/expect.json")):
        case, data = path.parent, json.loads(path.read_text())
        for expect in data.get("cases", [data]):
            entries.append(make_entry(case, expect, venvs, base, work))
            entries += self_controls(case, expect, venvs, base, work)
    return entries


def make_entry(case, expect, venvs, base, work, name=None, sides="ab"):
    """sides: which of the case's two sides run as side a and side b of the entry."""
    name = name or expect["case"]
    trees, fault = work / "trees" / name, expect.get("fault")

    def command(role, side):
        text = expect[f"run_{side}"].replace("DIR", str(venvs / case.name))
        # A file of its own for each run: the two must not read each other's.
        return text.replace("CKPT", str(trees / f"{role}.ckpt"))

    faults = tuple(fault if side == "b" else None for side in sides) if fault else None
    one_tree = faults is None or faults[0] == faults[1]
    control = sides != "ab"
    return Entry(
        name=name,
        suite="control" if control else "minitrain" if fault else "library",
        tree_a=trees / "a",
        tree_b=trees / ("a" if one_tree else "b"),
        run_a=command("a", sides[0]),
        run_b=command("b", sides[1]),
        expect=dict(IDENTICAL, case=name) if control else expect,
        packages=expect.get("with", []),
        faults=faults,
        case=case,
        # Cases without an environment of their own run "python" and "torchrun" of the torch base.
        path="" if (case / "setup.sh").is_file() else str(base / "bin"),
    )


def self_controls(case, expect, venvs, base, work):
    """A side against itself. A race differs from itself by design."""
    if "race" in expect["kinds"]:
        return []
    # All faulty trees share one side a; there their own side is worth a run.
    sides = "b" if expect.get("fault") else "ab"
    return [make_entry(case, expect, venvs, base, work, f"{expect['case']}.self_{s}", s + s) for s in sides]


def argument_control(entries, text):
    """CASE=ARGS: side b of a case gets more arguments and must then equal side a."""
    name, _, arguments = text.partition("=")
    for entry in entries:
        if entry.name == name:
            control = f"{name}.control"
            tree = entry.tree_a.parent.parent / control / "a"
            return replace(entry, name=control, suite="control", tree_a=tree, tree_b=tree,
                           run_b=f"{entry.run_b} {arguments}", expect=dict(IDENTICAL, case=control))
    raise SystemExit(f"accuracy.py: error: --control: no case '{name}'")
