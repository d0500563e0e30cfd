"""Mutation operators: each finds the places of a source at which it can be applied, and how.

An operator is a generator over Source -> Mutation. It looks at statements that ran, and at what the traced run saw in their names.
That a mutation changes something that counts is not its business: draw.py runs the program.
"""
import ast
import re

from mutants.mutation import OPERATORS, Mutation, expressions, number, operator, replaced, tensor_values, wrapped
from mutants.source import Edit, callee, dotted

# Constants, arguments, dimensions.


@operator
def constant(src):
    """A number becomes another: an epsilon, a factor, an offset, a default."""
    for statement, node in expressions(src, ast.Constant):
        parent = src.parents.get(node)
        if isinstance(parent, (ast.Subscript, ast.Slice, ast.Index)) or isinstance(node.value, bool):
            continue
        if isinstance(node.value, float) and node.value != 0:
            factor = 100.0 if abs(node.value) < 1e-3 else 1.5
            yield replaced(src, "constant", node, number(node.value * factor))
        elif isinstance(node.value, int) and isinstance(parent, ast.BinOp) and not isinstance(parent.op, (ast.FloorDiv, ast.Mod)):
            yield replaced(src, "constant", node, number(node.value + 1))
    for statement in src.executed:  # defaults of functions: their lines ran when the file was loaded
        if isinstance(statement, (ast.FunctionDef,)) and any(s in src.executed for s in statement.body):
            for default in [d for d in statement.args.defaults + statement.args.kw_defaults if isinstance(d, ast.Constant)]:
                if isinstance(default.value, float) and default.value != 0:
                    yield replaced(src, "constant", default, number(default.value * (100.0 if abs(default.value) < 1e-3 else 1.5)))


@operator
def swapped_arguments(src):
    """Two operands or arguments change places."""
    for statement, node in expressions(src, (ast.Call, ast.BinOp)):
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, (ast.Sub, ast.Div, ast.MatMult)) and (src.is_tensor(node.left) or src.is_tensor(node.right)):
                middle = (src.end(node.left), src.start(node.right))
                between = src.data[middle[0] : middle[1]]
                if b"(" not in between and b")" not in between:
                    yield replaced(src, "swapped_arguments", node, *wrapped(src, node.right), between, *wrapped(src, node.left))
            continue
        plain = [a for a in node.args if not isinstance(a, (ast.Starred, ast.GeneratorExp))]
        for first, second in zip(plain, plain[1:]):
            kinds = src.kind(first).split(" ")[:2], src.kind(second).split(" ")[:2]
            if kinds[0] == kinds[1] and kinds[0][0] in ("tensor", "int", "float") and src.of(first) != src.of(second):
                edits = (Edit(*src.span(first), (src.span(second),)), Edit(*src.span(second), (src.span(first),)))
                note = f"{src.of(node).decode()}: arguments {src.of(first).decode()} and {src.of(second).decode()} swapped"
                yield Mutation("swapped_arguments", statement, edits, " ".join(note.split())[:200], node)


DIMS = {
    "softmax", "log_softmax", "sum", "mean", "cat", "stack", "transpose", "cumsum", "argmax", "max", "min", "norm", "chunk", "split", "flip", "roll", "topk",
    "amax", "amin", "var", "std", "repeat_interleave", "argsort", "sort", "logsumexp", "permute", "swapaxes",
}  # fmt: skip


def int_value(node):
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        node, sign = node.operand, -1
    else:
        sign = 1
    if isinstance(node, ast.Constant) and isinstance(node.value, int) and not isinstance(node.value, bool):
        return sign * node.value
    return None


@operator
def dim(src):
    """An operator works along another dimension."""
    for statement, node in expressions(src, ast.Call):
        if callee(node) not in DIMS:
            continue
        places = [k.value for k in node.keywords if k.arg in ("dim", "axis")]
        places += node.args[0:] if isinstance(node.func, ast.Attribute) and dotted(node.func.value) not in ("torch", "F") else node.args[1:]
        for place in places:
            value = int_value(place)
            if value is not None and -4 <= value <= 4:
                yield replaced(src, "dim", place, number({-1: -2, -2: -1, 0: -1, 1: -1, 2: 1, 3: 2}.get(value, -1)))


# Precision, masks, slices.


