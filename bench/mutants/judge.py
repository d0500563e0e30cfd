"""The truth of a draw, and how an answer of `opguard diff --json` is judged against it.

statement: the pivot lies in the mutated statement on a side; first_use: in the statement that first takes a mutated number (an epsilon set in a
constructor has no operator of its own); function: in the mutated function; candidate: one of the other candidates is at the statement or at a first
use; wrong: none of these; false_identical: the verdict is identical; inconclusive; no_answer; time_limit: of the machine, tried again by the next run.
A control: right, or false_alarm.
"""
import ast
import math

from mutants.source import FUNCTIONS, Source, dotted

RIGHT = ("statement", "first_use")
CLASSES = ("statement", "first_use", "function", "candidate", "wrong", "false_identical", "inconclusive", "no_answer", "time_limit")
DEPTH = 4  # how many names a number is followed through


def places(src, nodes):
    out = []
    for node in nodes:
        begin, end = src.begin(node), src.header_end(node)
        out.append({"file": src.name, "first_line": src.line_of(begin), "last_line": src.line_of(max(end - 1, begin))})
    return out


def truth(sources, files):
    """sources: {file: Source} of one side; files: those that hold the mutated statement's bytes. Its places, by kind."""
    found = {"statement": [], "function": [], "first_use": []}
    for file in files:
        src = sources[file]
        nodes = src.marked_statements()
        found["statement"] += places(src, nodes)
        for node in nodes:
            function = node if isinstance(node, FUNCTIONS) else src.function(node)
            if function:
                found["function"].append({"file": file, "first_line": src.line_of(src.begin(function)), "last_line": function.end_lineno})
            found["first_use"] += first_uses(sources, src, node)
    return found


def makes_tensors(src, statement):
    targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
    for target in targets:
        if target is not None and any(src.kind(n).startswith("tensor") for n in ast.walk(target) if isinstance(n, (ast.Name, ast.Attribute))):
            return True
    value = getattr(statement, "value", None)
    return isinstance(statement, (ast.Expr, ast.Return)) and value is not None and (
        src.is_tensor(value) or any(src.is_tensor(n) for n in ast.walk(value) if isinstance(n, (ast.Name, ast.Attribute))))


def first_uses(sources, src, statement):
    """Where a mutated number is used first: followed through assignments, attributes, arguments and returns that hold no tensor."""
    if makes_tensors(src, statement):
        return []
    seen, found, work = {statement}, [], [(src, statement, 0)]
    while work:
        at, node, depth = work.pop()
        for use_src, use in uses(sources, at, node):
            if use in seen or not use_src.ran(use):
                continue
            seen.add(use)
            found += places(use_src, [use])
            if depth < DEPTH and not makes_tensors(use_src, use):
                work.append((use_src, use, depth + 1))
    return found


def uses(sources, src, statement):
    """Statements that read what a statement sets: its names, attributes, arguments, its function's result."""
    function = src.function(statement)
    targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
    scope = function or src.tree
    for target in targets:
        for node in ast.walk(target) if target is not None else ():
            if isinstance(node, ast.Attribute):
                yield from readers(sources, node.attr)
            elif isinstance(node, ast.Name) and src.in_class_body(statement):
                yield from readers(sources, node.id)
            elif isinstance(node, ast.Name):
                yield from ((src, src.statement(n)) for n in ast.walk(scope) if isinstance(n, ast.Name) and n.id == node.id and isinstance(n.ctx, ast.Load))
    if isinstance(statement, ast.Return) and function:
        for other in sources.values():
            for node in ast.walk(other.tree):
                if isinstance(node, ast.Call) and (dotted(node.func) or "").split(".")[-1] == function.name:
                    yield other, other.statement(node)
    if isinstance(statement, FUNCTIONS):
        for argument in [a for a in ast.walk(statement.args) if isinstance(a, ast.arg)]:
            yield from ((src, src.statement(n)) for b in statement.body for n in ast.walk(b) if isinstance(n, ast.Name) and n.id == argument.arg)
        return
    for call in [n for n in src.own_nodes(statement) if isinstance(n, ast.Call)]:
        for other, called in functions_named(sources, (dotted(call.func) or "").split(".")[-1]):
            names = [a.arg for a in called.args.args if a.arg not in ("self", "cls")]
            passed = {k.arg for k in call.keywords} | set(names[: len(call.args)])
            yield from ((other, other.statement(n)) for b in called.body for n in ast.walk(b) if isinstance(n, ast.Name) and n.id in passed)


def functions_named(sources, name):
    for src in sources.values():
        for node in ast.walk(src.tree):
            if isinstance(node, FUNCTIONS) and node.name == name:
                yield src, node
            elif isinstance(node, ast.ClassDef) and node.name == name:
                yield from ((src, n) for n in node.body if isinstance(n, FUNCTIONS) and n.name == "__init__")


def readers(sources, attribute):
    for src in sources.values():
        for node in ast.walk(src.tree):
            if isinstance(node, ast.Attribute) and node.attr == attribute and isinstance(node.ctx, ast.Load):
                yield src, src.statement(node)


def truth_of(draw, base):
    """{"a": places by kind, "b": ...}; empty for a control."""
    if not draw.operator:
        return {}
    out = {}
    for side in "ab":
        texts = draw.files[side]
        sources = {f: Source(texts[f], base.source(f).kinds, base.source(f), f) if f in texts else base.source(f) for f in base.files()}
        out[side] = truth(sources, [f for f, text in texts.items() if any(text.marks)])
    return out


def lies_in(location, found):
    return bool(location) and any(location["file"] == p["file"] and p["first_line"] <= location["line"] <= p["last_line"] for p in found)


def named(pivot, truth, kind):
    """The pivot, or the text that was proven to be the cause."""
    text = pivot.get("text") or {}
    return any(lies_in(text.get(side) or pivot.get(side), truth[side][kind]) for side in "ab")


def judge(truth, answer):
    """The class of an answer. answer: None where the tool gave none."""
    if answer is None:
        return "no_answer"
    verdict, pivot = answer["verdict"], answer.get("pivot")
    if not truth:
        return "right" if verdict == "identical" else "false_alarm" if verdict == "diverged" else "inconclusive"
    if verdict == "identical":
        return "false_identical"
    if not pivot:
        return "inconclusive" if verdict == "inconclusive" else "wrong"
    for kind in ("statement", "first_use", "function"):
        if named(pivot, truth, kind):
            return kind
    others = answer.get("candidates", [])[:5]
    return "candidate" if any(named(c, truth, k) for c in others for k in RIGHT) else "wrong"


def proof(answer):
    """What the first line says of the proof, "" where the tool has none."""
    found = (answer or {}).get("proof") or ((answer or {}).get("pivot") or {}).get("proof") or ""
    return found.get("status", found.get("verdict", "")) if isinstance(found, dict) else str(found)


def wilson(hits, number, z=1.96):
    """The 95 % interval of a share."""
    if not number:
        return 0.0, 1.0
    share, square = hits / number, z * z
    middle = (share + square / (2 * number)) / (1 + square / number)
    half = z * math.sqrt(share * (1 - share) / number + square / (4 * number * number)) / (1 + square / number)
    return max(0.0, middle - half), min(1.0, middle + half)
