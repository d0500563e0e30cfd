#!/usr/bin/env python3
"""Puts a probe at every site of real sources and takes them out again; CPython's own parser is the judge.

    bench/wrap_all.py --instrument build/src/cli/opguard-instrument --json out.json PATH...

For each file that the running interpreter can parse: the instrumented text parses; its syntax tree without
probes, at the positions the import hook gives it, is the original's; and --strip gives the original bytes."""

import argparse
import ast
import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
AUGMENT = {
    "iadd": ast.Add, "isub": ast.Sub, "imul": ast.Mult, "imatmul": ast.MatMult, "itruediv": ast.Div,
    "ifloordiv": ast.FloorDiv, "imod": ast.Mod, "ipow": ast.Pow, "ilshift": ast.LShift, "irshift": ast.RShift,
    "iand": ast.BitAnd, "ixor": ast.BitXor, "ior": ast.BitOr,
}  # fmt: skip
VARIANTS = ("name", "aug", "writes", "step", "micro_batch")
# Up to 3.11 expressions inside f-strings have no true positions.
OPAQUE = sys.version_info < (3, 12)


def import_hook():
    """The import hook's own code; it needs nothing of the package."""
    spec = importlib.util.spec_from_file_location("rewrite", ROOT / "python" / "opguard" / "load" / "rewrite.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Unwrap(ast.NodeTransformer):
    """Takes the probes out of a syntax tree, by what docs/design/architecture.md says they mean."""

    def __init__(self, name):
        self.name = name
        self.count = 0

    def is_probe(self, node):
        if not isinstance(node, ast.Call):
            return False
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr in VARIANTS:
            function = function.value
        return isinstance(function, ast.Name) and function.id == self.name

    def visit_Call(self, node):
        if not self.is_probe(node):
            return self.generic_visit(node)
        (boundary, operand), self.count = node.args, self.count + 1
        assert isinstance(boundary.value, str) and not node.keywords
        return self.visit(operand)

    def visit_Assign(self, node):
        call = node.value
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
            return self.generic_visit(node)
        if call.func.attr not in AUGMENT or not self.is_probe(call.func.value):
            return self.generic_visit(node)
        self.count += 1
        (target,), (value,) = node.targets, call.args
        assert ast.dump(call.func.value.args[1]) == ast.dump(ast.Name(target.id, ast.Load()))
        back = ast.AugAssign(target, AUGMENT[call.func.attr](), self.visit(value))
        return ast.copy_location(back, node)


class Forget(ast.NodeTransformer):
    """Takes the positions inside f-strings away, where they are none."""

    def visit_JoinedStr(self, node):
        for inside in ast.walk(node):
            for name in ("lineno", "end_lineno", "col_offset", "end_col_offset"):
                if hasattr(inside, name):
                    setattr(inside, name, 0)
        return node


def plain_tree(text, rewrite):
    """(tree of an instrumented text without import line and probes, count of probes)."""
    tree = ast.parse(text)
    index, _, name = rewrite.place_as_original(tree, text)
    del tree.body[index]
    unwrap = Unwrap(name)
    return unwrap.visit(tree), unwrap.count


def dump(tree, positions=True):
    return ast.dump(Forget().visit(tree) if OPAQUE else tree, include_attributes=positions)


def readable(path):
    """The text, or None for what is no Python of this version."""
    data = path.read_bytes()
    try:
        text = importlib.util.decode_source(data)
        ast.parse(text)
    except (SyntaxError, UnicodeDecodeError, ValueError, RecursionError):
        return None
    # The tool takes files one encoding at a time: UTF-8.
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return text


def wrap_all(paths, instrument):
    """Counts, seconds, and the files for which a promise does not hold."""
    rewrite = import_hook()
    result = {"python": "%d.%d" % sys.version_info[:2], "files": 0, "skipped": 0, "probes": 0, "bytes": 0,
              "refused": [], "faults": []}
    with tempfile.TemporaryDirectory() as folder:
        tree, originals = Path(folder), {}
        for root in map(Path, paths):
            files = [root] if root.is_file() else sorted(root.rglob("*.py"))
            for file in files:
                if "__pycache__" in file.parts or "site-packages" in file.relative_to(root).parts:
                    continue
                text = readable(file)
                if text is None:
                    result["skipped"] += 1
                    continue
                # Numbered: two roots may hold the same names.
                copy = tree / ("f%d" % len(originals)) / file.name
                copy.parent.mkdir()
                shutil.copyfile(file, copy)
                originals[copy] = (file, text)
        start = time.monotonic()
        for attempt in range(20):
            done = subprocess.run([instrument, folder, "--all-sites", "--apply"], capture_output=True, text=True)
            if done.returncode == 0:
                break
            # Every file or none: what our grammar or the patcher refuses is named, and left out.
            refused = [copy for copy in originals if str(copy) in done.stderr]
            if not refused:
                raise SystemExit(done.stderr)
            for copy in refused:
                why = next(line for line in done.stderr.splitlines() if str(copy) in line)
                result["refused"].append([str(originals.pop(copy)[0]), why.replace(str(copy), "")])
                copy.unlink()
        result["instrument_s"] = round(time.monotonic() - start, 2)
        sys.setrecursionlimit(20000)
        for copy, (file, text) in originals.items():
            result["files"] += 1
            result["bytes"] += len(text)
            if copy.read_bytes() == file.read_bytes():
                continue
            try:
                found, probes = plain_tree(importlib.util.decode_source(copy.read_bytes()), rewrite)
                result["probes"] += probes
                if dump(found) != dump(ast.parse(text)):
                    same = dump(found, False) == dump(ast.parse(text), False)
                    result["faults"].append([str(file), "another position" if same else "another tree"])
            except SyntaxError as error:
                result["faults"].append([str(file), str(error)])
        start = time.monotonic()
        subprocess.run([instrument, folder, "--strip", "--apply"], check=True, stderr=subprocess.DEVNULL)
        result["strip_s"] = round(time.monotonic() - start, 2)
        for copy, (file, _) in originals.items():
            if copy.read_bytes() != file.read_bytes():
                result["faults"].append([str(file), "not the original bytes after --strip"])
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", help="files and folders of Python sources")
    parser.add_argument("--instrument", default=str(ROOT / "build/release/src/cli/opguard-instrument"))
    parser.add_argument("--json", help="write the result here")
    options = parser.parse_args()
    result = wrap_all(options.paths, options.instrument)
    text = json.dumps(result, indent=1)
    if options.json:
        Path(options.json).write_text(text + "\n")
    print(text)
    return 1 if result["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
