"""OPGUARD_UNTIL_STEP: the run ends well once a step is over, before the program has come to its own end.

    ending/rank0, rank1     both are there
    ending/decision         "end" or "go on", whoever was first; it is a link, which is made or not made
    ended                   beside the logs, once the run has ended so

A run that is made again to prove something need not train on (docs/design/proof.md). Ranks end together: one that left
alone would leave the others in a collective that never ends. Each writes `ending/rank<R>` when it is there and waits
for the rest. Whoever sees all of them writes the decision `end`; whoever has waited too long writes `go on`. Only the
first decision counts, so all do the same."""

import os
import sys
import time

from opguard.load import exits, messages

WAIT_S = 30.0  # for a rank that steps less often, or not at all
CLOSE_WAIT_S = 10.0  # for ranks that close their logs; beyond it this one leaves


def end(log):
    """Does not return where the run ends here.

    os._exit skips the interpreter's own end: what is to be done at exit is done before it, and streams are flushed."""
    rank, world = place()
    if world > 1:
        folder = os.path.join(log, "ending")
        os.makedirs(folder, exist_ok=True)
        if not _agreed(folder, rank, world):
            messages.complain("not every rank has come to the end of the step; the run goes on to its end")
            return
        exits.run()
        # A rank whose process is gone while another still writes could take the store with it.
        _mark(folder, "closed%d" % rank)
        _wait(lambda: _count(folder, "closed") >= world, CLOSE_WAIT_S)
    _end_helpers()
    exits.run()
    with open(os.path.join(log, "ended"), "w", encoding="utf-8"):
        pass
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass  # closed, or nobody reads it
    os._exit(0)


def place():
    """This process's rank and how many there are, as the program's group says; of a program without one (0, 1)."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1


def _agreed(folder, rank, world):
    decision = os.path.join(folder, "decision")
    _mark(folder, "rank%d" % rank)
    _wait(lambda: os.path.exists(decision) or _count(folder, "rank") >= world, WAIT_S)
    _decide(folder, rank, "end" if _count(folder, "rank") >= world else "go on")
    with open(decision, encoding="utf-8") as file:
        return file.read() == "end"


def _decide(folder, rank, what):
    """os.link makes the decision with its contents, or fails since there is one: nobody reads half of it."""
    mine = os.path.join(folder, "proposal%d" % rank)
    with open(mine, "w", encoding="utf-8") as file:
        file.write(what)
    try:
        os.link(mine, os.path.join(folder, "decision"))
    except FileExistsError:
        pass  # another rank was first


def _mark(folder, name):
    with open(os.path.join(folder, name), "w", encoding="utf-8"):
        pass


def _count(folder, start):
    return sum(name.startswith(start) for name in os.listdir(folder))


def _wait(is_so, seconds):
    until = time.monotonic() + seconds
    while not is_so() and time.monotonic() < until:
        time.sleep(0.01)


def _end_helpers():
    """A loader's workers would find out by themselves, seconds later: multiprocessing ends them so at its own exit."""
    multiprocessing = sys.modules.get("multiprocessing")
    if multiprocessing is None:
        return
    for child in multiprocessing.active_children():
        if child.daemon:
            child.terminate()
