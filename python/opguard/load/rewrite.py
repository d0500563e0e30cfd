"""Instrumented text -> code whose lines and columns are the original's.

Probes are insertions on one line, and one whole line is the import. So positions are mapped back by
arithmetic; the original text is not needed.

    y = og("mul:77ab", h) * 2      `h` at column 19 is column 4 of `y = h * 2`; the closing `)` counts one more

So a traceback, inspect.getsource and a debugger show the user's own line. Counterexample: up to Python 3.11 the
parser gives what stands inside an f-string no true place; there probes are found in its text (add_string).

The cost: one walk over the file's syntax tree when it is imported."""

import ast
import functools
import importlib.util
import re
import sys

_MARK = "# opguard: probes"
_IMPORT = re.compile(r"\s*from opguard import og(?: as (\w+))?\s*" + re.escape(_MARK) + r"(?:, comments)?(?:, isort: skip)?\s*$")

_BIND = "%s = __import__('opguard').og"
_BIND_MAIN = "%s = __import__('opguard.load.hook').load.hook.enter_main(globals())"

# What may stand behind `og`.
_VARIANTS = ("name", "aug", "writes", "step", "micro_batch")
# Up to 3.11 the parser gives expressions inside f-strings no true positions.
_STRINGS_ARE_OPAQUE = sys.version_info < (3, 12)

# x += y became x = og.name(id, x).iadd(y): the token by the method's name.
_TOKENS = {
    "iadd": "+=", "isub": "-=", "imul": "*=", "itruediv": "/=", "ifloordiv": "//=", "imod": "%=", "ipow": "**=",
    "imatmul": "@=", "iand": "&=", "ior": "|=", "ixor": "^=", "ilshift": "<<=", "irshift": ">>=",
}  # fmt: skip


class _Columns:
    """Inserted stretches, by line: original column of an instrumented one."""

    def __init__(self, lines, name):
        self.lines, self.stretches = lines, {}
        wrap = rb"""%s(?:\.(?:%s))?\(\s*(?:"[^"\\]*"|'[^'\\]*')\s*,\s*""" % (name.encode(), "|".join(_VARIANTS).encode())
        self.opening = re.compile(wrap)
        # From the `=` to the parenthesis that opens the right side; the blanks were there before.
        self.assign = re.compile(rb"=(\s*)" + wrap + rb"[^()]*\)\.(i\w+)\(")

    def add(self, line, start, length, stays=0):
        """A stretch of `length` bytes at `start` was inserted; `stays` columns stood in its place before, as the
        `+=` of what is now `= og.name(id, x).iadd(`."""
        self.stretches.setdefault(line, []).append((start, length, stays))

    def add_probe(self, call):
        opening = self.opening.match(self.lines[call.lineno - 1], call.col_offset)
        if opening:
            self.add(call.lineno, call.col_offset, opening.end() - opening.start())
            self.add(call.end_lineno, call.end_col_offset - 1, 1)

    def add_augment(self, assign):
        """`x = og.name(id, x).iadd(y)`; the probe inside it is part of the stretch."""
        target, call = assign.targets[0], assign.value
        found = self.assign.search(self.lines[target.end_lineno - 1], target.end_col_offset)
        if found and call.func.value.lineno == target.end_lineno:
            stays = len(_TOKENS[found.group(2).decode()]) + len(found.group(1))
            self.add(target.end_lineno, found.start(), found.end() - found.start(), stays)
            self.add(call.end_lineno, call.end_col_offset - 1, 1)

    def add_string(self, string):
        """Every probe inside an f-string, found in its text."""
        for line in range(string.lineno, string.end_lineno + 1):
            text = self.lines[line - 1]
            first = string.col_offset if line == string.lineno else 0
            last = string.end_col_offset if line == string.end_lineno else len(text)
            for opening in self.opening.finditer(text, first, last):
                self.add(line, opening.start(), opening.end() - opening.start())
                end = self.closing(line, opening.end())
                if end:
                    self.add(*end, 1)

    def closing(self, line, column):
        """(line, column) of the parenthesis that closes what is open at this place."""
        depth, quote = 1, None
        while line <= len(self.lines):
            text = self.lines[line - 1]
            while column < len(text):
                c = text[column : column + 1]
                if quote:
                    quote = None if c == quote else quote
                elif c in b"\"'":
                    quote = c
                elif c in b"([{":
                    depth += 1
                elif c in b")]}":
                    depth -= 1
                    if depth == 0:
                        return line, column
                column += 1
            line, column = line + 1, 0

    def original_line(self, line):
        """The text of a line without what was inserted."""
        text = self.lines[line - 1]
        for start, length, stays in sorted(self.stretches.get(line, ()), reverse=True):
            found = self.assign.match(text, start) if stays else None
            kept = _TOKENS[found.group(2).decode()].encode() + found.group(1) if found else b""
            text = text[:start] + kept + text[start + length :]
        return text

    def original(self, line, column):
        """The column without the insertions before it. One inside an insertion is where that begins."""
        removed = 0
        for start, length, stays in self.stretches.get(line, ()):
            if column >= start + length:
                removed += length - stays
            elif column > start:
                removed += column - start
        return column - removed


