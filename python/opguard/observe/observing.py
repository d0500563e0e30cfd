"""OPGUARD_OBSERVE=DIR: a run is observed, and each process leaves its facts in DIR (docs/guide/determinism.md).

    OPGUARD_OBSERVE_OPERATORS=1   deterministic algorithms are asked for, so that operators without one are named
    OPGUARD_UNTIL_STEP=N          the run ends well when step N is over

The program's numbers stay bit for bit, and its output as it is: library functions are wrapped, none is replaced, no
generator is drawn from. Counterexample: with OPGUARD_OBSERVE_OPERATORS kernels are others. The doctor makes that a
second run."""

import functools
import os
import sys

from opguard.load import exits, importing
from opguard.observe import drawing, facts, loaders, operators, places, resuming, sharing, switches
from opguard.record import hook_numbers, settings

_options = None
_counts = {}  # id(optimizer) -> steps


def start(options):
    global _options
    _options = options
    facts.begin(options.observe, options.rank, options.world)
    places.begin(options.tree, options.packages)
    facts.put("control", settings.control())
    switches.environment()
    drawing.python(settings.CONTROL)
    operators.install()
    for gather in (drawing.gather, operators.gather):
        facts.before_writing(gather)
    importing.when_imported("numpy.random", drawing.numpy)
    importing.when_imported("torch", _on_torch)
    exits.at_exit(_close)


def _close():
    """A process that neither imported torch nor drew has nothing to say: a launcher, a shell's helper."""
    if "torch" in sys.modules or facts.count("draws") or facts.count("entropy"):
        facts.write()


def _on_torch(torch):
    """Right after torch has been imported, before the program's next line: what takes a function by name takes the
    wrapped one."""
    drawing.torch(torch, settings.CONTROL)
    if _options.observe_operators:
        operators.ask(torch)
    switches.install(torch)
    resuming.install(torch)
    sharing.install(torch)
    importing.when_imported("torch.utils.data", loaders.install)
    for gather in (switches.gather, resuming.gather, sharing.gather):
        facts.before_writing(gather)
    if "torch.utils.data" in sys.modules:
        facts.before_writing(loaders.gather)
    _watch_backward(torch)
    optim = sys.modules.get("torch.optim.optimizer")
    if hasattr(optim, "register_optimizer_step_post_hook"):
        with hook_numbers.apart():
            optim.register_optimizer_step_post_hook(_step_ended)


def _watch_backward(torch):
    original = torch.autograd.backward

    @functools.wraps(original)
    def backward(*args, **kwargs):
        loaders.backward_begins()
        return original(*args, **kwargs)

    torch.autograd.backward = backward


def _step_ended(optimizer, args, kwargs):
    """A step is over when the busiest optimizer has stepped: of two in turn, one counts.

        a GAN: D.step(), G.step(), D.step(), G.step()     steps 1, 1, 2, 2

    facts.step is a count, and OPGUARD_UNTIL_STEP a number from 0: once step 3 is over, 4 are."""
    key = id(optimizer)
    resuming.use("optimizer", optimizer)
    _counts[key] = _counts.get(key, 0) + 1
    if _counts[key] <= facts.step:
        return
    drawing.poll()
    switches.poll()
    operators.listen()
    facts.step = _counts[key]
    if _options.until is not None and facts.step > _options.until and os.getpid() == facts._began:
        from opguard.record import until

        until.end(_options.observe)
