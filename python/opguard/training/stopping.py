"""`opguard run --check`: each step is handed on at once, and a violation ends the program in the step that has it.

OPGUARD_CHECK=1             what was observed is flushed as an optimizer's step ends
OPGUARD_CHECK_STOP=FILE     and FILE-<pid> is waited for: 16 bytes, which `opguard run` writes and this process makes

    u64 steps checked       of this process: 1 + the step of the last optimizer row that was read
    u64 1 + step violated   0: none

    step 4 ends here        flush; the parent reads up to step 4 and writes (5, 0): the program goes on
                            or (5, 5): InvariantViolation(4) is raised out of optimizer.step()

A parent that does not answer within 10 s is waited for no more, until it does. Counterexample: with
OPGUARD_CHECK alone nothing is waited for. The cost: a step waits until it has been checked."""

import mmap
import os
import struct
import sys
import time

from opguard import _rt
from opguard.record import hook_numbers
from opguard.training import hooks, kinds

PATIENCE = 10.0  # seconds
_LONGEST_NAP = 0.0002  # seconds between two looks at the file; the first is 10 us, each further one twice as long

_state = {"file": "", "map": None, "pid": None, "late": False, "flush": False}


def begin(options):
    _state["file"], _state["flush"] = options.check_stop, options.check or bool(options.check_stop)


def _map():
    """This process's 16 bytes, which a forked child makes anew under its own pid."""
    if _state["pid"] != os.getpid():
        _state.update(pid=os.getpid(), map=None, late=False)
        path = "%s-%d" % (_state["file"], os.getpid())
        with open(path + ".new", "w+b") as file:
            file.write(bytes(16))
            file.flush()
            _state["map"] = mmap.mmap(file.fileno(), 16)
        os.rename(path + ".new", path)  # whoever looks finds it whole
    return _state["map"]


def violated_after(step):
    """Waits until `step` is checked. -> the step that is violated, or None."""
    held = _map()
    end, nap = time.monotonic() + PATIENCE, 0.00001
    while True:
        checked, violated = struct.unpack("<QQ", held[:16])
        if violated:
            return violated - 1
        if checked > step:
            _state["late"] = False
            return None
        if _state["late"] or time.monotonic() > end:
            _state["late"] = True
            return None
        time.sleep(nap)
        nap = min(2 * nap, _LONGEST_NAP)


@hooks.guarded
def _handed_on(step):
    _rt.flush_soon()
    return violated_after(step) if _state["file"] else None


# The step in which an optimizer's step began: the recorder may have gone on to the next as it ends.
_step = {"at": None}


def _begins(optimizer, args, kwargs):
    _step["at"] = _rt.step()


def _ended(optimizer, args, kwargs):
    """The raise passes out of torch's hook into optimizer.step(), whose caller is the program."""
    if not kinds.watching() or hooks.compiling():
        return
    step = _step["at"] if _step["at"] is not None else _rt.step()
    violated = hooks.unwatched(_handed_on, step)
    if violated is not None:
        raise sys.modules["opguard"].InvariantViolation(violated)


def install(torch):
    """Behind the recording's own hooks: the step is over, and its record whole."""
    optim = sys.modules["torch.optim.optimizer"]
    if not _state["flush"] or not hasattr(optim, "register_optimizer_step_pre_hook"):
        return
    with hook_numbers.apart():
        optim.register_optimizer_step_pre_hook(_begins)
    with hook_numbers.apart():
        optim.register_optimizer_step_post_hook(_ended)
