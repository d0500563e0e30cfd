"""Refactorings that keep every bit: each finds the places of a source at which it can be applied, and how.

Each yields lists of edits. An edit keeps the marks of the bytes it moves, so the mutated statement is followed (source.py).
What a refactoring needs to be harmless it checks in the text or in what the traced run saw; draw.py proves it by a run without the mutation.
"""
import ast
import re

from mutants.source import FUNCTIONS, Edit, dotted

REFACTORINGS = {}


def refactoring(function):
    REFACTORINGS[function.__name__] = function
    return function


def names(node, context=None):
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and (context is None or isinstance(n.ctx, context))}


def plain_functions(src):
    """Functions with bodies that ran, without what makes their names special."""
    for function in (n for n in ast.walk(src.tree) if isinstance(n, FUNCTIONS)):
        if not any(s in src.ran_set for s in function.body):
            continue
        if any(isinstance(n, (ast.Global, ast.Nonlocal, ast.Match)) for n in ast.walk(function)):
            continue
        if names(function) & {"locals", "exec", "eval", "vars", "dir"}:
            continue
        if any("script" in (dotted(d) or "") or "jit" in (dotted(d) or "") or "compile" in (dotted(d) or "") for d in function.decorator_list):
            continue
        yield function


def simple(src):
    """(function, statement): what ran, alone on its lines, in plain functions."""
    for function in plain_functions(src):
        for statement in ast.walk(function):
            if isinstance(statement, (ast.Assign, ast.Return, ast.Expr, ast.AugAssign)) and statement in src.ran_set:
                if src.indent(statement) is not None and src.function(statement) is function:
                    if not any(isinstance(n, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)) for n in ast.walk(statement)):
                        yield function, statement


def fresh(src, stem):
    """A name that the text does not hold."""
    number = 0
    while f"{stem}_{number}".encode() in src.data:
        number += 1
    return f"{stem}_{number}".encode()


@refactoring
def rename_local(src):
    """A local gets another name."""
    for function in plain_functions(src):
        if src.function(function) is not None or any(isinstance(n, (ast.ClassDef, ast.Lambda, *FUNCTIONS)) for b in function.body for n in ast.walk(b)):
            continue
        parameters = {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)}
        imported = {(a.asname or a.name).split(".")[0] for n in ast.walk(function) if isinstance(n, (ast.Import, ast.ImportFrom)) for a in n.names}
        caught = {n.name for n in ast.walk(function) if isinstance(n, ast.ExceptHandler)}
        for name in sorted(names(function, ast.Store) - parameters - imported - caught - {"_"}):
            new = fresh(src, f"{name}_renamed")
            spots = [n for b in function.body for n in ast.walk(b) if isinstance(n, ast.Name) and n.id == name]
            if not any(isinstance(p, (ast.JoinedStr, ast.FormattedValue)) for n in spots for p in src.up(n)):
                yield [Edit(*src.span(n), (new,)) for n in spots]


QUIET = (ast.Name, ast.Attribute, ast.Constant, ast.Load, ast.Store, ast.keyword, ast.Tuple, ast.expr_context)


def first_evaluated(src, statement):
    """Calls and operations before which the statement evaluates only names, attributes and constants."""
    value = statement.value
    if value is None:
        return
    # Left to right, inner before outer, as Python does; what may be skipped or repeated is left alone.
    order = []

    def visit(node):
        if isinstance(node, (ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp, ast.IfExp, ast.BoolOp, ast.JoinedStr, ast.Starred)):
            order.append(None)
            return
        if isinstance(node, ast.Compare) and len(node.ops) > 1:
            order.append(None)
            return
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.expr, ast.keyword, ast.Slice)):
                visit(child)
        if not isinstance(node, QUIET):
            order.append(node)

    visit(value)
    for node in order:
        if node is None:
            return
        if isinstance(node, (ast.Call, ast.BinOp)) and node is not value:
            yield node
        if node is not order[0] and not isinstance(node, (ast.Call, ast.BinOp)):
            continue
        # The next one has this one before it, unless it is around it.
        around = set(src.up(node))
        rest = order[order.index(node) + 1 :]
        if rest and rest[0] not in around:
            return


@refactoring
def extract_local(src):
    """An inner expression gets a name of its own, in a line before."""
    for function, statement in simple(src):
        if isinstance(statement, ast.Assign) and any(not isinstance(t, (ast.Name, ast.Tuple)) for t in statement.targets):
            continue
        if isinstance(statement, ast.AugAssign):
            continue
        for node in first_evaluated(src, statement):
            if b"super(" in src.of(node) or b"#" in src.of(node):
                continue
            new = fresh(src, "part")
            at = src.lines[statement.lineno - 1]
            line = (src.indent(statement), new, b" = (", src.span(node), b")\n")
            yield [Edit(at, at, line), Edit(*src.span(node), (new,))]