@operator
def cast(src):
    """A value is rounded to bfloat16, a conversion is left out, or a dtype is another one."""
    for statement, node in tensor_values(src):
        if src.kind(node).startswith("tensor float32") and not isinstance(node, ast.Constant):
            yield replaced(src, "cast", node, b"(", node, b").bfloat16().float()")
    for statement, node in expressions(src, (ast.Call, ast.Attribute)):
        converts = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and callee(node) in ("float", "to", "type_as")
        if converts and src.is_tensor(node.func.value):
            yield replaced(src, "cast", node, node.func.value)
        if isinstance(node, ast.Attribute) and dotted(node) in ("torch.float32", "torch.float", "torch.float64"):
            yield replaced(src, "cast", node, b"torch.bfloat16")


@operator
def mask(src):
    """A mask is shifted, inverted, filled with another number, or not applied."""
    for statement, node in expressions(src, (ast.Call, ast.BinOp)):
        if isinstance(node, ast.BinOp):
            for kept, gone in ((node.left, node.right), (node.right, node.left)):
                if isinstance(node.op, (ast.Add, ast.Mult, ast.BitAnd, ast.BitOr)) and b"mask" in src.of(gone).lower() and src.is_tensor(gone):
                    yield replaced(src, "mask", node, *wrapped(src, kept))
            continue
        name = callee(node)
        if name in ("triu", "tril", "triu_", "tril_"):
            places = [k.value for k in node.keywords if k.arg == "diagonal"] + node.args
            shifts = [p for p in places if int_value(p) is not None]
            if shifts:
                yield replaced(src, "mask", shifts[-1], number(int_value(shifts[-1]) + 1))
        if name in ("masked_fill", "masked_fill_") and len(node.args) == 2 and isinstance(node.func, ast.Attribute):
            yield replaced(src, "mask", node, node.func.value)
            yield replaced(src, "mask", node.args[0], b"~(", node.args[0], b")")
            yield replaced(src, "mask", node.args[1], b"-1.0")
        if name == "where" and len(node.args) == 3:
            yield replaced(src, "mask", node.args[0], b"~(", node.args[0], b")")
    for statement, node in expressions(src, ast.Name):
        parent = src.parents.get(node)
        if "mask" in node.id and src.is_tensor(node) and isinstance(parent, (ast.Call, ast.keyword)) and getattr(parent, "func", None) is not node:
            nothing = b"torch.zeros_like(" + node.id.encode() + b")" if src.imports_torch() else node.id.encode() + b" * 0"
            yield replaced(src, "mask", node, nothing)


@operator
def slices(src):
    """A slice or an index is off."""
    for statement, node in expressions(src, ast.Subscript):
        if isinstance(src.parents.get(node), ast.Subscript) or not (src.is_tensor(node.value) or isinstance(node.slice, ast.Tuple)):
            continue
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for part in parts:
            if isinstance(part, ast.Slice) and part.step is None:
                if part.lower is None and part.upper is not None:
                    if int_value(part.upper) == -1:
                        yield replaced(src, "slices", part, b"1:")
                    else:
                        yield replaced(src, "slices", part, b"-(", part.upper, b"):")
                elif part.upper is None and part.lower is not None:
                    if int_value(part.lower) == 1:
                        yield replaced(src, "slices", part, b":-1")
                    else:
                        yield replaced(src, "slices", part, b":(", part.lower, b")")
            elif int_value(part) is not None:
                yield replaced(src, "slices", part, number({0: -1, -1: 0}.get(int_value(part), 0)))


# The graph and the memory.


@operator
def detach(src):
    """A value loses its gradient."""
    for statement, node in tensor_values(src):
        yield replaced(src, "detach", node, b"(", node, b").detach()")


@operator
def no_grad(src):
    """A statement runs without gradients."""
    if not src.imports_torch():
        return
    for statement in src.executed:
        if not isinstance(statement, ast.Assign) or src.indent(statement) is None or src.function(statement) is None:
            continue
        if isinstance(statement.value, ast.Call) and isinstance(statement.targets[0], ast.Name) and src.is_float_tensor(statement.targets[0]):
            if statement.lineno == statement.end_lineno:
                head = b"with torch.no_grad():\n" + src.indent(statement) + b"    "
                yield Mutation("no_grad", statement, (Edit(*src.span(statement), (head, src.span(statement))),), "under no_grad", None)