def _is_probe(node, name):
    """og(id, x), og.name(id, x) and the like: a call by that name with two arguments."""
    if not (isinstance(node, ast.Call) and len(node.args) == 2):
        return False
    function = node.func
    if isinstance(function, ast.Attribute) and function.attr in _VARIANTS:
        function = function.value
    return isinstance(function, ast.Name) and function.id == name


def _is_augment(node, name):
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Attribute)
        and _is_probe(node.value.func.value, name)
        and isinstance(node.value.func.value.args[1], ast.Name)
        and node.value.func.attr.startswith("i")
    )


def _walk(node):
    """Parents before their children, and no further than an opaque f-string."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        if not (isinstance(node, ast.JoinedStr) and _STRINGS_ARE_OPAQUE):
            waiting.extend(ast.iter_child_nodes(node))


def _columns(tree, lines, name):
    columns, inside = _Columns(lines, name), set()
    for node in _walk(tree):
        if isinstance(node, ast.JoinedStr) and _STRINGS_ARE_OPAQUE:
            columns.add_string(node)
        elif _is_augment(node, name):
            columns.add_augment(node)
            inside.add(node.value.func.value)
        elif _is_probe(node, name) and node not in inside:
            columns.add_probe(node)
    return columns


def _find_import(tree, lines):
    """(index in the body, the name `og` has in this file)."""
    for index, node in enumerate(tree.body):
        if isinstance(node, ast.ImportFrom) and node.module == "opguard":
            found = _IMPORT.match(lines[node.lineno - 1].decode("utf-8"))
            if found:
                return index, found.group(1) or "og"
    return None, None


def _after_prologue(tree):
    """Where a statement may go: behind the docstring and the `__future__` imports."""
    index = 0
    for index, node in enumerate(tree.body):
        docstring = index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not (docstring or isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            return index
    return index + 1 if tree.body else 0


def _bind(statement, name, line):
    """The import line as an assignment at the same line. `name` is what the file calls og: a file may have a name og of
    its own."""
    bind = ast.parse(statement % name).body[0]
    for node in ast.walk(bind):
        if hasattr(node, "lineno"):
            node.lineno = node.end_lineno = line
            node.col_offset = node.end_col_offset = 0
    return bind


def place_as_original(tree, text):
    """Gives the nodes of an instrumented text's tree the original's positions. Gives (index of our import in its
    body, its line, the name `og` has); None for a text without our import line."""
    lines = [line.encode("utf-8") for line in text.split("\n")]
    index, name = _find_import(tree, lines)
    if index is None:
        return None
    imported = tree.body[index].lineno
    columns = _columns(tree, lines, name)
    for node in ast.walk(tree):
        if getattr(node, "end_lineno", None) is None:
            continue
        node.col_offset = columns.original(node.lineno, node.col_offset)
        node.end_col_offset = columns.original(node.end_lineno, node.end_col_offset)
        node.lineno -= node.lineno > imported
        node.end_lineno -= node.end_lineno > imported
    return index, imported, name


@functools.lru_cache(16)
def without_probes(text):
    """The lines of a patched text without its probes, as many as it has; None for a text without our import line."""
    tree = ast.parse(text)
    lines = [line.encode("utf-8") for line in text.split("\n")]
    index, name = _find_import(tree, lines)
    if index is None:
        return None
    columns = _columns(tree, lines, name)
    return [columns.original_line(number + 1).decode("utf-8") for number in range(len(lines))]


def compile_instrumented(text_path, filename, is_main=False):
    """Code of the text under the original's file name. A text without our import line (the plain form of a
    file that carries probes) is compiled as it is."""
    with open(text_path, "rb") as source:
        text = importlib.util.decode_source(source.read())
    tree = ast.parse(text, filename)
    found = place_as_original(tree, text)
    if found is None:
        if is_main:
            tree.body.insert(_after_prologue(tree), _bind(_BIND_MAIN, "_opguard_og", 1))
        return compile(tree, filename, "exec", dont_inherit=True)
    index, imported, name = found
    tree.body[index] = _bind(_BIND_MAIN if is_main else _BIND, name, imported)
    return compile(tree, filename, "exec", dont_inherit=True)