@refactoring
def inline_local(src):
    """A local read once, in the next statement, is put there."""
    later = (ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp, ast.IfExp, ast.BoolOp, ast.JoinedStr)
    for function, statement in simple(src):
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or not isinstance(statement.targets[0], ast.Name):
            continue
        if b"#" in src.data[src.start(statement) : src.next_line(statement)] or isinstance(statement.value, (ast.Starred, ast.Tuple)):
            continue
        body = next((b for f in ("body", "orelse") if statement in (b := getattr(src.parents[statement], f, None) or [])), [statement])
        after = body[body.index(statement) + 1] if statement is not body[-1] else None
        if not isinstance(after, (ast.Assign, ast.Return, ast.Expr)):
            continue
        spots = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == statement.targets[0].id]
        inside = set(ast.walk(after))
        uses = [n for n in spots if isinstance(n.ctx, ast.Load) and n in inside]
        if len(spots) != 2 or len(uses) != 1 or any(isinstance(p, later) for p in src.up(uses[0]) if p in inside):
            continue
        # What is evaluated before the name is evaluated before its value from now on.
        if any(isinstance(n, (ast.Call, ast.Subscript, ast.BinOp)) and src.end(n) <= src.start(uses[0]) for n in inside if hasattr(n, "lineno")):
            continue
        line = (src.lines[statement.lineno - 1], src.next_line(statement))
        yield [Edit(*line, ()), Edit(*src.span(uses[0]), (b"(", src.span(statement.value), b")"))]


@refactoring
def add_statistic(src):
    """A statistic of a tensor is taken under no_grad, and thrown away."""
    if not src.imports_torch():
        return
    for function, statement in simple(src):
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name) and src.is_float_tensor(statement.targets[0]):
            if src.kind(statement.targets[0]).endswith(" ") or src.next_line(statement) >= len(src.data):
                continue
            name, new, indent = statement.targets[0].id.encode(), fresh(src, "statistic"), src.indent(statement)
            for measure in (b".detach().abs().amax()", b".detach().float().mean()", b".detach().float().norm().item()"):
                at = src.next_line(statement)
                yield [Edit(at, at, (indent + b"with torch.no_grad():\n" + indent + b"    " + new + b" = " + name + measure + b"\n",))]


# No generator's draw and no change in place may change places with anything.
ORDERED = re.compile(
    r"rand|drop|seed|_\(|normal|bernoulli|print|append|pop|step|all_reduce|gather|broadcast|update|register|warn|log|next|setattr|self\.\w+ ?="
)


@refactoring
def reorder(src):
    """Two neighbours that have nothing to do with one another change places."""
    for function, first in simple(src):
        body = getattr(src.parents[first], "body", [])
        if not isinstance(first, ast.Assign) or first not in body or first is body[-1]:
            continue
        second = body[body.index(first) + 1]
        if not isinstance(second, ast.Assign) or src.indent(second) is None or second.lineno != first.end_lineno + 1:
            continue
        if ORDERED.search(src.of(first).decode()) or ORDERED.search(src.of(second).decode()):
            continue
        targets = [{n.id for t in s.targets for n in ast.walk(t) if isinstance(n, ast.Name)} for s in (first, second)]
        if not all(isinstance(n, (ast.Name, ast.Tuple)) for s in (first, second) for t in s.targets for n in ast.walk(t) if isinstance(n, ast.expr)):
            continue
        reads = [names(s.value) for s in (first, second)]
        if targets[0] & (reads[1] | targets[1]) or targets[1] & reads[0]:
            continue
        # Two readers of one tensor would add their gradients in the other order.
        if any(n != "self" and src.scope(first).get(n, "tensor").startswith("tensor") for n in reads[0] & reads[1] if n not in ("torch", "F", "nn", "math")):
            continue
        a, b = (src.lines[first.lineno - 1], src.next_line(first)), (src.lines[second.lineno - 1], src.next_line(second))
        if src.data[a[1] - 1 : a[1]] != b"\n" or src.data[b[1] - 1 : b[1]] != b"\n":
            continue
        yield [Edit(*a, (b,)), Edit(*b, (a,))]


def calls(src):
    for statement in src.executed:
        if src.function(statement) is None:
            continue
        for node in src.own_nodes(statement):
            if isinstance(node, ast.Call):
                yield statement, node


