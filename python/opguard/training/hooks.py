"""How the program's calls are seen: a function of torch's is wrapped, does what it did, and we are told.

    around(nn.utils, "clip_grad_norm_", end=tell)     tell(token, result, args, kwargs) after the outermost call

Of calls within each other the outermost counts, by thread and `family`. Our errors reach nobody: they are counted as
`opguard_faults`. torch.compile inlines what stood there before (`_torchdynamo_inline`), and never our own frames.

Counterexample: a function that a program has taken by name before the wrapper was there is not seen.
The cost of a call that is not watched: a look into a set and a question."""

import functools
import sys
import threading
import types

from opguard import _rt
from opguard.load import importing
from opguard.training import kinds


class _Inside(threading.local):
    def __init__(self):
        self.families = set()


inside = _Inside()
_dynamo = {"set_eval_frame": None, "skip_code": None}
_codes = []  # of wrappers, which dynamo's frame evaluation passes by
_wrapped = []  # (original, ours): what dynamo knows by identity
replaced = []  # (owner, name, original, ours), for bench/observing_cost.py


def fault(error, what):
    """Ours, and swallowed."""
    try:
        _rt.fault("not observed: %s: %s: %s" % (what, type(error).__name__, str(error)[:200]))
    except Exception:
        pass


def guarded(function):
    """function(*args), whose errors are counted and not raised; then None."""

    @functools.wraps(function)
    def safe(*args):
        try:
            return function(*args)
        except Exception as error:
            fault(error, function.__name__)
            return None

    return safe


def compiling():
    """Is torch.compile or torch.jit tracing here? Then values are no values, and what we ask would come into the
    graph."""
    torch = sys.modules["torch"]
    compiler = getattr(torch, "compiler", None)
    if compiler is not None and getattr(compiler, "is_compiling", bool)():
        return True
    return torch._C._get_tracing_state() is not None


def unwatched(function, *args):
    """function(*args), of which neither torch.compile nor the program's modes and subclasses see anything."""
    switch = _dynamo["set_eval_frame"]
    with sys.modules["torch"]._C.DisableTorchFunction():
        if switch is None:
            return function(*args)
        before = switch(None)
        try:
            return function(*args)
        finally:
            switch(before)


def _nothing(*args):
    return None


def around(owner, name, begin=_nothing, end=_nothing, family="", failed=None):
    """begin(args, kwargs) -> token; end(token, result, args, kwargs). Where the call raises, failed(token).

        around(GradScaler, "step", begin, end, family="scaler")      unscale_ within step is no row of its own

    Returns the wrapper, for who must put it under a second name; None where there is no such function, or it is
    wrapped."""
    original = getattr(owner, name, None)
    if original is None or getattr(original, "_opguard_training", False):
        return None
    family = family or name
    begin, end = guarded(begin), guarded(end)
    failed = None if failed is None else guarded(failed)

    @functools.wraps(original)
    def call(*args, **kwargs):
        if family in inside.families or not kinds.watching() or compiling():
            return original(*args, **kwargs)
        families = inside.families
        families.add(family)
        try:
            token = unwatched(begin, args, kwargs)
            try:
                result = original(*args, **kwargs)
            except BaseException:
                if failed is not None:
                    unwatched(failed, token)
                raise
            unwatched(end, token, result, args, kwargs)
            return result
        finally:
            families.discard(family)

    replace(owner, name, original, call)
    return call


def around_function(torch, name, tell, family):
    """tell(name, args, kwargs) before the outermost call of torch.nn.functional's function."""
    functional = torch.nn.functional
    original = getattr(functional, name, None)
    if original is None or getattr(original, "_opguard_training", False):
        return
    # It runs with the function's own globals: all it needs is here.
    tell, watching, traced, without, within = guarded(tell), kinds.watching, compiling, unwatched, inside

    def call(*args, **kwargs):
        if family in within.families or not watching() or traced():
            return original(*args, **kwargs)
        within.families.add(family)
        try:
            without(tell, name, args, kwargs)
            return original(*args, **kwargs)
        finally:
            within.families.discard(family)

    # TorchScript reads the function's source, and looks for its names where the original has them.
    held = getattr(original, "__globals__", vars(functional))
    ours = functools.wraps(original)(types.FunctionType(call.__code__, held, name, None, call.__closure__))
    builtin = getattr(torch._C._nn, name, None) if not isinstance(original, types.FunctionType) else None
    if not isinstance(original, types.FunctionType):
        found = torch.jit._builtins._find_builtin(original)
        if found:
            torch.jit._builtins._register_builtin(ours, found)
    replace(functional, name, original, ours)
    if builtin is original:
        torch._C._nn.__dict__[name] = ours  # what a subclass of Tensor is told was called


def has_compiled():
    """Its graphs would be compiled again, were a function wrapped that they have traced."""
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", {})
    return bool(counters.get("frames"))


def replace(owner, name, original, ours):
    """owner.name is `ours`, and is known to be: _opguard_training keeps it from being wrapped twice,
    _torchdynamo_inline gives the compiler the original."""
    ours._opguard_training = True
    ours._torchdynamo_inline = original
    setattr(owner, name, ours)
    replaced.append((owner, name, original, ours))
    known(original, ours)


def known(original, ours):
    """torch.compile is to see the one as the other."""
    _wrapped.append((original, ours))
    _codes.append(ours.__code__)
    if _dynamo["skip_code"] is not None:
        _tell_dynamo(((original, ours),))


def install():
    importing.when_imported("torch._dynamo", _on_dynamo)


def _on_dynamo(dynamo):
    """From here on our frames switch the compiler's frame evaluation off for themselves. Before torch._dynamo is there,
    there is none to switch off."""
    frames = sys.modules["torch"]._C._dynamo.eval_frame
    _dynamo["skip_code"] = getattr(frames, "skip_code", None) or getattr(sys.modules.get("torch._dynamo.eval_frame"), "skip_code", None)
    _dynamo["set_eval_frame"] = frames.set_eval_frame
    _tell_dynamo(_wrapped)


def _own_codes():
    """The code of all functions here, guarded ones also as they were: the compiler is told to leave them alone."""
    for name, module in list(sys.modules.items()):
        if name.startswith("opguard.training.") or name == "opguard.observe.places":
            for value in list(vars(module).values()):
                if isinstance(value, types.FunctionType) and value.__module__ == name:
                    yield value.__code__
                    held = getattr(value, "__wrapped__", None)  # guarded
                    if isinstance(held, types.FunctionType):
                        yield held.__code__


def _tell_dynamo(pairs):
    """What it has taken up by identity before we came is put in place again. Our frames are none of its business."""
    skip = _dynamo["skip_code"]
    if skip is not None:
        for code in {id(code): code for code in (*_codes, *_own_codes())}.values():
            skip(code)
    for module in ("torch._dynamo.utils", "torch._dynamo.variables.nn_module"):
        held = sys.modules.get(module)
        for original, ours in pairs:
            for name in ("unpatched_nn_module_call", "unpatched_nn_module_call_impl"):
                if getattr(held, name, None) is original:
                    setattr(held, name, ours)
    rules = sys.modules.get("torch._dynamo.trace_rules")
    of_torch = getattr(rules, "get_torch_obj_rule_map", None)
    if getattr(of_torch, "cache_info", None) is not None and of_torch.cache_info().currsize:
        table = of_torch()
        for original, ours in pairs:
            if table.get(original) is not None:
                table[ours] = table[original]
