"""Python text that can be rewritten byte for byte while the mutated statement is followed.

Every byte carries a mark. A mutation marks the bytes of its statement; an edit copies slices of the old text with their marks.
So where a later refactoring moves a part of that statement into a helper, the helper's line is still known to be the mutated one.

    text = Text(b"y = a + b\n")
    src = Source(text)
    text = text.edit([Edit(4, 9, [b"b + a"])])
"""
import ast
import re
from array import array
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Edit:
    """Bytes [start, end) become parts: bytes, or (start, end) slices of the text before the edit."""

    start: int
    end: int
    parts: tuple


class Text:
    """Bytes; each one's mark (1: of the mutated statement, 2: of the expression in it), and its offset in the text as it was first."""

    def __init__(self, data, marks=None, origins=None):
        self.data = data
        self.marks = bytes(len(data)) if marks is None else marks
        self.origins = array("l", range(len(data))) if origins is None else origins

    def marked(self, start, end, mark=1):
        return Text(self.data, self.marks[:start] + bytes([mark]) * (end - start) + self.marks[end:], self.origins)

    def edit(self, edits):
        data, marks, origins, at = [], [], array("l"), 0
        copied = [p for e in edits for p in e.parts if not isinstance(p, bytes)]
        for edit in sorted(edits, key=lambda e: (e.start, e.end)):
            if edit.start < at:
                raise ValueError("edits overlap")
            data.append(self.data[at : edit.start])
            marks.append(self.marks[at : edit.start])
            origins += self.origins[at : edit.start]
            # New text belongs to the statement where it replaces a part of it, or stands inside it.
            around = self.marks[edit.start : edit.end] if edit.end > edit.start else self.marks[max(edit.start - 1, 0) : edit.start + 1]
            mark = bytes([min(around)]) if around else b"\0"
            # A new name stands for the old one, unless the old text goes on elsewhere.
            stands = len(edit.parts) == 1 and not any(first < edit.end and edit.start < last for first, last in copied)
            old = self.origins[edit.start : edit.end]
            for part in edit.parts:
                if isinstance(part, bytes):
                    data.append(part)
                    marks.append(mark * len(part))
                    if stands and len(old) and part:
                        origins += array("l", [old[min(i, len(old) - 1)] for i in range(len(part) - 1)] + [old[-1]])
                    else:
                        origins += array("l", [-1]) * len(part)
                else:
                    data.append(self.data[part[0] : part[1]])
                    marks.append(self.marks[part[0] : part[1]])
                    origins += self.origins[part[0] : part[1]]
            at = edit.end
        data.append(self.data[at:])
        marks.append(self.marks[at:])
        return Text(b"".join(data), b"".join(marks), origins + self.origins[at:])

    def find(self, start, end):
        """Where bytes [start, end) of the first text stand now; None where they were torn apart."""
        if start == end:
            found = self.find(start, start + 1)
            return found and (found[0], found[0])
        try:
            first, last = self.origins.index(start), len(self.origins) - 1 - self.origins[::-1].index(end - 1)
        except ValueError:
            return None
        inside = [o for o in self.origins[first : last + 1] if o >= 0]
        return (first, last + 1) if inside and all(start <= o < end for o in inside) and inside == sorted(inside) else None


@dataclass
class Kinds:
    """What a traced run saw in one file: the lines that ran, and in each function what its names held."""

    lines: set = field(default_factory=set)
    names: dict = field(default_factory=dict)  # "first line of the function" -> {name or dotted chain: kind}


