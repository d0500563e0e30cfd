"""Dynamo's variables, read and made: what a variable stands for while a function is traced. The names and classes that
torch moves from release to release are met here only."""

from torch._dynamo import variables
from torch._dynamo.variables.base import ValueMutationNew, VariableTracker


def real(variable):
    """dynamo builds most variables late: this is what one stands for by now."""
    realize = getattr(variable, "realize", None)
    return realize() if realize is not None else variable


def field(variable, name):
    """A field of a variable, None where it has none or cannot tell (a list's `value` is a property that may raise)."""
    try:
        return getattr(variable, name, None)
    except Exception:
        return None


def classes(name):
    """A class of dynamo's variables, () where this torch has none of that name: isinstance() is then false."""
    return getattr(variables, name, ())


def is_tensor(variable):
    """A tensor, and no number that dynamo carries as one (UnspecializedPythonVariable)."""
    return isinstance(variable, variables.TensorVariable) and not isinstance(
        variable, classes("UnspecializedPythonVariable")
    )


def example(node):
    """Of a graph's node: the fake tensor that dynamo traces with, or another value, or None."""
    return node.meta.get("example_value")


def device(variable):
    """The torch.device of a tensor, None where dynamo does not know."""
    try:
        return example(variable.as_proxy().node).device
    except Exception:
        return None


def constant(variable):
    """-> (True, value) where dynamo knows it."""
    try:
        if variable.is_python_constant():
            return True, variable.as_python_constant()
    except Exception:
        pass
    return False, None


def type_of(variable):
    try:
        return variable.python_type()
    except Exception:
        return None


def sequence(variable):
    """-> (items, field names or None), or None."""
    base = getattr(variable, "_base_vt", None) or getattr(variable, "_tuple_vt", None)
    kind = type_of(variable)
    if isinstance(kind, type) and issubclass(kind, (list, tuple)):
        listed = getattr(variable, "items", None) or getattr(base, "items", None) or []
        if isinstance(listed, list):
            fields = getattr(kind, "_fields", None) if issubclass(kind, tuple) else None
            return listed, fields if fields and len(fields) == len(listed) else None
    return None


def mapping(variable):
    """-> {key: value} of a dict's variable, or None. Where the entries lie depends on its kind."""
    kind = type_of(variable)
    if not (isinstance(kind, type) and issubclass(kind, dict)):
        return None
    entries = getattr(variable, "items", None)
    if not isinstance(entries, dict):
        entries = getattr(getattr(variable, "_base_vt", None), "items", None)
    return entries if isinstance(entries, dict) else None


def attribute(tx, variable, name):
    return VariableTracker.build(tx, getattr).call_function(
        tx, [real(variable), variables.ConstantVariable.create(name)], {}
    )


def inline(tx, function, arguments):
    """A call of a function of Python, traced into the graph as the program's own calls are."""
    return tx.inline_user_function_return(VariableTracker.build(tx, function), arguments, {})


def make_list(entries):
    return variables.ListVariable(list(entries), mutation_type=new_value())


def new_value():
    return ValueMutationNew()


def make_text(value):
    return variables.ConstantVariable.create(value)
