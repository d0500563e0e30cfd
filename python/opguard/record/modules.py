"""The module that an operator runs in, and what a step begins and ends with: parameters and gradients, by name.

    Attention.forward, called by Block.forward, in rotate(q, positions):   "layers.0.attention"
    a loss in train.py, outside of every module:                           None

The innermost method of a module on the Python stack tells it: the first argument of its function is the module. So no
hook is registered, and torch.compile sees none. A module is called by the path that leads to it from its root, which
is a module that no other holds and "<root>" itself. One without parameters, such as a loss, is "<CrossEntropyLoss>".

A module that is still being made has no name. Parameters are recorded as a step's first module is called. Of a program
whose optimizer is its own nobody says when a step ends: there they are recorded again once they were written.
Where no module has parameters, as in a model of functions, those that optimizers step are called as these hold them:

    torch.optim.AdamW(weights.values())       "param_groups.0.3"; of a second such optimizer "AdamW#2.param_groups.0.3"

Counterexample: a module that is called by another thread's stack, or by a compiled graph, is not found.
The cost: about a microsecond a frame, in mode `sketch` only.
"""

import gc
import sys
import weakref

from opguard import _rt
from opguard.record import call_stack, declared, parameter_names

# A program that makes modules all the time must not cost a walk each.
_MOST_WALKS = 16
# Elements of a parameter that tell whether it was written.
_SAMPLED = 64

_names = {}  # id -> (weak reference, name)
_roots = []  # (weak reference, prefix), those with parameters
_loose = {}  # id -> (weak reference, name) of parameters that no module holds
# By the id of a code object: it, which stays alive, whether its first argument may be a module, and whether it is the
# user's.
_codes = {}
_state = {"walks": 0, "parameters": None, "seen": None, "stamps": {}, "gradients": None, "call": None, "optimizers": False}


def install():
    parameter_names.on_root.append(_meet)


def _meet(root, prefix):
    holds = bool(parameter_names.named_parameters(root))
    if holds and not any(known() is root for known, _ in _roots):
        _roots.append((weakref.ref(root), prefix))
    for path, module in parameter_names.modules_below(root):
        name = ((prefix + path).rstrip(".") or "<root>") if holds else "<%s>" % type(root).__name__ + ("." + path).rstrip(".")
        _names[id(module)] = (weakref.ref(module), name)


def current(step, micro_batch):
    """(the name of the module that runs or None, the calls that led here: call_stack.py).

    The first time in a step that a module runs, the parameters are recorded. The innermost module counts: a function
    called by Attention.forward runs in the attention. The walk ends once both are known, MOST of the user's frames at
    most."""
    torch = sys.modules.get("torch")
    if torch is None:
        return None, None
    frame, named, calls = sys._getframe(1), None, []
    while frame is not None and (named is None or len(calls) < call_stack.MOST):
        code = frame.f_code
        known = _codes.get(id(code))
        if known is None:
            known = _codes[id(code)] = (code, code.co_argcount > 0 and code.co_varnames[0] == "self", call_stack.is_of_user(frame))
        if known[2]:
            calls.append(frame)
        if known[1] and named is None:
            module = frame.f_locals.get("self")
            if isinstance(module, torch.nn.Module):
                name = _name(module, frame)
                if name is not None:
                    named = name
                    if _state["seen"] != (step, micro_batch) and _is_called(frame):
                        _state["seen"] = (step, micro_batch)
                        if _state["parameters"] != step or (step == 0 and _are_written()):
                            _parameters(step)
        frame = frame.f_back
    return named, call_stack.text(calls[1:call_stack.MOST])


def _is_called(frame):
    """Is a module being called there? One that is made, loaded or initialised is not what a step begins with."""
    if _state["call"] is None:
        _state["call"] = sys.modules["torch"].nn.Module._call_impl.__code__
    return any(at.f_code is _state["call"] for at in _outward(frame))


