"""The calls that led to an operator, as a text of the log: `file:line:function` of each caller, the innermost first.

    rotate() called by Attention.forward, called by Block.forward:   /home/me/attention.py:30:Attention.forward
                                                                     /home/me/model.py:12:Block.forward

The function in which the operator stands is not among them: its place is the boundary's. Torch's own frames are left
out, and the standard library's that lie between its decorators. The cost: a tuple of numbers an operator, and the text
once for each way that leads to it.

Counterexample: a node of a backward pass runs under the call of `backward()`. What called its operator, its forward
event says.
"""

import os
import sys

# Frames that are looked at, the operator's own with them.
MOST = 8

_NOT_THE_USERS = ("torch", "opguard", "contextlib", "functools", "typing_extensions", "runpy", "importlib")

_texts = {}  # (id of a code object, instruction), ... -> text
_held = []  # code objects whose ids stand in _texts


def is_of_user(frame):
    """By the module's package. A module without a name, as exec() may make, counts as the user's."""
    name = frame.f_globals.get("__name__")
    return not isinstance(name, str) or name.partition(".")[0] not in _NOT_THE_USERS


def text(frames):
    """"" for none."""
    key = tuple([number for frame in frames for number in (id(frame.f_code), frame.f_lasti)])
    found = _texts.get(key)
    if found is None:
        _held.extend(frame.f_code for frame in frames)
        found = _texts[key] = "\n".join(map(_line, frames))
    return found


def _line(frame):
    code = frame.f_code
    function = code.co_qualname if sys.version_info >= (3, 11) else code.co_name
    path = code.co_filename.replace("\n", " ")
    if not path.startswith("<"):  # not of `python -c`
        path = os.path.abspath(path)
    return "%s:%d:%s" % (path, frame.f_lineno or 0, function)
