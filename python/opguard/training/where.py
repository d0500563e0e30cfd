"""Where the program is: "path:line:function" of the innermost frame of its own source.

The cost: a look-up a frame; the text is made once for each line."""

import os
import sys

from opguard.observe import places

_users = {}  # code object -> is it the program's
_texts = {}  # (code object, line) -> text
_MOST = 64  # frames looked at


def begin(tree, packages):
    places.begin(tree, packages)


def place(depth=1):
    frame, seen = sys._getframe(depth), 0
    while frame is not None and seen < _MOST:
        seen += 1
        code = frame.f_code
        known = _users.get(code)
        if known is None:
            known = _users[code] = not code.co_filename.startswith(places._own) and places.is_users(frame)
        if known:
            key = (code, frame.f_lineno)
            text = _texts.get(key)
            if text is None:
                path = code.co_filename
                path = path if path.startswith("<") else os.path.abspath(path)
                text = "%s:%d:%s" % (path, frame.f_lineno or 0, getattr(code, "co_qualname", code.co_name))
                _texts[key] = text
            return text
        frame = frame.f_back
    return None
