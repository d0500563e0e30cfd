"""opguard: what instrumented sources import. `og(id, operand)` stands for the operand during one operator."""

import sys

from opguard.load import importing
from opguard._rt import aug, mark_micro_batch, mark_step, name, probe, probe_micro_batch, probe_step, probe_writes
from opguard.ranks.shards import combine

__all__ = ["InvariantViolation", "combine", "invariant", "keep", "micro_batch", "og", "read_log", "recording", "step", "when_parted"]


# A function of Python, not of C: torch.compile traces into it, and reads its attributes. It has returned before the
# operator runs, so the operator gains no frame.
def og(boundary, operand):
    return probe(boundary, operand)


def _writes(boundary, operand):
    return probe_writes(boundary, operand)


def _step(boundary, operand):
    return probe_step(boundary, operand)


def _micro_batch(boundary, operand):
    return probe_micro_batch(boundary, operand)


def step():
    """A training step ends here: from the first call on, nothing else counts as the end of one. Without a log, nothing."""
    mark_step()


def micro_batch():
    """The same for a micro-batch of the step."""
    mark_micro_batch()


def read_log(path):
    """A log, or a folder of them, as tables for numpy, pandas, Arrow and Parquet: opguard.logs.Log (docs/formats/reading.md)."""
    from opguard import logs  # a program that is recorded needs none of it

    return logs.read_log(path)


def recording(log, steps=None, **options):
    """with recording("logs/run1", steps=(100, 103)): train() -- records without a command: opguard.recordings.Recording."""
    from opguard import recordings

    return recordings.Recording(log, steps, **options)


def keep(why="opguard.keep()"):
    """The ring of the last steps is written once this step is over. Where none is kept, nothing."""
    rings = sys.modules.get("opguard.record.ring")
    if rings is not None:
        rings.keep(why)


def when_parted(call):
    """`call(step)`, once, as the step ends in which this rank parts from the run of `opguard run --against`: to write parameters, or a batch.
    Where the run is stopped, every rank calls it behind the same step. Without --against it is never called. Returns `call`."""
    from opguard.record import against  # few programs ask for it

    against.calls.append(call)
    return call


def invariant(name, holds, **values):
    """A rule of the program's own: `opguard.invariant("loss below start", loss < first, step=step)`. `opguard run --observe`
    and `--check` note whether it holds, with the values and the line; where nothing is observed, nothing. Returns `holds`."""
    observing = sys.modules.get("opguard.training.observing")
    if observing is not None:
        observing.told(name, holds, values)
    return holds


class InvariantViolation(RuntimeError):
    """`opguard run --check F --on-violation stop` raises it as the step ends that violates an invariant: `step`."""

    def __init__(self, step):
        super().__init__("step %d violates an invariant" % step)
        self.step = step

    def __reduce__(self):
        return InvariantViolation, (self.step,)


og.aug = aug
og.name = name
og.writes, og.step, og.micro_batch = _writes, _step, _micro_batch


def _on_dynamo(dynamo):
    from opguard.compiled import probes

    probes.install()


def _on_sources(sources):
    from opguard.load import script

    script.install(sources)


# Recording or not: a patched program may compile.
importing.when_imported("torch._dynamo", _on_dynamo)
importing.when_imported("torch._sources", _on_sources)
