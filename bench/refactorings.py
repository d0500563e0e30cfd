"""Refactorings that keep a name and move what it stood for, or the other way round: plugged into the shared generator (refactor_bench.py).

Each takes (src, rng, ctx) and gives the refactored text, whose bytes carry the tags of the calls that they are; None where it does not apply.
Text that is new, and copies, carry no tags: no call of theirs is one that was there. IndexError: nothing of the kind in the file.
"""
import ast
import re

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SIMPLE = (ast.Assign, ast.AugAssign, ast.Expr, ast.Return)


def holds_call(node):
    return any(isinstance(n, ast.Call) for n in ast.walk(node))


def start_of(src, node):
    """Where the line of a definition begins, decorators included."""
    return min([src.line0(node), *(src.line0(d) for d in node.decorator_list)])


def name_at(src, node):
    """Span of the name in `def name` or `class name`."""
    at = re.compile(rb"(?:async\s+)?(?:def|class)\s+(?=\w)").match(src.b, src.s(node)).end()
    return at, at + len(node.name)


def movable(src, function):
    """A function of its own lines, not nested in another, with nothing called in its header and its body on lines of its own."""
    header = [*function.decorator_list, function.args, *([function.returns] if function.returns else [])]
    return (not any(isinstance(x, FUNCTIONS) for x in src.up(function)) and src.own_line(function) is not None and not any(map(holds_call, header))
            and src.own_line(function.body[0]) is not None and holds_call(function))  # fmt: skip


def methods(src):
    """Functions, each with the class it is a method of or None."""
    for node in ast.walk(src.tree):
        if isinstance(node, FUNCTIONS) and movable(src, node):
            parent = src.parent[node]
            if isinstance(parent, (ast.Module, ast.ClassDef)):
                yield node, parent if isinstance(parent, ast.ClassDef) else None


def rename(src, names):
    """Edits that give every name its new one: definitions, names and attributes of self."""
    edits = []
    for node in ast.walk(src.tree):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and node.name in names:
            edits.append((*name_at(src, node), names[node.name]))
        elif isinstance(node, ast.Name) and node.id in names and not src.in_fstr(node):
            edits.append((src.s(node), src.e(node), names[node.id]))
    return edits


def make_wrapper(bench):
    def wrapper(src, rng, ctx):
        """f becomes _f_impl; a new f of its name repeats one to three of its statements and calls it."""
        function, owner = rng.choice([
            (f, c) for f, c in methods(src)
            if not f.name.startswith("__") and not f.decorator_list and len(f.body) > 1 and not (f.args.vararg or f.args.kwarg or f.args.posonlyargs)
        ])  # fmt: skip
        new = rng.choice(["_%s_impl", "_%s_inner", "_do_%s", "%s_body"]) % function.name.lstrip("_")
        if new.encode() in src.b:
            return None
        repeated = [s for s in function.body if isinstance(s, SIMPLE[:3]) and holds_call(s) and b"\n" not in src.text(s) and src.own_line(s) is not None]
        repeated = sorted(rng.sample(repeated, min(len(repeated), rng.randint(1, 3))), key=src.s)
        if not repeated:
            return None
        indent = src.own_line(function.body[0])
        arguments = [a.arg for a in function.args.args] + [f"{a.arg}={a.arg}" for a in function.args.kwonlyargs]
        callee = new
        if owner is not None:
            if not arguments or arguments[0] != "self":
                return None
            callee, arguments = f"self.{new}", arguments[1:]
        call = f"{callee}({', '.join(arguments)})".encode()
        if isinstance(function, ast.AsyncFunctionDef):
            call = b"await " + call
        text = [indent + src.text(s) + b"\n" for s in repeated]
        at = rng.randint(0, len(text))
        text[at:at] = [indent + b"result_ = " + call + b"\n"]
        begin, end = src.line0(function), src.line1(function)
        header = src.b[begin:src.line0(function.body[0])]
        if not src.b[begin:end].endswith(b"\n"):
            return None
        fresh = bench.Buf(header + b"".join(text) + indent + b"return result_\n\n")
        inner = bench.splice(src.buf, [(*name_at(src, function), new)])[begin:end + len(new) - len(function.name)]
        blank = bench.Buf(b"\n")
        return bench.splice(src.buf, [(begin, end, inner + blank + fresh if rng.random() < 0.5 else fresh + inner + blank)])

    return wrapper


