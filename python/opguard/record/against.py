"""`opguard run --against LOG`: each step is compared with an earlier run's, and the run ends in the step in which it
parts.

The log's own thread digests a step as it is over, or the program's where it is small, and holds it against the index
beside the earlier log (src/record/steps_against.h). Here is what is done about it:

    stop     the run ends well, all ranks behind the same step (until.py)
    report   it is said once, and the run goes on
    opguard.when_parted(call)   the program's own: it may write its parameters, or its batch

Ranks agree without a collective. Each writes 8 bytes into the file `against` in the log folder as a step ends: how many
steps it has compared, or that it has parted. Then it waits until the others have come as far. A step whose gradients
are reduced has brought them there already. A rank that does not come within PATIENCE is waited for no more.

The cost: waiting until the log's thread has coded what the step left, and a few system calls a step."""

import os
import struct
import time

from opguard import _rt
from opguard.load import messages
from opguard.record import until

PATIENCE = 30.0  # seconds
_PARTED = 1 << 63
_LONGEST_NAP = 0.001

calls = []  # of when_parted: each is called once, with the step


def index_of(folder, rank):
    """The index of this rank's log in the folder of an earlier run; ValueError: there is none, or several."""
    named = "rank%d-" % rank
    found = sorted(n for n in os.listdir(folder) if n.startswith(named) and n.endswith((".steps", ".steps.incomplete")))
    if len(found) != 1:
        raise ValueError("%s: %s of rank %d" % (folder, "several indexes of steps" if found else "no index of steps", rank))
    return os.path.join(folder, found[0])


def install(options):
    try:
        _rt.hold_against(index_of(options.against, options.rank), Ranks(os.path.abspath(options.log), options.rank, options.on_parting))
    except (OSError, ValueError) as error:
        messages.complain("not compared while it runs: %s" % error)
        return
    _rt.end_after(0xFFFFFFFE, lambda: until.end(os.path.abspath(options.log)))


class Ranks:
    """What a rank's comparison says as a step ends -> True where the run is to end.

    told: it was said that it parts, once. late: a rank did not come in time, and is not waited for again until all are
    there."""

    def __init__(self, log, of_rank, on_parting):
        self.log, self.of_rank, self.stops = log, of_rank, on_parting == "stop"
        self.told = self.late = False

    def __call__(self, step, parted):
        rank, world = until.place()
        differs = parted >= 0
        if differs and not self.told:
            self.told = True
            # The log's, whose step it is: the program may have no group.
            messages.complain("rank %d parts from the earlier run in step %d" % (self.of_rank, parted))
        ends = self.stops and (self._agreed(step, differs, rank, world) if world > 1 else differs)
        if ends or differs:
            self._call(step)
        return ends

    def _call(self, step):
        """What fails in a call is said, and fails nothing else."""
        while calls:
            call = calls.pop(0)
            try:
                call(step)
            except Exception as error:
                messages.complain("warning: %s of opguard.when_parted: %s: %s" % (getattr(call, "__name__", "a call"), type(error).__name__, error))

    def _agreed(self, step, parted, rank, world):
        """Has some rank parted in this step or before? Then all end behind the same step.

        The file has a word a rank: step + 1, with the highest bit where it parted there. One that has not come reads as
        0."""
        file = os.open(os.path.join(self.log, "against"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            os.pwrite(file, struct.pack("<Q", _PARTED | step + 1 if parted else step + 1), 8 * rank)
            end, nap = time.monotonic() + PATIENCE, 0.00002
            while True:
                words = os.pread(file, 8 * world, 0).ljust(8 * world, b"\0")
                seen = struct.unpack("<%dQ" % world, words)
                if all(word & ~_PARTED > step for word in seen) or self.late or time.monotonic() > end:
                    break
                time.sleep(nap)
                nap = min(2 * nap, _LONGEST_NAP)
        finally:
            os.close(file)
        self.late = not all(word & ~_PARTED > step for word in seen)
        return any(word & _PARTED and word & ~_PARTED <= step + 1 for word in seen)
