"""OPGUARD_OBSERVATIONS=1: a recorded training is observed too, and the log has what was seen (docs/formats/observations.md).

    start      a log begins: everything is to be said in it
    on_torch   the hooks and wrappers are put in place, once a process

Values, random numbers, outputs, graphs and the numbers of hooks stay what they are; errors of ours are counted as
`opguard_faults`. Counterexample: what the doctor observes (observe/observing.py) are facts about one process, in a file."""

import os
import sys

from opguard import _rt
from opguard.load import importing
from opguard.observe import places
from opguard.training import api, batches, checkpoints, criteria, dropout, exchange, generators, hooks, kinds, modules, steps, stopping, where

_installed = set()


def start(options):
    """Before recording.on_torch: a step's rows are said before the step is over. Called again where a log begins anew;
    what is wrapped stays."""
    places.begin(options.tree, options.packages)
    if not _installed:
        _installed.add("start")
        os.register_at_fork(after_in_child=_forked)
        stopping.begin(options)
        hooks.install()
        importing.when_imported("torch", _on_torch)
    kinds.begin()


def _forked():
    # The child's log, if it writes one, knows nothing of the parent's.
    if kinds.is_on():
        kinds.begin()
        modules.calls.stack.clear()


def _on_torch(torch):
    if not _rt.recording():
        return
    for part in (steps, modules, generators, dropout, criteria, api, batches, checkpoints, exchange):
        hooks.guarded(part.install)(torch)


def on_torch_recorded(torch):
    """Behind the recording's hooks."""
    hooks.guarded(stopping.install)(torch)


def told(name, holds, values):
    """opguard.invariant() of the program: its name, whether it holds, at most 32 values. In a compiled function nothing
    is said, as its values are not there."""
    if kinds.watching() and not ("torch" in sys.modules and hooks.compiling()):
        _told(name, holds, values)


@hooks.guarded
def _told(name, holds, values):
    listed = []
    for key, value in list(values.items())[:32]:
        listed += [str(key), value if isinstance(value, (bool, int, float, str)) or value is None else _plain(value)]
    kinds.say("told", (str(name), bool(holds), listed, where.here()))


def _plain(value):
    from opguard.training import tensors

    found = tensors.number(value) if hasattr(value, "numel") else None
    return found if found is not None else str(type(value).__name__)


def close():
    """The log is about to end."""
    hooks.guarded(batches.close)()
    kinds.end()