class Source:
    """A parsed Text. kinds: of the text as it was first, which is what was traced. name: the file's, below the tree."""

    def __init__(self, text, kinds=None, first=None, name=""):
        self.text, self.data, self.kinds, self.name, self.numbers = text, text.data, kinds, name, 0
        self.first = first or self  # the source as it was traced
        self.tree = ast.parse(self.data)
        self.lines = [0] + [m.end() for m in re.finditer(rb"\n", self.data)]
        self.parents = {}
        for node in ast.walk(self.tree):
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node

    def start(self, node):
        return self.lines[node.lineno - 1] + node.col_offset

    def end(self, node):
        return self.lines[node.end_lineno - 1] + node.end_col_offset

    def span(self, node):
        return self.start(node), self.end(node)

    def of(self, node):
        return self.data[self.start(node) : self.end(node)]

    def up(self, node):
        while node in self.parents:
            node = self.parents[node]
            yield node

    def statement(self, node):
        return node if isinstance(node, ast.stmt) else next(n for n in self.up(node) if isinstance(n, ast.stmt))

    def function(self, node):
        return next((n for n in self.up(node) if isinstance(n, FUNCTIONS)), None)

    def in_class_body(self, node):
        return isinstance(self.parents.get(node), ast.ClassDef)

    def header_end(self, statement):
        """Where the part of a statement ends that is its own: a compound statement's head."""
        body = getattr(statement, "body", None)
        if not isinstance(body, list) or not body:
            return self.end(statement)
        first = body[0]
        at = min([self.start(first)] + [self.start(d) for d in getattr(first, "decorator_list", [])])
        return len(self.data[:at].rstrip())

    def begin(self, statement):
        """Its first byte, decorators included."""
        return min([self.start(statement)] + [self.start(d) - 1 for d in getattr(statement, "decorator_list", [])])

    def indent(self, statement):
        """The white space before a statement that has its lines to itself, else None."""
        before = self.data[self.lines[statement.lineno - 1] : self.start(statement)]
        last = self.lines[statement.end_lineno] if statement.end_lineno < len(self.lines) else len(self.data)
        after = self.data[self.end(statement) : last]
        return before if not before.strip() and re.fullmatch(rb"[ \t]*(#[^\n]*)?\n?", after) else None

    def next_line(self, statement):
        return self.lines[statement.end_lineno] if statement.end_lineno < len(self.lines) else len(self.data)

    @cached_property
    def statements(self):
        return [n for n in ast.walk(self.tree) if isinstance(n, ast.stmt)]

    def ran(self, statement):
        """Whether the traced run executed the statement itself (a body's lines are not its own)."""
        if self.kinds is None:
            return False
        first, last = statement.lineno, self.line_of(self.header_end(statement) - 1)
        return any(self.first_line(self.text_of_line(line)) in self.kinds.lines for line in range(first, last + 1))

    def text_of_line(self, line):
        """Where a line's text begins."""
        at = self.lines[line - 1]
        end = self.lines[line] if line < len(self.lines) else len(self.data)
        while at < end - 1 and self.data[at : at + 1].isspace():
            at += 1
        return min(at, len(self.data) - 1)

    def first_line(self, offset):
        """The line that a byte stood on when the text was traced, 0 for a new one."""
        origin = self.text.origins[offset]
        return bisect_right(self.first.lines, origin) if origin >= 0 else 0

    def line_of(self, offset):
        return bisect_right(self.lines, offset)

    @cached_property
    def executed(self):
        """The statements that ran, without docstrings and imports."""
        out = []
        for statement in self.statements:
            if isinstance(statement, (ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Pass, ast.ClassDef)):
                continue
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                continue
            if self.ran(statement):
                out.append(statement)
        return out

    def own_nodes(self, statement):
        """The expressions of a statement's own part, not those of its body; lambdas and f-strings are left alone."""
        heads = []
        for name, value in ast.iter_fields(statement):
            if name in ("body", "orelse", "finalbody", "handlers", "cases", "decorator_list", "returns", "annotation"):
                continue
            heads += value if isinstance(value, list) else [value]
        stack = [n for n in heads if isinstance(n, ast.AST)]
        while stack:
            node = stack.pop()
            if isinstance(node, (ast.JoinedStr, ast.Lambda, ast.stmt)):
                continue
            if isinstance(node, ast.arg):
                continue
            yield node
            stack += [c for c in ast.iter_child_nodes(node) if isinstance(c, ast.AST)]

    # What a traced run knows of a name.

    def scope(self, node):
        """The names the traced run saw in the function around a node."""
        if self.kinds is None:
            return {}
        function = self.function(node)
        if function is None:
            return self.kinds.names.get("1", {})
        first = self.first_line(self.begin(function))
        return self.kinds.names.get(str(first), {})

    def kind(self, node):
        """What an expression is: "tensor ...", "float", "int", "module ...", or "" where it cannot be told."""
        if isinstance(node, ast.Constant):
            return type(node.value).__name__
        if isinstance(node, (ast.Name, ast.Attribute)):
            chain = dotted(node)
            if chain and (found := self.scope(node).get(chain)):
                return found
            return ""
        if isinstance(node, ast.BinOp):
            both = (self.kind(node.left), self.kind(node.right))
            for kind in both:
                if kind.startswith("tensor"):
                    return kind
            return "float" if "float" in both else "int" if both == ("int", "int") and not isinstance(node.op, ast.Div) else ""
        if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
            return self.kind(node.operand)
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr in SAME_KIND:
                inner = node.func.value
                if dotted(inner) in ("torch", "F", "nn.functional", "torch.nn.functional"):
                    return self.kind(node.args[0]) if node.args else ""
                return self.kind(inner)
            target = self.parents.get(node)
            if isinstance(target, ast.Assign) and target.value is node and len(target.targets) == 1 and isinstance(target.targets[0], ast.Name):
                found = self.scope(node).get(target.targets[0].id, "")
                # Names are bound again and again: only where the name is new can its kind be the call's.
                return found if found.startswith("tensor") else ""
        return ""

    def is_tensor(self, node):
        return self.kind(node).startswith("tensor")

    def is_float_tensor(self, node):
        return self.kind(node).startswith("tensor float") or self.kind(node).startswith("tensor bfloat")

    def is_number(self, node):
        return self.kind(node) in ("int", "float")

    def imports_torch(self):
        return any(isinstance(s, ast.Import) and any(a.name == "torch" and not a.asname for a in s.names) for s in self.tree.body)

    def marked_statements(self):
        """The statements whose own part holds bytes of the mutated expression; if nothing is left of it, of the mutated statement."""
        own = [s for s in self.statements if not isinstance(s, ast.ClassDef)]
        marks = [max(self.text.marks[self.begin(s) : self.header_end(s)], default=0) for s in own]
        return [s for s, mark in zip(own, marks) if mark and mark == max(marks)]


# Calls that give a tensor of their first operand's type.
SAME_KIND = {
    "float", "transpose", "permute", "reshape", "view", "contiguous", "unsqueeze", "squeeze", "softmax", "exp", "sqrt", "rsqrt", "pow", "abs", "tanh",
    "sigmoid", "gelu", "silu", "relu", "matmul", "mul", "add", "sub", "div", "clamp", "mean", "sum", "detach", "clone", "flatten", "masked_fill", "cos",
    "sin", "dropout", "layer_norm", "linear", "log", "log_softmax", "cumsum", "expand", "square", "neg", "zeros_like", "ones_like", "rand_like", "randn_like",
}  # fmt: skip


def dotted(node):
    """"a.b.c" of a chain of attributes, else None."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


def callee(call):
    """The last name of what is called."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id if isinstance(call.func, ast.Name) else ""