def make_swap(bench):
    def swap(src, rng, ctx):
        """Two classes, or two functions of one owner, exchange their names, in the whole file."""
        pairs = []
        for owner in [src.tree, *(n for n in src.tree.body if isinstance(n, ast.ClassDef))]:
            for kind in (ast.ClassDef, ast.FunctionDef):
                # With calls in it, not only in its decorators: nothing else can tell which is which.
                found = [n for n in owner.body if isinstance(n, kind) and not n.name.startswith("__") and any(map(holds_call, n.body))
                         and src.own_line(n) is not None]  # fmt: skip
                if len({n.name for n in found}) == len(found):
                    pairs += [(owner, a, b) for i, a in enumerate(found) for b in found[i + 1:]]  # fmt: skip
        classes = [p for p in pairs if isinstance(p[1], ast.ClassDef)]
        owner, a, b = rng.choice(classes if classes and rng.random() < 0.5 else pairs)
        names = {a.name: b.name, b.name: a.name}
        if isinstance(owner, ast.Module):
            return bench.splice(src.buf, rename(src, names))
        edits = [(*name_at(src, n), names[n.name]) for n in (a, b)]
        for n in ast.walk(owner):
            if isinstance(n, ast.Attribute) and n.attr in names and isinstance(n.value, ast.Name) and n.value.id == "self" and not src.in_fstr(n):
                edits.append((src.e(n) - len(n.attr), src.e(n), names[n.attr]))
        return bench.splice(src.buf, edits)

    return swap


def make_fuse(bench):
    def fuse(src, rng, ctx):
        """self.q, self.k, self.v = Linear(..) each become one Linear; what called them takes a part of its result. All calls of them are gone."""
        groups = []
        for cls in (n for n in ast.walk(src.tree) if isinstance(n, ast.ClassDef)):
            for function in (n for n in cls.body if isinstance(n, FUNCTIONS) and n.name == "__init__"):
                rows = []
                for s in function.body:
                    plain = (isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Attribute) and isinstance(s.value, ast.Call)
                             and isinstance(s.targets[0].value, ast.Name) and s.targets[0].value.id == "self" and src.own_line(s) is not None
                             and len(s.value.args) >= 2 and not any(map(holds_call, s.value.args)))  # fmt: skip
                    key = plain and src.text(s.value.func)
                    if rows and (not plain or key != rows[0][0]):
                        groups.append((cls, rows))
                        rows = []
                    if plain:
                        rows.append((key, s))
                groups.append((cls, rows))
        groups = [(cls, [s for _, s in rows][:rng.choice([2, 3, 3])]) for cls, rows in groups if len(rows) > 1]
        cls, rows = rng.choice(groups)
        attributes = [s.targets[0].attr for s in rows]
        fused = "".join(a[:1] for a in attributes) + "_" + (attributes[0].split("_")[-1] or "proj")
        if fused.encode() in src.b:
            return None
        first = rows[0].value
        sizes = b" + ".join(src.text(s.value.args[1]) for s in rows)
        text = src.b[src.s(rows[0]):src.e(rows[0])]
        offset = src.s(rows[0])
        a, b = src.s(first.args[1]) - offset, src.e(first.args[1]) - offset
        text = text[:a] + sizes + text[b:]
        text = re.sub(rb"self\." + attributes[0].encode() + rb"\b", b"self." + fused.encode(), text, count=1)
        edits = [(src.s(rows[0]), src.e(rows[0]), text)]
        edits += [(src.line0(s), src.line1(s), b"") for s in rows[1:]]
        for function in (n for n in cls.body if isinstance(n, FUNCTIONS) and n.name != "__init__"):
            calls = [n for n in ast.walk(function) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in attributes
                     and isinstance(n.func.value, ast.Name) and n.func.value.id == "self" and len(n.args) == 1 and not holds_call(n.args[0]) and not src.in_fstr(n)]  # fmt: skip
            if not calls:
                continue
            calls.sort(key=src.s)
            statement = calls[0]
            while not (isinstance(statement, ast.stmt) and src.own_line(statement) is not None):
                statement = src.parent[statement]
            indent, at = src.own_line(statement), src.line0(statement)
            parts = ", ".join(a + "_part" for a in attributes).encode()
            edits.append((at, at, indent + b"fused_ = self." + fused.encode() + b"(" + src.text(calls[0].args[0]) + b")\n"
                          + indent + parts + b" = fused_.split(self.part_sizes, dim=-1)\n"))  # fmt: skip
            edits += [(src.s(c), src.e(c), c.func.attr + "_part") for c in calls]
        return bench.splice(src.buf, edits)

    return fuse


