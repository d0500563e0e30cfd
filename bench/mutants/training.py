"""Mutation operators of what surrounds a model: the optimizer, the seeds, the data, the ranks."""

import ast
import re

from mutants.mutation import OPERATORS, Mutation, expressions, number, operator, replaced, wrapped
from mutants.source import Edit, callee

# What marks the code of an optimizer: a file's or a function's name.
OPTIMIZER = re.compile(r"optim|adafactor|adamw|lamb|rmsprop|adamp|ema|schedul|clip_grad", re.I)


def in_optimizer(src, node, name=""):
    function = src.function(node)
    around = [n.name for n in src.up(node) if isinstance(n, ast.ClassDef)]
    return bool(OPTIMIZER.search(name)) or any(OPTIMIZER.search(n) for n in around) or bool(function and OPTIMIZER.search(function.name))


@operator
def optimizer(src):
    """Something of an optimizer, an average of weights, a schedule or a clipping: a number, a term, an order."""
    for statement in src.executed:
        if not in_optimizer(src, statement, getattr(src, "name", "")) or src.function(statement) is None:
            continue
        for node in src.own_nodes(statement):
            if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
                if isinstance(src.parents.get(node), (ast.BinOp, ast.keyword, ast.Call)):
                    yield replaced(src, "optimizer", node, number(node.value * (100.0 if 0 < abs(node.value) < 1e-3 else 1.5) if node.value else 1))
            elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div, ast.Add, ast.Sub)):
                yield replaced(src, "optimizer", node, *wrapped(src, node.left))
            elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value in ("eps", "lr", "weight_decay", "momentum"):
                if not isinstance(node.ctx, ast.Store):
                    yield replaced(src, "optimizer", node, b"(", node, b" * 1.5)")
        following = src.parents.get(statement)
        body = getattr(following, "body", [])
        if isinstance(body, list) and statement in body[:-1]:
            after = body[body.index(statement) + 1]
            if isinstance(statement, ast.Expr) and isinstance(after, ast.Expr) and src.indent(statement) is not None and src.indent(after) is not None:
                edits = (Edit(*src.span(statement), (src.span(after),)), Edit(*src.span(after), (src.span(statement),)))
                yield Mutation("optimizer", statement, edits, "two statements in the other order")
    for statement, node in expressions(src, ast.Call):  # in the program: how the optimizer is made
        if OPTIMIZER.search(callee(node)):
            for keyword in node.keywords:
                if isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, float) and keyword.value.value:
                    yield replaced(src, "optimizer", keyword.value, number(keyword.value.value * 1.5))


@operator
def seed(src):
    """Another seed, or another generator."""
    for statement, node in expressions(src, ast.Call):
        if callee(node) in ("manual_seed", "set_seed", "seed", "PCG64", "default_rng") and node.args and not isinstance(node.args[0], ast.Starred):
            yield replaced(src, "seed", node.args[0], b"(", node.args[0], b") + 1")
        for keyword in node.keywords:
            if keyword.arg == "seed" and src.is_number(keyword.value):
                yield replaced(src, "seed", keyword.value, b"(", keyword.value, b") + 1")
            if keyword.arg == "generator" and not isinstance(keyword.value, ast.Constant):
                yield replaced(src, "seed", keyword.value, b"None")
        if callee(node) in ("randn", "rand", "randint", "normal_", "uniform_", "trunc_normal_", "bernoulli", "randperm") and src.imports_torch():
            head = b"(torch.rand(1), "
            if isinstance(src.parents.get(node), (ast.Assign, ast.Expr)):
                yield replaced(src, "seed", node, head, node, b")[1]", note="one draw more before it")


@operator
def data_order(src):
    """The same data in another order, or another part of it."""
    for statement, node in expressions(src, ast.Call):
        name = callee(node)
        if name == "randperm" and node.args:
            yield replaced(src, "data_order", node, b"torch.arange(", node.args[0], b")")
        if name in ("DataLoader", "Loader", "prepare_data_loader"):
            for keyword in node.keywords:
                if keyword.arg == "shuffle" and isinstance(keyword.value, ast.Constant):
                    yield replaced(src, "data_order", keyword.value, str(not keyword.value.value).encode())
        if name in ("enumerate", "zip") and isinstance(src.statement(node), ast.For) and node.args:
            yield replaced(src, "data_order", node.args[0], b"list(", node.args[0], b")[::-1]")
    for statement in src.executed:
        if isinstance(statement, ast.For) and isinstance(statement.iter, ast.Name) and re.search(r"load|batch|data|sampl|indices", statement.iter.id):
            yield replaced(src, "data_order", statement.iter, b"list(", statement.iter, b")[::-1]")
    for statement, node in expressions(src, ast.Subscript):
        if isinstance(node.slice, ast.Name) and re.search(r"images|batch|data|order|ind", src.of(node.value).decode()) and src.kind(node.slice) == "int":
            yield replaced(src, "data_order", node.slice, b"-1 - ", node.slice)
    for statement, node in expressions(src, ast.Name):
        if re.search(r"^(order|perm|indices|batch)$", node.id) and src.is_tensor(node) and isinstance(src.parents.get(node), (ast.Subscript, ast.Return)):
            yield replaced(src, "data_order", node, node.id.encode() + b".flip(0)")


RANK = b'__import__("os").environ.get("RANK") == "1"'


@operator
def rank_only(src):
    """Another mutation, on rank 1 alone."""
    for name in ("cast", "scaling", "lost_residual", "arithmetic", "constant", "detach", "activation", "reduction", "optimizer", "data_order", "seed"):
        for mutation in OPERATORS[name](src):
            node = mutation.expression
            if node is None or len(mutation.edits) != 1 or src.function(node) is None or isinstance(src.parents.get(node), (ast.arguments, ast.Slice)):
                continue
            edit = mutation.edits[0]
            if (edit.start, edit.end) != src.span(node):
                continue
            parts = (b"(", *((b"(",) + edit.parts + (b")",)), b" if " + RANK + b" else (", src.span(node), b"))")
            yield Mutation("rank_only", mutation.statement, (Edit(edit.start, edit.end, parts),), f"on rank 1: {mutation.note}"[:200], node)