IN_PLACE = {ast.Add: b"add_", ast.Mult: b"mul_", ast.Sub: b"sub_", ast.Div: b"div_"}


@operator
def aliasing(src):
    """A value is changed in place, or shared where it was copied."""
    for statement, node in expressions(src, (ast.BinOp, ast.Call)):
        if isinstance(node, ast.BinOp) and type(node.op) in IN_PLACE and src.is_float_tensor(node.left):
            yield replaced(src, "aliasing", node, *wrapped(src, node.left), b"." + IN_PLACE[type(node.op)] + b"(", node.right, b")")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and src.is_tensor(node.func.value):
            if callee(node) == "clone":
                yield replaced(src, "aliasing", node, node.func.value)
            elif callee(node) in ("add", "mul", "sub", "div", "masked_fill", "clamp", "exp", "sqrt", "neg"):
                yield replaced(src, "aliasing", node.func, node.func.value, b"." + callee(node).encode() + b"_")


# Lost and other terms.


@operator
def lost_residual(src):
    """A sum loses one of its terms."""
    for statement, node in expressions(src, ast.BinOp):
        if isinstance(node.op, ast.Add) and src.is_float_tensor(node):
            for kept, gone in ((node.left, node.right), (node.right, node.left)):
                if isinstance(gone, (ast.Name, ast.Attribute)) and "mask" not in src.of(gone).decode():
                    yield replaced(src, "lost_residual", node, *wrapped(src, kept))


@operator
def scaling(src):
    """A factor or a divisor is left out."""
    for statement, node in expressions(src, ast.BinOp):
        if isinstance(node.op, (ast.Mult, ast.Div)) and src.is_tensor(node.left) and (src.is_number(node.right) or isinstance(node.right, ast.Attribute)):
            yield replaced(src, "scaling", node, *wrapped(src, node.left))
        elif isinstance(node.op, ast.Mult) and src.is_tensor(node.right) and src.is_number(node.left):
            yield replaced(src, "scaling", node, *wrapped(src, node.right))
    for statement, node in expressions(src, ast.Call):
        for keyword in node.keywords:
            if keyword.arg in ("scale", "scaling", "alpha") and src.is_number(keyword.value):
                yield replaced(src, "scaling", keyword.value, b"1.0")


ACTIVATION = re.compile(
    r"^(gelu|silu|relu|tanh|sigmoid|softplus|swish|mish|leaky_relu|hardtanh|act|act_fn|act1|act2|activation|activation_func|activation_fn|"
    r"intermediate_act_fn|bn_act|nonlinearity|gate_fn|transform_act_fn)$"
)


@operator
def activation(src):
    """An activation is dropped."""
    for statement, node in expressions(src, ast.Call):
        if len(node.args) == 1 and not isinstance(node.args[0], ast.Starred) and ACTIVATION.match(callee(node)):
            yield replaced(src, "activation", node, *wrapped(src, node.args[0]))
        elif not node.args and isinstance(node.func, ast.Attribute) and ACTIVATION.match(callee(node)) and src.is_tensor(node.func.value):
            yield replaced(src, "activation", node, node.func.value)


@operator
def dropped_norm(src):
    """A normalisation or a dropout is dropped."""
    for statement, node in expressions(src, ast.Call):
        if len(node.args) == 1 and re.search(r"norm|drop", callee(node)) and src.kind(node.func).startswith("module"):
            yield replaced(src, "dropped_norm", node, *wrapped(src, node.args[0]))


@operator
def arithmetic(src):
    """Another operator between the same operands."""
    other = {ast.Add: b"-", ast.Sub: b"+", ast.Mult: b"/", ast.Div: b"*", ast.Pow: b"*"}
    for statement, node in expressions(src, ast.BinOp):
        if type(node.op) in other and (src.is_tensor(node) or src.is_number(node)):
            yield replaced(src, "arithmetic", node, *wrapped(src, node.left), b" " + other[type(node.op)] + b" ", *wrapped(src, node.right))


