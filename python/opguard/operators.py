"""What an operator of torch is known to do, by its name alone: src/operators/operators.txt, as operators.h in C++.

    leaves_garbage("empty")         True, its result holds whatever was in memory; False of "zeros"
    with_value("seeds", "numpy")    names that set the state of numpy's generator: seed, set_state, ...

Names are last names: "cat", not "torch.cat"."""

from opguard.operator_table import TABLE


def has(name, column, *values):
    """Whether the name's row holds one of the values there; any where none is asked for."""
    found = TABLE.get(name, {}).get(column, ())
    return any(value in found for value in values) if values else bool(found)


def with_value(column, value):
    """The names whose row holds the value, sorted."""
    return tuple(name for name, row in TABLE.items() if value in row.get(column, ()))


def leaves_garbage(name):
    return has(name, "allocates", "garbage")


def only_looks(name):
    """It computes nothing: makes room that holds no value yet, shows a tensor otherwise, or touches no element."""
    return has(name, "allocates", "garbage", "resized") or has(name, "moves", "view") or has(name, "elements", "none")
