"""Probes under torch.compile (docs/design/compile.md).

    torch 2.13          `og(id, x) * 2` is traced as enter, mul, leave: it records
    torch 2.5 to 2.12   `og(id, x)` is traced as x (substitute_in_graph): no graph break, no event
    before 2.5          the probe's function asks whether it is being compiled, and gives x

Where this torch's dynamo takes our handlers, a probed function records as it does when eager. Else `og(id, x)` is x:
the tracer cannot look into functions of C, and traces these in their place. The log says so, with the reason."""

import functools
import operator
import sys

from opguard.compiled import unprobed
from opguard.load import startup

# The operators `x op= y`, by their names in Python: __iadd__ and so on.
AUGMENTED = "add sub mul matmul truediv floordiv mod pow lshift rshift and or xor".split()
# For tests/gpu: the handlers are tried whatever torch it is.
ANY_TORCH = False
# Functions of _rt called as f(id, operand) that make a probe of the operand -> the flag of their events.
_PROBES = {"probe": "", "name": "", "probe_writes": "w", "probe_step": "s", "probe_micro_batch": "m"}


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


for _name in AUGMENTED:
    setattr(Name, "i" + _name, _in_place(getattr(operator, "i" + _name), lambda self: self.real))


def install():
    """In mode sdc probes make no event, so graphs hold none. Else the handlers, and where they do not fit the
    identity."""
    if startup.options.log and startup.options.mode == "sdc":
        return _install_identity()
    why = problem()
    if why:
        unprobed.count(f"no handlers: {why}")
        _install_identity()


def _probes():
    from opguard import _rt

    return {getattr(_rt, name): flag for name, flag in _PROBES.items()}


@functools.cache
def problem():
    """Puts the handlers into this torch's dynamo. Why it does not take them, "" if it does. After `import torch._dynamo`,
    at whose end the package comes here by itself."""
    try:
        from opguard.compiled import trace

        trace.install(_probes(), ANY_TORCH)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _install_identity():
    """Nothing of the program's or of torch's is given an attribute for it."""
    import torch

    from opguard import _rt

    substitute = getattr(torch.compiler, "substitute_in_graph", None)
    if substitute is None:
        return _ask_the_compiler()
    for ours in (*_probes(), _rt.aug):
        traced = name if ours is _rt.name else probe
        substitute(ours, skip_signature_check=True)(traced)


def _ask_the_compiler():
    """Before torch 2.5 the tracer is told of no function of C. It breaks the graph at one, and what is left on the stack is
    then a probe, which it cannot take in. A function of Python in its place asks, as the tracer answers itself."""
    from torch._dynamo import is_compiling

    package = sys.modules["opguard"]

    def asking(recorded, traced):
        return lambda boundary, operand: traced(boundary, operand) if is_compiling() else recorded(boundary, operand)

    for ours in _PROBES:
        setattr(package, ours, asking(getattr(package, ours), name if ours == "name" else probe))
    package.og.name, package.og.aug = package.name, asking(package.aug, aug)
    _read_attributes_of(package.og)


def _read_attributes_of(og):
    """Before torch 2.3 the tracer breaks the graph at a function's attribute: `og.name`."""
    from torch._dynamo.variables.functions import UserFunctionVariable

    original = UserFunctionVariable.call_method

    @functools.wraps(original)
    def call_method(self, tx, method, args, kwargs):
        if self.fn is og and method in vars(og):
            traced = {"name": name, "aug": aug}.get(method, probe)
            return UserFunctionVariable(traced).call_function(tx, args, kwargs)
        return original(self, tx, method, args, kwargs)

    UserFunctionVariable.call_method = call_method
