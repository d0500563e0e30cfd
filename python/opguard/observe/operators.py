"""Operators that have no deterministic kernel: torch warns of them where deterministic algorithms are asked for.

    x.put_(index, values)     "put_ does not have a deterministic implementation": put_, in train.py:12

The warnings are heard before the program's filters. Those of ours go no further; the program's own are shown once a
place, as Python does. In a backward pass the place is its call's: torch says no other.

Counterexample: an operator that torch does not know to be nondeterministic, as a kernel of Triton's with atomic
additions. Nobody warns of it."""

import functools
import sys
import warnings

from opguard.observe import facts, places

_MARK = "does not have a deterministic implementation"

_ours = False  # asked for by us: the program would have had no warning
_shown = set()


def ask(torch):
    """Deterministic algorithms for this run, warning only, unless the program has asked already."""
    global _ours
    _ours = True
    torch.use_deterministic_algorithms(True, warn_only=True)
    deterministic = getattr(torch.utils, "deterministic", None)
    if deterministic is not None:
        deterministic.fill_uninitialized_memory = False  # no operator of the program's
    facts.put("asked", True)


def install():
    """_showwarnmsg is what Python calls once a filter lets a warning through. warnings.showwarning would be the
    program's to replace. Each change of the filters is followed by ours going first again."""
    show = warnings._showwarnmsg

    def heard(message):
        if _MARK not in str(message.message):
            return show(message)
        note(str(message.message))
        key = (message.filename, message.lineno, str(message.message))
        if _ours or key in _shown:
            return None
        _shown.add(key)
        return show(message)

    warnings._showwarnmsg = heard
    for name in ("filterwarnings", "simplefilter", "resetwarnings"):
        setattr(warnings, name, _followed(getattr(warnings, name)))
    listen()


def _followed(original):
    @functools.wraps(original)
    def changed(*args, **kwargs):
        result = original(*args, **kwargs)
        listen()
        return result

    return changed


def listen():
    """Our filter first, whatever the program has put in front of it."""
    import re

    entry = ("always", re.compile(".*" + _MARK, re.I | re.S), UserWarning, None, 0)
    if warnings.filters and warnings.filters[0] == entry:
        return
    warnings.filters[:] = [entry] + [f for f in warnings.filters if f != entry]
    warnings._filters_mutated() if hasattr(warnings, "_filters_mutated") else None


def note(text):
    """The operator's name out of the text: the word before " does not have a deterministic implementation"."""
    name = text.split(_MARK)[0].strip().split(" ")[-1]
    facts.add("operators", {"name": name, "place": places.caller(), "backward": _in_backward()})


def _in_backward():
    """By the frames: the engine was called from torch's own backward(), on this thread."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name in ("backward", "_engine_run_backward") and frame.f_globals.get(
            "__name__", ""
        ).startswith("torch."):
            return True
        frame = frame.f_back
    return False


def gather():
    """The operator that stopped a program which asked for deterministic algorithms without warn_only."""
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    if isinstance(error, RuntimeError) and _MARK in str(error):
        place, trace = None, error.__traceback__
        while trace is not None:
            if places.is_users(trace.tb_frame):
                place = places.describe(trace.tb_frame.f_code, trace.tb_lineno)
            trace = trace.tb_next
        facts.add(
            "operators",
            {
                "name": str(error).split(_MARK)[0].strip().split(" ")[-1],
                "place": place,
                "backward": False,
                "stopped": True,
            },
        )
