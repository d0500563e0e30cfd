"""Connects the extension with the interpreter and with torch: start, torch's own hooks, close.

Everything torch offers a hook for is hooked; the rest (two functions of torch.autograd) is wrapped. The
recording itself is C++ (src/runtime).

    start      options -> _rt.start(folder, rank, mode, ...): nothing is opened yet
    on_torch   as torch has been imported: hooks of optimizers, of modules' buffers, of saving
    close      at exit, behind the last step of a window, also by os._exit: the log gets its end and loses the name `.incomplete`

Counterexample: a program that makes no event leaves no file, as a launcher or a worker that only reads data."""

import functools
import os
import sys
import zlib

from opguard import _rt
from opguard.compiled import device_graphs
from opguard.load import exits, importing
from opguard.ranks import collectives, ddp, flights, functional
from opguard.record import buffers, generators, hook_numbers, parameter_names, saving, tensor_layout


_installed = set()  # a second recording in this process finds the hooks of the first


def start(options):
    """options: startup.Options. Programs that record nothing leave no file: the log is opened by its first event.

    All that the options ask for is told to the extension here. A second call in a process that
    records already changes nothing of it, and hooks are put in place once."""
    if options.mode != "off" and not _rt.recording():
        if options.capture or options.transplant or options.drill:
            _rt.watch(options.capture, options.transplant, os.path.abspath(options.log), options.rank)
        if options.drill:
            from opguard.record import drill

            _rt.drill(options.drill, drill.Driller(os.path.abspath(options.log), options.rank))
        if options.keep or options.spool:
            _rt.keep(options.keep, options.spool)
        _rt.device_plugins(os.pathsep.join(options.plugins), options.device_wait)
        _rt.start(
            os.path.abspath(options.log), options.rank, options.world, options.mode, options.trusted,
            functools.partial(_settings, options), parameter_names.names_of, generators.collect,
        )  # fmt: skip
        _rt.buffers(buffers.collect)
        if options.mode == "sketch":
            _sketch(options)
        if options.steps_recorded or options.first_step or options.marked_steps:
            _rt.record_steps(options.steps_recorded, options.first_step, options.marked_steps, close)
        if options.ring:
            from opguard.record import ring

            ring.install(options)
        if options.progress and options.rank == 0:
            _rt.progress(options.progress)
        if options.until is not None:
            from opguard.record import until

            _rt.end_after(options.until, functools.partial(until.end, os.path.abspath(options.log)))
        if options.against:
            from opguard.record import against

            against.install(options)
        exits.at_exit(close)
        if options.observations:
            from opguard.training import observing

            observing.start(options)  # its hooks before ours
        if not _installed:
            collectives.install()
    if not _installed:
        importing.when_imported("torch", on_torch)
    if options.observations and options.mode != "off" and "observed" not in _installed:
        from opguard.training import observing

        _installed.add("observed")
        importing.when_imported("torch", observing.on_torch_recorded)
    if options.mode != "off":
        _installed.add("hooks")


def _sketch(options):
    from opguard.record import declared, jitter, modules

    modules.install()
    moves = None if options.jitter is None else jitter.Jitter(options.jitter, options.slices)
    _rt.sketch(options.slices, modules.current, modules.gradients, moves, declared.of_tensor)


def close():
    """The program ends, or its last recorded step is over. Observations first: what they have to say belongs into the
    log."""
    observing = sys.modules.get("opguard.training.observing")
    if observing is not None:
        observing.close()
    flights.close(functional.pending())
    _rt.close()
    rings = sys.modules.get("opguard.record.ring")
    if rings is not None:
        rings.close()


def _settings(options):
    """{name: text} for the log's header: what may change bits, who this rank is, and how it was recorded.

    The extension calls it when it opens the log, and again as it closes it: what the program has set since counts
    too."""
    from opguard.record import settings

    found = {str(name): str(value) for name, value in settings.collect().items()}
    found.update(flights.place())
    found.update(flights.settings(), **ddp.settings())
    if options.simulate:
        from opguard.simulate import seams

        found.update(seams.settings())
    found["mode"] = options.mode
    if options.keep:
        found["steps.keep"] = options.keep
    if options.steps_recorded:
        found["steps"] = options.steps_recorded
    if options.mode == "trusted":
        found["mode.trusted"] = options.trusted
    if options.jitter is not None:
        found["jitter"] = str(options.jitter)
    if options.slices:
        found["slices"] = "%08x" % zlib.crc32(options.slices.encode())
    found["argv"] = " ".join(getattr(sys, "argv", []))
    return found


def on_torch(torch):
    """As torch's import ends. Where nothing is recorded (mode off) torch stays as it is."""
    if not _rt.recording():
        return
    tensor_layout.install(torch, _rt.tensor_layout)
    _wrap_autograd(torch)
    device_graphs.install(torch)
    buffers.install(torch)
    saving.install(torch)
    optim = sys.modules.get("torch.optim.optimizer")
    if hasattr(optim, "register_optimizer_step_pre_hook"):
        with hook_numbers.apart():
            optim.register_optimizer_step_pre_hook(_step_begins)
        with hook_numbers.apart():
            optim.register_optimizer_step_post_hook(_step_ended)


def _step_begins(optimizer, args, kwargs):
    """torch's hook before each step of an optimizer: gradients are as the step will find them.

    What is returned stands for the arguments: a closure is handed on with marks around it."""
    modules = sys.modules.get("opguard.record.modules")
    if modules is not None:
        modules.gradients(_rt.step())
    rings = sys.modules.get("opguard.record.ring")
    if rings is not None:
        rings.gradients(optimizer)
    _rt.step_begins(optimizer)
    # args[0] is the optimizer. What the closure runs is the program's forward and backward, no part of the step.
    if len(args) > 1 and callable(args[1]):
        return (args[0], _closure(args[1])) + tuple(args[2:]), kwargs
    if callable(kwargs.get("closure")):
        return args, {**kwargs, "closure": _closure(kwargs["closure"])}


def _closure(closure):
    @functools.wraps(closure)
    def evaluate(*args, **kwargs):
        _rt.closure_begins()
        try:
            return closure(*args, **kwargs)
        finally:
            _rt.closure_ended()

    return evaluate


def _step_ended(optimizer, args, kwargs):
    _rt.step_ended(optimizer)


def _wrap_autograd(torch):
    for name, roots in (("backward", "tensors"), ("grad", "outputs")):
        original = getattr(torch.autograd, name)
        if not getattr(original, "_opguard", False):
            setattr(torch.autograd, name, _announced(original, roots))


def _announced(original, roots):
    """torch.autograd.backward or .grad: a loss is told before the pass. Calls of loss.backward() come here too."""
    compiling = _compiling_test()

    @functools.wraps(original)
    def announced(*args, **kwargs):
        outputs = args[0] if args else kwargs.get(roots, ())
        # Before 2.13 torch does not call itself compiling while AOTAutograd traces a backward pass.
        if not compiling() and not _traced(outputs):
            _rt.loss(outputs)
            rings = sys.modules.get("opguard.record.ring")
            if rings is not None:
                rings.loss(outputs)
        return original(*args, **kwargs)

    announced._opguard = True
    return announced


def _traced(outputs):
    """Are they what a tracer works with, and no values?"""
    outputs = outputs if isinstance(outputs, (list, tuple)) else (outputs,)
    return any(type(output).__module__ in ("torch._subclasses.functional_tensor", "torch._subclasses.fake_tensor") for output in outputs)


def _compiling_test():
    compiler = getattr(sys.modules["torch"], "compiler", None)
    return getattr(compiler, "is_compiling", lambda: False)
