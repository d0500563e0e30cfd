"""Probes under torch.compile: `og(id, x)` is x.

The tracer cannot look into functions of C; it traces these in their place."""

import operator

_AUGMENTED = "add sub mul matmul truediv floordiv mod pow lshift rshift and or xor".split()


def probe(boundary, operand):
    return operand


def aug(boundary, owner):
    return owner


class Name:
    """The operand of an augmented assignment to a name: `x = og.name(id, x).iadd(y)`."""

    def __init__(self, real):
        self.real = real


def name(boundary, operand):
    return Name(operand)


def _in_place(function, of):
    return lambda self, other: function(of(self), other)


for _name in _AUGMENTED:
    setattr(Name, "i" + _name, _in_place(getattr(operator, "i" + _name), lambda self: self.real))


def install():
    import torch

    from opguard import _rt

    # For `og(id, x).iadd(y)`, where x is the operand itself.
    for augmented in _AUGMENTED:
        function = getattr(operator, "i" + augmented)
        setattr(torch.Tensor, "i" + augmented, _in_place(function, lambda self: self))
    substitute = getattr(torch.compiler, "substitute_in_graph", None)
    if substitute is not None:
        marked = [(_rt.probe_writes, probe), (_rt.probe_step, probe), (_rt.probe_micro_batch, probe)]
        for ours, traced in [(_rt.probe, probe), (_rt.aug, aug), (_rt.name, name)] + marked:
            substitute(ours, skip_signature_check=True)(traced)