@refactoring
def view_reshape(src):
    """x.view(...) becomes x.reshape(...), a contiguous x.reshape(...) x.view(...)."""
    for statement, node in calls(src):
        if not isinstance(node.func, ast.Attribute) or not src.is_tensor(node.func.value) or b"dtype" in src.of(node):
            continue
        at = (src.end(node.func) - len(node.func.attr), src.end(node.func))
        if node.func.attr == "view" and node.args and not any("torch." in (dotted(a) or "") for a in node.args):
            yield [Edit(*at, (b"reshape",))]
        elif node.func.attr == "reshape" and isinstance(node.func.value, ast.Name) and " contiguous " in src.kind(node.func.value):
            yield [Edit(*at, (b"contiguous().view",))]


@refactoring
def add_contiguous(src):
    """.contiguous() after an operator that leaves a contiguous tensor anyway."""
    for statement in src.executed:
        if not isinstance(statement, ast.Assign) or src.function(statement) is None or not isinstance(statement.targets[0], ast.Name):
            continue
        if not isinstance(statement.value, (ast.BinOp, ast.Call)) or len(statement.targets) != 1:
            continue
        # Bound once: what the traced run saw in the name is what this statement leaves.
        stores = [n for n in ast.walk(src.function(statement)) if isinstance(n, ast.Name) and n.id == statement.targets[0].id and isinstance(n.ctx, ast.Store)]
        if len(stores) == 1 and " contiguous " in src.kind(statement.targets[0]):
            yield [Edit(*src.span(statement.value), (b"(", src.span(statement.value), b").contiguous()"))]


BOTH = {
    "matmul", "sum", "mean", "transpose", "exp", "sqrt", "rsqrt", "abs", "tanh", "sigmoid", "cos", "sin", "mul", "add", "clamp", "masked_fill", "unsqueeze",
    "squeeze", "flatten", "reshape", "permute", "pow", "softmax", "cumsum", "topk", "argmax", "bmm", "neg", "square", "div", "sub", "chunk", "split", "lerp",
}  # fmt: skip


@refactoring
def call_form(src):
    """torch.f(x, ...) becomes x.f(...), and back."""
    for statement, node in calls(src):
        if not isinstance(node.func, ast.Attribute) or node.func.attr not in BOTH or any(isinstance(a, ast.Starred) for a in node.args):
            continue
        name, opening = node.func.attr.encode(), src.data.index(b"(", src.end(node.func))
        rest = (opening + 1, src.end(node))
        if dotted(node.func.value) == "torch":
            if not node.args or not src.is_tensor(node.args[0]) or src.end(node.args[0]) + 1 > rest[1]:
                continue
            after = src.data[src.end(node.args[0]) : rest[1]]
            lead = re.match(rb"\s*(,\s*)?", after).end()
            if after[:1] == b")" and len(after) > 1 and len(node.args) + len(node.keywords) > 1:
                continue
            yield [Edit(*src.span(node), (b"(", src.span(node.args[0]), b")." + name + b"(", (src.end(node.args[0]) + lead, rest[1])))]
        elif src.imports_torch() and src.is_tensor(node.func.value):
            if name in (b"permute", b"reshape") and (not node.args or not isinstance(node.args[0], (ast.Tuple, ast.List))):
                continue  # as a function it takes one sequence
            middle = b", " if node.args or node.keywords else b""
            yield [Edit(*src.span(node), (b"torch." + name + b"(", src.span(node.func.value), middle, rest))]


@refactoring
def operator_form(src):
    """a + b becomes torch.add(a, b), a @ b torch.matmul(a, b), and the like."""
    if not src.imports_torch():
        return
    form = {ast.Add: b"add", ast.Mult: b"mul", ast.Sub: b"sub", ast.Div: b"div", ast.MatMult: b"matmul"}
    for statement in src.executed:
        if src.function(statement) is None:
            continue
        for node in src.own_nodes(statement):
            if isinstance(node, ast.BinOp) and type(node.op) in form and src.is_tensor(node.left) and (src.is_tensor(node.right) or src.is_number(node.right)):
                yield [Edit(*src.span(node), (b"torch." + form[type(node.op)] + b"(", src.span(node.left), b", ", src.span(node.right), b")"))]


KEYWORDS = {
    "torch.cat": ["tensors", "dim"], "torch.stack": ["tensors", "dim"], "torch.matmul": ["input", "other"], "torch.where": ["condition", "input", "other"],
    "F.softmax": ["input", "dim"], "nn.functional.softmax": ["input", "dim"], "torch.mean": ["input", "dim"], "torch.sum": ["input", "dim"],
    "F.cross_entropy": ["input", "target"], "nn.functional.cross_entropy": ["input", "target"], "F.embedding": ["input", "weight"],
    "F.linear": ["input", "weight", "bias"], "nn.functional.dropout": ["input", "p"], "F.dropout": ["input", "p"], "F.gelu": ["input"],
}  # fmt: skip


