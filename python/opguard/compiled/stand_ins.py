"""What stands for an operand while dynamo traces: plain Python that it traces into (trace.py makes the
instances). `enter` and `leave` are its words for "an operator begins, ends"; they are never called for real.

    og(id, x) * y      Operand.__mul__: enter(id, None, ("self", "arg0"), (x, y)); x * y; leave(entered, result)

One method for each form that an operator has: calls, items, attributes, iteration, comparison, arithmetic, with the
names of slots that src/runtime/probe gives them. Counterexample: `with og(id, x):` has no stand-in here (trace.py)."""

import operator

import torch

from opguard.compiled import ops
from opguard.compiled.probes import AUGMENTED


def enter(boundary, callee, names, values):
    """-> what `leave` wants. callee: what is called, else None. names, values: of the inputs."""
    raise NotImplementedError


def leave(entered, *result):
    """result: none where success is the only answer."""
    raise NotImplementedError


def items(operand):
    """The iterator of `for item in og(id, x)`."""
    raise NotImplementedError


def again(operand, real, base):
    """The operand of the same site, after an attribute or an item of it was read."""
    raise NotImplementedError


def emit_enter(device, values, numbers, site):
    torch.ops.opguard.enter(ops.RING[device], values, numbers, site)


def emit_leave(device, values, inputs, names, numbers, site):
    torch.ops.opguard.leave(
        ops.RING[device], ops.RING_BACKWARD[device], values, inputs, names, numbers, site
    )


class Operand:
    """og(id, x)"""

    def __call__(self, *args, **kwargs):
        entered = enter(self._opguard_id, self._opguard_real, args, kwargs)
        result = self._opguard_real(*args, **kwargs)
        leave(entered, result)
        return result

    def __getitem__(self, key):
        entered = enter(self._opguard_id, None, ("self", "arg0"), (self._opguard_real, key))
        result = self._opguard_real[key]
        leave(entered, result)
        return result

    def __setitem__(self, key, value):
        entered = enter(self._opguard_id, None, ("self", "arg0", "arg1"), (self._opguard_real, key, value))
        self._opguard_real[key] = value
        leave(entered)

    def __delitem__(self, key):
        entered = enter(self._opguard_id, None, ("self", "arg0"), (self._opguard_real, key))
        del self._opguard_real[key]
        leave(entered)

    def __contains__(self, item):
        entered = enter(self._opguard_id, None, ("self", "arg0"), (self._opguard_real, item))
        result = item in self._opguard_real
        leave(entered, result)
        return result

    def __bool__(self):
        entered = enter(self._opguard_id, None, ("self",), (self._opguard_real,))
        result = bool(self._opguard_real)
        leave(entered, result)
        return result

    def __format__(self, specification):
        """Formatting reads numbers and is no operator here: the plain value is formatted."""
        return format(self._opguard_real, specification)

    def __iter__(self):
        return items(self)

    def __pow__(self, other):
        entered = enter(self._opguard_id, None, ("self", "arg0"), (self._opguard_real, other))
        result = self._opguard_real**other
        leave(entered, result)
        return result


def _binary(function):
    def binary(self, other):
        entered = enter(self._opguard_id, None, ("self", "arg0"), (self._opguard_real, other))
        result = function(self._opguard_real, other)
        leave(entered, result)
        return result

    return binary


def _augment(function):
    """x += y and the like. `base`: what an item was taken of, which is changed too where the item is a view; None for a
    name."""

    def augment(self, other):
        operands = (self._opguard_real, other, self._opguard_base)
        entered = enter(self._opguard_id, None, ("self", "arg0", "base"), operands)
        result = function(self._opguard_real, other)
        leave(entered, result)
        return result

    return augment


def _unary(function):
    def unary(self):
        entered = enter(self._opguard_id, None, ("self",), (self._opguard_real,))
        result = function(self._opguard_real)
        leave(entered, result)
        return result

    return unary


for _name in AUGMENTED:
    if _name != "pow":
        setattr(Operand, f"__{_name}__", _binary(getattr(operator, f"__{_name}__")))
    for _method in (f"i{_name}", f"__i{_name}__"):
        setattr(Operand, _method, _augment(getattr(operator, "i" + _name)))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Operand, f"__{_name}__", _binary(getattr(operator, _name)))
for _name in ("neg", "pos", "invert", "abs"):
    setattr(Operand, f"__{_name}__", _unary(getattr(operator, _name)))
Operand.__divmod__ = _binary(divmod)
Operand.__hash__ = object.__hash__


# As src/runtime/probe/operand.cc has them: an attribute that is written to something other than a tensor is no event.
def read_attribute(self, name):
    entered = enter(self._opguard_id, None, ("self",), (self._opguard_real,))
    result = getattr(self._opguard_real, name)
    leave(entered, result)
    return result


def write_attribute(self, name, value):
    entered = enter(self._opguard_id, "tensors", ("self", "arg0"), (self._opguard_real, value))
    setattr(self._opguard_real, name, value)
    leave(entered)


class Place:
    """og.aug(id, x): the owner of an item or attribute that is assigned with an operator, `og.aug(id, x)[key] += y`."""

    def __getitem__(self, key):
        return again(self, self._opguard_real[key], self._opguard_real)

    # The item may be a copy (an index that is a tensor): then this is what changes the container.
    def __setitem__(self, key, value):
        entered = enter(self._opguard_id, "tensors", ("self", "arg0", "arg1"), (self._opguard_real, key, value))
        self._opguard_real[key] = value
        leave(entered)


def read_place(self, name):
    return again(self, getattr(self._opguard_real, name), None)


def write_place(self, name, value):
    setattr(self._opguard_real, name, value)


class Items:
    """iter(og(id, x)); only its type is asked for."""

    def __iter__(self):
        return self

    def __next__(self):
        raise StopIteration


# Dynamo puts an operator that has a tensor on one side into the graph without asking the other side's class. It has
# no unary operators of classes.
OPERATORS = {getattr(operator, f"__{name}__"): getattr(Operand, f"__{name}__") for name in AUGMENTED}
OPERATORS.update((getattr(operator, f"i{name}"), getattr(Operand, f"i{name}")) for name in AUGMENTED)
OPERATORS.update((getattr(operator, name), getattr(Operand, f"__{name}__")) for name in "eq ne lt le gt ge".split())
OPERATORS.update((getattr(operator, name), getattr(Operand, f"__{name}__")) for name in "neg pos invert abs".split())
OPERATORS.update({
    operator.getitem: Operand.__getitem__, operator.setitem: Operand.__setitem__,
    operator.delitem: Operand.__delitem__, operator.contains: Operand.__contains__,
    divmod: Operand.__divmod__, abs: Operand.__abs__,
})  # fmt: skip
