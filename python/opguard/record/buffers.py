"""Buffers of the program's modules, by name: what a training step leaves beside its parameters.

    nn.BatchNorm1d in layers.0      "layers.0.bn.running_mean", "layers.0.bn.running_var"; both may change uncounted
    a second model of class Ema     "Ema.layers.0.bn.running_mean"; of a third "Ema#2.layers.0..."

Modules are met in the walks of parameter_names.py and held by weak references. Another walk is made when a module that
no walk has met registers a buffer. Nothing of a module's own code runs: its tables are read as they lie.

Counterexample: a tensor that a module keeps as a plain attribute is no buffer, and is not seen."""

import sys
import weakref

from opguard.record import hook_numbers, parameter_names

# A program that makes modules with buffers all the time must not cost a walk each.
_MOST_WALKS = 16

# What torch.fx calls the constants that it meets while it traces: a compiler's, no state of the program.
_CONSTANTS = ("_tensor_constant", "_lifted_tensor_constant")

_modules = {}  # id -> (weak reference, name with a dot at its end, do its kernels write uncounted?)
_taken = set()
_state = {"unmet": True, "walks": 0}


def install(torch):
    """The program has torch; torch before 2.0 tells of no registration."""
    parameter_names.on_root.append(meet)
    register = getattr(torch.nn.modules.module, "register_module_buffer_registration_hook", None)
    if register is not None:
        with hook_numbers.apart():
            register(_registered)


def _registered(module, name, buffer):
    """torch's hook: the first module that nobody has met asks for a walk. It is made when buffers are next wanted."""
    if not _state["unmet"] and _entry(module) is None:
        _state["unmet"] = True


def _entry(module):
    """What is known of a module. An id may be a later module's: the weak reference tells."""
    entry = _modules.get(id(module))
    return entry if entry is not None and entry[0]() is module else None


def meet(root, prefix):
    """The modules below `root`, which parameter_names.py has just named."""
    fresh = [(path, module) for path, module in parameter_names.modules_below(root) if _entry(module) is None]
    held = [path + name for path, module in fresh for name, _ in parameter_names.table(module, "_buffers")]
    kind, number = type(root).__name__, 1
    while any(prefix + name in _taken for name in held):
        prefix = kind + "." if number == 1 else "%s#%d." % (kind, number)
        number += 1
    _taken.update(prefix + name for name in held)
    for path, module in fresh:
        _modules[id(module)] = (weakref.ref(module), prefix + path, _writes_uncounted(module))


def _writes_uncounted(module):
    """Batch and instance norm: their kernels write running statistics behind the version counters."""
    kernels = getattr(sys.modules.get("torch.nn.modules.batchnorm"), "_NormBase", None)
    return kernels is not None and kernels in type.__dict__["__mro__"].__get__(type(module))


def _is_traced(module):
    graphs = getattr(sys.modules.get("torch.fx.graph_module"), "GraphModule", None)
    return graphs is not None and graphs in type.__dict__["__mro__"].__get__(type(module))


def collect():
    """[(name, tensor, may it change uncounted)] of every living buffer."""
    if "torch" not in sys.modules:
        return []
    if _state["unmet"] and _state["walks"] < _MOST_WALKS:
        _state["unmet"] = False
        _state["walks"] += 1
        parameter_names.walk()
    found, seen = [], set()
    for number, (reference, path, uncounted) in list(_modules.items()):
        module = reference()
        if module is None:
            _modules.pop(number, None)
            continue
        for name, tensor in parameter_names.table(module, "_buffers"):
            if name.startswith(_CONSTANTS) and _is_traced(module):
                continue
            if tensor is not None and id(tensor) not in seen and not parameter_names.is_lazy(tensor):
                seen.add(id(tensor))
                found.append((path + name, tensor, uncounted))
    return found
