"""What was seen in this process, as one JSON file `facts-<pid>.json` that src/determinism reads.

    facts.add("draws", {"source": "numpy", "call": "rand", "place": ...})     the same again only counts

Facts are values: which call, where, in which step. Whether that is well is told elsewhere. The cost: one entry for each
distinct fact, MANY of a kind at most; what is over that is counted.
Counterexample: nothing is written for each draw."""

import json
import os
import sys
import threading

MANY = 64

_lock = threading.RLock()
_folder = ""
_rank = _world = 0
_began = 0  # the process that loaded this module
_lists = {}  # kind -> {key: entry}
_values = {}  # name -> value
_before_writing = []
step = 0  # steps of training that are over


def begin(folder, rank, world):
    """rank and world are the launcher's. A forked child, as a loader's worker is, writes a file of its own."""
    global _folder, _rank, _world, _began
    _folder, _rank, _world, _began = folder, rank, world, os.getpid()
    os.register_at_fork(after_in_child=_forked)


def _forked():
    """A child has facts of its own; what stands at the fork is its parent's."""
    _lists.clear()
    _values.clear()
    del _before_writing[:]


def is_child():
    return os.getpid() != _began


def _is_helper():
    """Started by multiprocessing, as a loader's workers are where they are spawned."""
    process = sys.modules.get("multiprocessing.process")
    return bool(process is not None and process.parent_process() is not None)


def add(kind, entry):
    """The entry as it is kept, with `times`; None where there are too many."""
    with _lock:
        known = _lists.setdefault(kind, {})
        key = json.dumps(entry, sort_keys=True, default=str)
        kept = known.get(key)
        if kept is None:
            if len(known) >= MANY:
                put("left_out." + kind, _values.get("left_out." + kind, 0) + 1)
                return None
            kept = known[key] = dict(entry, times=0, step=step)
            kept["times"] += 1
            if is_child():  # a worker is ended by a signal
                write()
            return kept
        kept["times"] += 1
        return kept


def count(kind):
    return len(_lists.get(kind, ()))


def put(name, value):
    """A value of this process, in place of the one before. add() is for what may come many times."""
    _values[name] = value


def before_writing(gather):
    """gather() is called at each write: it puts what is only known then, as a switch's value at the end."""
    _before_writing.append(gather)


def write():
    """All facts of this process, whole, in place of the file before. A gatherer that fails is noted under `problems`,
    and the others go on."""
    with _lock:
        for gather in list(_before_writing):
            try:
                gather()
            except Exception as error:
                _values.setdefault("problems", []).append("%s: %s" % (type(error).__name__, error))
        found = {
            "facts": 1, "pid": os.getpid(), "parent": os.getppid(), "child": is_child() or _is_helper(),
            "rank": _rank, "world": _world,
            "argv": [str(word) for word in getattr(sys, "argv", [])], "steps": step, "values": _values,
        }  # fmt: skip
        found.update((kind, list(entries.values())) for kind, entries in _lists.items())
        path = os.path.join(_folder, "facts-%d.json" % os.getpid())
        try:
            with open(path + ".part", "w", encoding="utf-8", errors="replace") as file:
                json.dump(found, file, default=str)
            os.replace(path + ".part", path)
        except OSError:
            pass  # the folder is gone: nobody waits for it
