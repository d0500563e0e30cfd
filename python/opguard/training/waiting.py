"""A step's end under `opguard run --check`: what was observed is handed on, and with `--on-violation stop` waited for.

The parent follows the logs. OPGUARD_CHECK_STOP=FILE: this process maps FILE-<pid>, 16 bytes: how many steps the parent
has checked, and 1 + the step that broke a rule. It waits at most 10 s for the parent, which may be gone."""

import mmap
import os
import struct
import time

from opguard import InvariantViolation, _rt

_LONGEST = 10.0  # seconds
_NAP = 0.0002

_state = {"follow": False, "file": "", "map": None, "pid": 0}


def begin(follow, file):
    _state["follow"], _state["file"] = follow or bool(file), file


def _mapped():
    if _state["map"] is None or _state["pid"] != os.getpid():
        path = "%s-%d" % (_state["file"], os.getpid())
        with open(path, "w+b") as file:
            file.write(bytes(16))
            file.flush()
            _state["map"] = mmap.mmap(file.fileno(), 16)
        _state["pid"] = os.getpid()
    return _state["map"]


def step_ended():
    if not _state["follow"] or not _rt.recording():
        return
    _rt.flush_soon()
    if not _state["file"]:
        return
    try:
        mapped = _mapped()
    except (OSError, ValueError):
        return
    over, step = time.monotonic() + _LONGEST, _rt.step()
    while time.monotonic() < over:
        checked, broken = struct.unpack("<QQ", mapped[:16])
        if broken:
            raise InvariantViolation("step %d breaks a rule of training; opguard has said which" % (broken - 1))
        if checked > step:
            return
        time.sleep(_NAP)