@refactoring
def keywords(src):
    """A positional argument gets its keyword; keyword arguments change their order."""
    local = {n.name: n for n in src.tree.body if isinstance(n, ast.FunctionDef) and not n.decorator_list and not n.args.posonlyargs and not n.args.vararg}
    for statement, node in calls(src):
        known = KEYWORDS.get(dotted(node.func) or "")
        if isinstance(node.func, ast.Name) and node.func.id in local:
            known = [a.arg for a in local[node.func.id].args.args]
        if known and node.args and len(node.args) <= len(known) and not any(isinstance(a, (ast.Starred, ast.GeneratorExp)) for a in node.args):
            # Brackets around an argument stand outside its node.
            if all(src.data[src.start(a) - 1 : src.start(a)] != b"(" or src.start(a) - 1 == src.data.index(b"(", src.end(node.func)) for a in node.args):
                yield [Edit(src.start(a), src.start(a), (k.encode() + b"=",)) for a, k in zip(node.args, known)]
        quiet = [k for k in node.keywords if k.arg and all(isinstance(n, QUIET) for n in ast.walk(k.value))]
        if len(quiet) == len(node.keywords) > 1:
            yield [Edit(*src.span(a), (src.span(b),)) for a, b in zip(node.keywords, node.keywords[::-1]) if a is not b]


@refactoring
def import_alias(src):
    """A function uses a module under another name."""
    for function in plain_functions(src):
        if src.function(function) is not None or src.indent(function.body[0]) is None:
            continue
        for name in ("torch", "F", "nn", "math"):
            spots = [n for b in function.body for n in ast.walk(b) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)]
            imported = any(isinstance(s, (ast.Import, ast.ImportFrom)) and any((a.asname or a.name) == name for a in s.names) for s in src.tree.body)
            if not spots or not imported or any(isinstance(p, (ast.JoinedStr,)) for n in spots for p in src.up(n)):
                continue
            first = function.body[0]
            at, new = src.lines[first.lineno - 1], fresh(src, f"{name}_module")
            if first.lineno <= function.lineno or isinstance(first, FUNCTIONS) and first.decorator_list:
                continue
            yield [Edit(at, at, (src.indent(first) + new + b" = " + name.encode() + b"\n",)), *(Edit(*src.span(n), (new,)) for n in spots)]


@refactoring
def split_return(src):
    """What is returned gets a name first."""
    for function, statement in simple(src):
        if isinstance(statement, ast.Return) and isinstance(statement.value, (ast.Call, ast.BinOp, ast.Tuple)) and b"#" not in src.of(statement):
            new, indent = fresh(src, "result"), src.indent(statement)
            yield [Edit(*src.span(statement), (new + b" = (", src.span(statement.value), b")\n" + indent + b"return " + new))]


@refactoring
def extract_function(src):
    """The right side of an assignment becomes a function of the module's."""
    for function, statement in simple(src):
        if not isinstance(statement, ast.Assign) or src.function(function) is not None or not isinstance(statement.value, (ast.Call, ast.BinOp)):
            continue
        bad = (ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp, ast.JoinedStr)
        inside = list(ast.walk(statement.value))
        if any(isinstance(n, bad) or isinstance(n, ast.Name) and n.id in ("super", "__class__") for n in inside):
            continue
        if any(isinstance(n, ast.Attribute) and n.attr.startswith("__") for n in inside) or b"#" in src.of(statement):
            continue
        top = next(n for n in [function, *src.up(function)] if isinstance(src.parents.get(n), ast.Module))
        local = {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)} | names(function, ast.Store)
        local |= {(a.asname or a.name).split(".")[0] for n in ast.walk(function) if isinstance(n, (ast.Import, ast.ImportFrom)) for a in n.names}
        local |= {n.name for n in ast.walk(function) if n is not function and isinstance(n, (*FUNCTIONS, ast.ClassDef))}
        used = sorted(names(statement.value) & local)
        at = src.lines[min([top.lineno] + [d.lineno for d in top.decorator_list]) - 1]
        new = fresh(src, "_helper")
        arguments = ", ".join(used).encode()
        head = b"def " + new + b"(" + arguments + b"):\n    return ("
        yield [Edit(at, at, (head, src.span(statement.value), b")\n\n\n")), Edit(*src.span(statement.value), (new + b"(" + arguments + b")",))]


def find(src, name):
    """The edits of one refactoring, in the order of the text."""
    src.ran_set = set(src.executed)
    return list(REFACTORINGS[name](src))


def apply(text, edits):
    """The refactored text; ValueError or SyntaxError where the edits do not go together."""
    new = text.edit(edits)
    compile(new.data, "refactored", "exec", dont_inherit=True)
    return new
