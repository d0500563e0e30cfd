"""What is wrong with a plan, and the one line of the user's that says where.

    plan.py:41: rank 1: step() raises ValueError: shapes differ

A message never spans lines: editors and the command in C++ read it as `file:line: text`.
"""

import ast
import traceback

from . import sources

_LONGEST = 300  # characters of an exception's message; torch's may hold whole tensors


class Problem(Exception):
    """Bad input: exit 3. `file` None stands for the plan itself."""

    def __init__(self, text, file=None, line=1):
        super().__init__(text)
        self.text, self.file, self.line = text, file, line


# It is told as bad input, with the line that made the call: problem.raised().
class NotCaptured(BaseException):
    """What a real run can do and the capture of one rank cannot. No Exception: a plan that catches those must not go on without it."""


def said(error):
    """An exception in one line: its type and the first line of its message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    name = type(error).__name__
    return "%s: %s" % (name, lines[0][:_LONGEST]) if lines else name


def where_defined(function):
    """File and line of a function's `def`; the plan's first line where Python cannot tell."""
    function = getattr(function, "__wrapped__", function)
    code = getattr(function, "__code__", None) or getattr(getattr(function, "__func__", None), "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code else (None, 1)


def where_raised(error, otherwise):
    """File and line of the innermost frame of the user's: frames of torch say little about a plan."""
    if isinstance(error, SyntaxError) and error.filename and sources.is_user(error.filename):
        return error.filename, error.lineno or 1
    found = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    found = [place for place in found if sources.is_user(place[0])]
    return found[-1] if found else otherwise


def raised(who, function, error):
    """The problem that `function`, a part of the plan, raised `error`."""
    words = ": %s" % error if isinstance(error, NotCaptured) else " raises %s" % said(error)
    return Problem(who + words, *where_raised(error, where_defined(function)))


def line_of_name(tree, name):
    """The line of a module's top level that binds `name`, or 1."""
    for statement in tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)) and statement.name == name:
            return statement.lineno
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            if any((alias.asname or alias.name) == name for alias in statement.names):
                return statement.lineno
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if any(isinstance(node, ast.Name) and node.id == name for target in targets for node in ast.walk(target)):
                return statement.lineno
    return 1