def _is_made(frame):
    """Does some module's __init__ run there? Its parts are no one's yet, and to look for names costs a walk each."""
    module = sys.modules["torch"].nn.Module
    return any(at.f_code.co_name == "__init__" and isinstance(at.f_locals.get("self"), module) for at in _outward(frame))


def _outward(frame):
    while frame is not None:
        yield frame
        frame = frame.f_back


def _name(module, frame):
    """A module's name. An unknown one costs a walk, which is not made while a module's __init__ runs, and _MOST_WALKS
    times at most."""
    entry = _names.get(id(module))
    if entry is None or entry[0]() is not module:
        if _state["walks"] >= _MOST_WALKS or _is_made(frame):
            return None
        _state["walks"] += 1
        parameter_names.walk()
        entry = _names.get(id(module))
    return entry[1] if entry is not None and entry[0]() is module else None


def _parameters(step):
    """Once a step. Stamps are kept in step 0 alone: a program without an optimizer of torch's never leaves that."""
    _state["parameters"] = step
    found = list(_all())
    if step == 0:
        _state["stamps"] = {name: (weakref.ref(parameter), _stamp(parameter)) for name, parameter in found}
    _rt.record_tensors("<parameters>", [("param:" + name, parameter, declared.of_parameter(parameter)) for name, parameter in found])


def _are_written():
    for name, parameter in _all():
        known, stamp = _state["stamps"].get(name, (None, None))
        if known is not None and known() is parameter and _stamp(parameter) != stamp:
            return True
    return False


def _stamp(parameter):
    """Torch's version, and of a plain tensor on the CPU some elements: what writes through `.data` changes no version."""
    torch = sys.modules["torch"]
    version = None if parameter.is_inference() else parameter._version
    with torch.no_grad():
        held = parameter.detach()
        if type(held) is not torch.Tensor or held.device.type != "cpu" or held.layout != torch.strided or not held.numel():
            return version
        few = held.as_strided((min(held.numel(), _SAMPLED),), (1,)) if held.is_contiguous() else held.select(-1, 0)
        return version, tuple(held.shape), few.flatten()[:_SAMPLED].tolist()


def gradients(step):
    """As they are first clipped, or the first optimizer of a step begins. Megatron gathers them in `main_grad`."""
    if _state["gradients"] == step:
        return
    _state["gradients"] = step
    if not _state["optimizers"]:
        _meet_optimizers()
    if _state["parameters"] != step:
        _parameters(step)  # a compiled module is not seen being called
    found = []
    for name, parameter in _all():
        gradient = getattr(parameter, "main_grad", None)
        gradient = parameter.grad if gradient is None else gradient
        if gradient is not None:
            found.append(("grad:" + name, gradient, declared.of_parameter(parameter)))
    if found:
        _rt.record_tensors("<gradients>", found)


def _meet_optimizers():
    """Before the first clipping or step, by one walk over the interpreter's objects."""
    _state["optimizers"] = True
    if next(_all(), None) is not None:
        return
    kind, number = sys.modules["torch"].optim.Optimizer, 0
    for optimizer in gc.get_objects():
        if kind not in type.__dict__["__mro__"].__get__(type(optimizer)):
            continue
        number += 1
        prefix = "" if number == 1 else "%s#%d." % (type(optimizer).__name__, number)
        for at, group in enumerate(optimizer.param_groups):
            for i, parameter in enumerate(group["params"]):
                _loose.setdefault(id(parameter), (weakref.ref(parameter), "%sparam_groups.%d.%d" % (prefix, at, i)))


def _all():
    """(name, parameter) of all roots with parameters, then of those that only optimizers hold; the dead left out."""
    for reference, prefix in _roots:
        root = reference()
        if root is not None:
            for name, parameter in parameter_names.named_parameters(root):
                if not parameter_names.is_lazy(parameter):
                    yield prefix + name, parameter
    for reference, name in _loose.values():
        parameter = reference()
        if parameter is not None:
            yield name, parameter