def make_copy(bench):
    def copy_above(src, rng, ctx):
        """A class or function is copied above (or below) itself under a new name; it is the original that is edited afterwards."""
        node = rng.choice([n for n in src.tree.body if isinstance(n, (ast.ClassDef, *FUNCTIONS)) and holds_call(n) and src.own_line(n) is not None])
        new = rng.choice(["Legacy%s", "%sV1", "Old%s", "%sReference"]) % node.name
        if new.encode() in src.b:
            return None
        begin, end = start_of(src, node), src.line1(node)
        a, b = name_at(src, node)
        if not src.b[begin:end].endswith(b"\n"):
            return None
        copied = bench.Buf(src.b[begin:a] + new.encode() + src.b[b:end] + b"\n\n")
        at = begin if rng.random() < 0.7 else end
        return bench.splice(src.buf, [(at, at, copied if at == begin else bench.Buf(b"\n\n") + copied)])

    return copy_above


def make_mixin(bench):
    def mixin(src, rng, ctx):
        """A method moves to a mixin class in a new file of its folder; its class inherits from that."""
        found = [(f, c) for f, c in methods(src) if c is not None and c in src.tree.body and not f.name.startswith("__") and len(c.body) > 1]
        function, owner = rng.choice(found)
        if any(isinstance(n, ast.Name) and n.id in ("super", "__class__") for n in ast.walk(function)):
            return None
        begin, end = start_of(src, function), src.line1(function)
        if not src.b[begin:end].endswith(b"\n"):
            return None
        imports = [n for n in src.tree.body if bench.imports_only(n)]
        head = b"".join(src.b[src.line0(n):src.line1(n)] for n in imports)
        stem = f"{ctx['stem']}_mixin_{len(ctx['new'])}"
        ctx["pending"] = (stem, bench.Buf(head + b"\n\nclass %sMixin:\n" % owner.name.encode()) + src.buf[begin:end])
        a, b = name_at(src, owner)
        base = b"%sMixin" % owner.name.encode()
        if src.b[b:b + 1] == b"(":
            bases = (b + 1, b + 1, base + (b", " if owner.bases or owner.keywords else b""))
        else:
            bases = (b, b, b"(" + base + b")")
        at = start_of(src, owner)
        return bench.splice(src.buf, [(begin, end, b""), bases, (at, at, b"from .%s import %s\n\n\n" % (stem.encode(), base))])

    return mixin


def make_rebrand(bench):
    def rebrand(src, rng, ctx):
        """The name that most of the file's classes begin with is another one everywhere in it; the file is to be renamed too."""
        words = {}
        for node in src.tree.body:
            word = isinstance(node, ast.ClassDef) and holds_call(node) and re.match(r"_*([A-Z][a-z0-9]{3,}|[A-Z]{3,}(?![a-z]))", node.name)
            if word:
                words[word.group(1)] = words.get(word.group(1), 0) + 1
        brand = max(sorted(words), key=words.get, default=None)
        if brand is None or b"Quasar" in src.b:
            return None
        whole = brand.encode() + (b"(?![a-z])" if brand[-1].islower() else b"")
        small = rb"(?<![a-zA-Z])" + brand.lower().encode() + rb"(?![a-z])"
        edits = [(m.start(), m.end(), "Quasar") for m in re.finditer(whole, src.b)]
        if rng.random() < 0.5:
            edits += [(m.start(), m.end(), "quasar") for m in re.finditer(small, src.b) if brand.lower() != brand]
        return bench.splice(src.buf, edits)

    return rebrand
