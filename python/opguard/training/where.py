"""The place of an observation: the innermost frame of the program's own source, as "train.py:38:Net.forward".

The path is absolute there, and the function's name is qualified. A code object's answer is kept, with the object, so
that its id stays its own. Counterexample: places.caller() also says through which library it went, and costs more.

The cost: 60 ns a frame that is passed, once a line is known."""

import os
import sys

from opguard.observe import places

_users = {}  # id of a code object -> (it, is it the program's)
_texts = {}  # (id of a code object, line) -> text
_MANY = 100_000


def here(skipped=1):
    """The text, or None where no frame is the program's. skipped: frames that need no look, this one among them.
    Frames of the package are passed over in any case."""
    frame = sys._getframe(skipped)
    while frame is not None:
        code = frame.f_code
        known = _users.get(id(code))
        if known is None:
            known = _users[id(code)] = (code, not code.co_filename.startswith(places._own) and places.is_users(frame))
        if known[1]:
            key = (id(code), frame.f_lineno)
            text = _texts.get(key)
            if text is None:
                if len(_texts) > _MANY:
                    _texts.clear()
                text = _texts[key] = _text(code, frame.f_lineno)
            return text
        frame = frame.f_back
    return None


def _text(code, line):
    path = code.co_filename
    if not path.startswith("<"):
        path = os.path.abspath(path)
    return "%s:%d:%s" % (path, line or 0, getattr(code, "co_qualname", code.co_name))


def is_users_class(kind):
    """Is a class written in the program's own source?"""
    name = getattr(kind, "__module__", "")
    if name == "__main__":
        return True
    path = getattr(sys.modules.get(name), "__file__", None)
    return isinstance(path, str) and places.is_users_file(path)
