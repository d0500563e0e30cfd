"""A mutation of a source, the operators that make some, and what these have in common."""

import ast
from dataclasses import dataclass

from mutants.source import Edit

OPERATORS = {}


@dataclass(frozen=True)
class Mutation:
    operator: str
    statement: object  # the node mutated
    edits: tuple
    note: str
    expression: object = None  # the expression replaced, where it is one


def operator(function):
    OPERATORS[function.__name__] = function
    return function


def replaced(src, name, node, *parts, note=""):
    """The mutation that puts parts in an expression's place; parts: bytes or nodes of the same text."""
    pieces = tuple(p if isinstance(p, bytes) else src.span(p) for p in parts)
    new = b"".join(p if isinstance(p, bytes) else src.data[p[0] : p[1]] for p in pieces)
    note = note or f"{src.of(node).decode()} -> {new.decode()}"
    return Mutation(name, src.statement(node), (Edit(*src.span(node), pieces),), " ".join(note.split())[:200], node)


def wrapped(src, node):
    """The parts of an expression in brackets of its own."""
    return (b"(", node, b")")


def expressions(src, kinds=ast.AST):
    """(statement, expression) of everything that ran."""
    for statement in src.executed:
        for node in src.own_nodes(statement):
            if isinstance(node, kinds) and hasattr(node, "lineno") and not isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del)):
                yield statement, node


def tensor_values(src):
    """Float tensors that are read: operands, arguments, what is assigned or returned."""
    for statement, node in expressions(src, ast.expr):
        parent = src.parents.get(node)
        used = isinstance(parent, (ast.BinOp, ast.Call, ast.keyword, ast.Return)) or (isinstance(parent, ast.Assign) and parent.value is node)
        if isinstance(parent, ast.Call) and parent.func is node or isinstance(node, ast.Starred):
            continue
        if used and src.is_float_tensor(node):
            yield statement, node


def number(value):
    """A number as it is written; of a product that is not exact, six digits."""
    return (repr(float(f"{value:.6g}")) if isinstance(value, float) else repr(value)).encode()