@operator
def comparison(src):
    """Another comparison."""
    other = {ast.Lt: b"<=", ast.LtE: b"<", ast.Gt: b">=", ast.GtE: b">", ast.Eq: b"!=", ast.NotEq: b"=="}
    for statement, node in expressions(src, ast.Compare):
        right = node.comparators[0]
        text = isinstance(right, ast.Constant) and not isinstance(right.value, (int, float)) or isinstance(node.left, ast.Constant)
        if len(node.ops) == 1 and type(node.ops[0]) in other and not text:
            yield replaced(src, "comparison", node, *wrapped(src, node.left), b" " + other[type(node.ops[0])] + b" ", *wrapped(src, right))


@operator
def reduction(src):
    """A mean becomes a sum, a maximum a minimum, and the like."""
    other = {"mean": b"sum", "sum": b"mean", "amax": b"amin", "max": b"min", "argmax": b"argmin", "norm": b"sum", "all_reduce": None}
    for statement, node in expressions(src, (ast.Call, ast.Constant)):
        if isinstance(node, ast.Constant):
            if node.value in ("mean", "sum") and isinstance(src.parents.get(node), (ast.keyword, ast.Call, ast.IfExp)):
                yield replaced(src, "reduction", node, b'"sum"' if node.value == "mean" else b'"mean"')
            continue
        new = other.get(callee(node))
        if new and isinstance(node.func, ast.Attribute) and (src.is_tensor(node.func.value) or dotted(node.func.value) == "torch"):
            yield replaced(src, "reduction", node.func, node.func.value, b"." + new)


@operator
def wrong_variable(src):
    """A tensor of the same type and number of dimensions in a name's place."""
    for statement, node in expressions(src, ast.Name):
        kind = src.kind(node).split(" ")
        if kind[0] != "tensor" or src.function(node) is None:
            continue
        parameters = {a.arg for a in ast.walk(src.function(node).args) if isinstance(a, ast.arg)}
        earlier = {n.id for s in ast.walk(src.function(node)) if isinstance(s, ast.Assign) and s.end_lineno < statement.lineno
                   for t in s.targets for n in ast.walk(t) if isinstance(n, ast.Name)}  # fmt: skip
        for name, other in sorted(src.scope(node).items()):
            if "." not in name and name != node.id and name in parameters | earlier and other.split(" ")[:3] == kind[:3]:
                if other.split(" ")[4:] == kind[4:]:
                    yield replaced(src, "wrong_variable", node, name.encode())


@operator
def lost_argument(src):
    """A keyword argument is left out: its default stands."""
    for statement, node in expressions(src, ast.Call):
        for i, keyword in enumerate(node.keywords):
            if keyword.arg is None or len(node.args) + len(node.keywords) < 2 or not dotted(node.func):
                continue
            ordered = sorted(node.args + [k.value for k in node.keywords], key=src.start)
            at = ordered.index(keyword.value)
            if at:  # with the comma before it
                start, end = src.end(ordered[at - 1]), src.end(keyword.value)
                between = src.data[start : src.start(keyword)]
                if between.strip() == b",":
                    yield Mutation("lost_argument", statement, (Edit(start, end, ()),), f"without {src.of(keyword).decode()}"[:200], node)


@operator
def lost_statement(src):
    """A call whose result nobody takes is left out: an in-place operator, a step."""
    for statement in src.executed:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and src.indent(statement) is not None and src.function(statement):
            name = callee(statement.value)
            if name.endswith("_") and not name.endswith("__") or name.startswith("_foreach"):
                yield Mutation("lost_statement", statement, (Edit(*src.span(statement), (b"pass",)),), f"without {src.of(statement).decode()}"[:200])


# Behind these in the order of OPERATORS.
import mutants.training  # noqa: E402, F401


def find(src, name):
    """The mutations of one operator, each once."""
    found, seen = [], set()
    for mutation in OPERATORS[name](src):
        key = tuple((e.start, e.end, e.parts) for e in mutation.edits)
        if key not in seen:
            seen.add(key)
            found.append(mutation)
    return found


def apply(src, mutation):
    """(the text as it was, the mutated text), in both the statement and what is changed in it marked."""
    statement = mutation.statement
    before = src.text.marked(src.begin(statement), src.header_end(statement))
    for edit in mutation.edits:
        before = before.marked(edit.start, edit.end, 2)
    after = before.edit(mutation.edits)
    ast.parse(after.data)
    return before, after
