"""Records from inside a program, where nobody can put `opguard run --` before its command.

    with opguard.recording("logs/run1", steps=(100, 103)):
        train()

Steps are counted from `first_step` (0) at the block's beginning, as optimizers step or opguard.step() is called. The log
has what `opguard run` records: of a program without probes losses, gradients, optimizer steps and random states, and
of one whose sources have probes every operator.

Every rank records into the same folder. What torchrun has started again after a failure goes into a folder of its own:
logs/run1.restart1. Counterexample: a program under `opguard run` is recorded already; the block then only runs.

The cost outside of `steps`: docs/guide/longjobs.md."""

import os

from opguard.load import messages

MODES = ("default", "full", "sketch", "trusted", "sdc", "model")


class Recording:
    """A context manager; start() and stop() by themselves are for callbacks.

        steps     (first, last), one number, None for all, or a text as "100..103"
        every     each k-th of them
        marked    only opguard.step() ends a step
        rank      where the launcher's variables do not say it"""

    def __init__(self, log, steps=None, *, every=1, mode="default", first_step=0, rank=None, ring=0, on="nan,spike", marked=False, observe=False):
        if mode not in MODES:
            raise ValueError("mode is %s, not %r" % (", ".join(MODES), mode))
        if isinstance(ring, bool) or not isinstance(ring, int) or ring < 0:
            raise ValueError("ring is a number of steps, not %r" % (ring,))
        self.window = window_text(steps, every)
        self.log = of_restart(os.path.abspath(os.fspath(log)), os.environ)
        self.mode, self.first_step, self.rank, self.marked = mode, first_step, rank, marked
        self.ring, self.on = ring, on
        self.observe = observe  # the training too: what `opguard infer` and `opguard check` read
        self._started = False

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, error, traceback):
        self.stop()

    def start(self, first_step=None):
        """Begins to record, unless the process is recorded already. FileExistsError: the folder has a log of this rank,
        from an earlier run. first_step: the number of the step that comes next."""
        from opguard import _rt
        from opguard.load import startup
        from opguard.record import recording

        if _rt.recording():
            messages.complain("this process is recorded already; %s is not written" % self.log)
            return
        options = startup.read_environment(os.environ)
        options.rank = options.rank if self.rank is None else self.rank
        _refuse_used(self.log, options.rank)
        options.log, options.mode = self.log, self.mode
        options.steps_recorded, options.ring, options.ring_on = self.window, self.ring, self.on if self.ring else ""
        options.first_step = self.first_step if first_step is None else first_step
        options.marked_steps = self.marked
        options.observations = options.observations or self.observe
        startup.options = options
        recording.start(options)
        self._started = True

    def stop(self):
        """The log is whole from here on."""
        if self._started:
            from opguard.record import recording

            self._started = False
            recording.close()


def window_text(steps, every=1):
    """(100, 103) -> "100..103", (100, None) -> "100..", "100..103" as it is; None, all of them, is ""."""
    if not isinstance(every, int) or every < 1:
        raise ValueError("every is a number of steps above 0, not %r" % (every,))
    if isinstance(steps, str):
        return steps if every == 1 else "%s/%d" % (steps, every)
    if steps is None:
        return "" if every == 1 else "0../%d" % every
    if isinstance(steps, int):
        steps = (steps, steps)
    first, last = steps
    if first < 0 or (last is not None and last < first):
        raise ValueError("steps are the first and the last of them, not %r" % (steps,))
    return "%d..%s%s" % (first, "" if last is None else last, "" if every == 1 else "/%d" % every)


def of_restart(log, environment):
    """The folder of this start of a job: torchrun counts how often it had to start it again."""
    count = environment.get("TORCHELASTIC_RESTART_COUNT", "0")
    return log if count in ("", "0") else "%s.restart%s" % (log, count)


def _refuse_used(log, rank):
    """A second run in one folder would be read as further processes of the first."""
    try:
        names = os.listdir(log)
    except OSError:
        return
    for name in names:
        if name.startswith("rank%d-" % rank) and name.endswith((".log", ".log.incomplete")):
            raise FileExistsError("%s already holds a log of rank %d; a run of its own needs a folder of its own" % (log, rank))
