"""Modules' calls: torch.nn.Module.__call__ is replaced by one that observes behind the original.

    y = self.fc1(x)    call: module 3, form 7, caller 1, place model.py:12:Net.forward

torch.compile asks whether a class's __call__ is torch.nn.Module's, and then traces what is inside of it. So it never
sees ours, and its graphs stay as they are; frames of ours that it comes by it is told to skip (skip_frames).
Counterexample: a global forward hook is part of what it traces. A compiled region's modules are not observed."""

import functools
import sys
import threading

from opguard.record import parameter_names
from opguard.training import forms, objects, ranks, sink, where

_local = threading.local()
_library = {}  # class -> is it a library's
_roots = objects.Numbers()
_told = set()  # modules that were said
_LIBRARIES = ("torch", "transformers", "timm", "torchvision", "diffusers", "peft", "megatron", "deepspeed", "apex")


def stack():
    """[(number, training)] of the modules that this thread is in, the innermost last."""
    try:
        return _local.stack
    except AttributeError:
        _local.stack = []
        return _local.stack


def roots():
    """Modules that were called by no other."""
    return [module for _, module in _roots.living()]


def is_library(kind):
    known = _library.get(kind)
    if known is None:
        known = _library[kind] = kind.__module__.partition(".")[0] in _LIBRARIES
    return known


def number_of(module):
    """A module's number; those of a root are all said when its first is met."""
    number, fresh = objects.modules.of(module)
    if fresh:
        _say_tree(module, number)
    return number


def _say_tree(module, root):
    """What is called for the first time is a root, or was put into one later."""
    for path, below in parameter_names.modules_below(module):
        number, _ = objects.modules.of(below)
        if number in _told:
            continue
        _told.add(number)
        kind = type(below)
        count = sum(1 for p in below._parameters.values() if p is not None)
        sink.see("module", (number, path.rstrip("."), kind.__name__, is_library(kind), root, count))


def install(torch):
    module_type = torch.nn.Module
    original = module_type.__call__
    if getattr(original, "_opguard", False):
        return
    grad_enabled = torch.is_grad_enabled

    @functools.wraps(original)
    def __call__(self, *args, **kwargs):
        if sink.is_off():
            return original(self, *args, **kwargs)
        begun = _begin(self)
        if begun is None:
            return original(self, *args, **kwargs)
        grad = grad_enabled()
        held = stack()
        held.append(begun[0])
        try:
            result = original(self, *args, **kwargs)
        finally:
            held.pop()
        _ended(self, args, kwargs, result, grad, begun)
        return result

    __call__._opguard = True
    module_type.__call__ = __call__


@sink.guarded
def _begin(module):
    if _is_compiling():
        return None
    number = number_of(module)
    held = stack()
    if not held:
        ranks.meet()
        _roots.of(module)
    return (number, module.training), (held[-1][0] if held else None), None if module.training else _generators()


@sink.guarded
def _ended(module, args, kwargs, result, grad, begun):
    (number, _), caller, state = begun
    drew = None if state is None else _generators() != state
    form = forms.number_of(module, args, kwargs, result, grad, caller is None)
    sink.see("call", (number, form, caller, drew, where.place(3)))


def _generators():
    """What tells whether a random number was drawn since; of devices, their offsets, which nobody waits for."""
    torch = sys.modules["torch"]
    state = [bytes(torch.random.default_generator.get_state().numpy()[:5056])]
    if torch.cuda.is_initialized():
        for generator in torch.cuda.default_generators:
            try:
                state.append(generator.get_offset())
            except (AttributeError, RuntimeError):
                pass
    return state


def _is_compiling():
    compiler = getattr(sys.modules["torch"], "compiler", None)
    return getattr(compiler, "is_compiling", bool)()


def skip_frames(dynamo):
    """Frames of this package that torch.compile comes by are run as they are, and what they call is looked at."""
    try:
        from torch._C._dynamo.eval_frame import skip_code
    except ImportError:
        return
    import types

    seen = set()

    def skip(function):
        code = getattr(function, "__code__", None)
        if code is None or code in seen:
            return
        seen.add(code)
        skip_code(code)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType) and constant not in seen:
                seen.add(constant)
                skip_code(constant)

    for name, module in list(sys.modules.items()):
        if not name.startswith("opguard.training"):
            continue
        for value in list(vars(module).values()):
            skip(value)
            skip(getattr(value, "__wrapped__", None))
            if isinstance(value, type):
                for method in vars(value).values():
                    skip(method)
    skip(sys.modules["torch"].nn.Module.__call__)
    skip(sys.modules["opguard.observe.places"].is_users)
