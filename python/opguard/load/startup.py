"""What this process was asked to do. The environment is read here and nowhere else (docs/design/architecture.md).

    OPGUARD_LOG=runs/a OPGUARD_MODE=sketch RANK=1      options.log "runs/a", options.mode "sketch", options.rank 1
    OPGUARD_DRILL=@/tmp/drill.txt                      options.drill: that file's text, a selection a line

A value that is no number is complained of, and counts as not set: the program runs. It is read as the process starts.
Counterexample: opguard.recording() in a program reads it again, and puts its own arguments in place of some."""

import os
import sys

from opguard.load import importing, messages


class Options:
    """One field per variable of docs/design/architecture.md; a field that is not set is empty, 0 or None."""

    __slots__ = ("trace", "tree", "packages", "left_out", "steps", "compiling", "log", "hook", "mode", "trusted", "seed", "controlled", "rank", "world",
                 "capture", "transplant", "drill", "slices", "jitter", "until", "steps_recorded", "first_step", "marked_steps", "ring", "ring_on", "activities", "plugins", "injection", "cuda_home", "device_wait", "progress", "simulate", "observe", "observe_operators", "observations", "check", "check_stop", "keep", "spool", "against", "on_parting")  # fmt: skip

    def __init__(self, trace="", tree="", packages=(), left_out="", steps=0, compiling=True, log="", hook="", mode="default", trusted="", seed=None, controlled=(), rank=0, world=1,
                 capture="", transplant="", drill="", slices="", jitter=None, until=None, steps_recorded="", first_step=0, marked_steps=False, ring=0, ring_on="", activities="auto", plugins=(), injection="", cuda_home="", device_wait=0.0, progress="", simulate=False, observe="", observe_operators=False, observations=False, check=False, check_stop="", keep="", spool="", against="", on_parting="stop"):  # fmt: skip
        self.trace, self.tree, self.packages, self.steps = trace, tree, list(packages), steps
        self.compiling = compiling  # below torch.compile a traced program is told so: trace/compiling.py
        self.left_out = frozenset(left_out.splitlines())  # files of the tree that are no source
        self.log, self.hook, self.mode, self.trusted, self.seed = log, hook, mode, trusted, seed
        self.controlled = dict(controlled)  # variables that determinism control has set
        self.rank, self.world = rank, world
        self.capture, self.transplant, self.drill = capture, transplant, drill  # a selection a line
        self.slices, self.jitter = slices, jitter  # of mode sketch: src/runtime/recorder/sketches.h; a seed or None
        self.until = until  # the last step of the run, None: all of them
        self.steps_recorded = steps_recorded  # "100..103", "": all; counted from first_step on
        self.first_step, self.marked_steps = first_step, marked_steps  # marked: only opguard.step() ends one
        self.ring, self.ring_on = ring, ring_on  # the last steps are kept, 0: all are written; by which watchers
        self.activities, self.plugins = activities, list(plugins)  # of devices, docs/design/activities.md
        self.injection, self.cuda_home = injection, cuda_home
        self.simulate = simulate  # every rank computes unsharded: docs/design/simulate.md
        self.observe, self.observe_operators = observe, observe_operators  # the folder of facts: observe/observing.py
        self.observations = observations  # beside the operators: training/observing.py
        self.check, self.check_stop = check, check_stop  # they are looked at meanwhile; by which file a run is stopped
        self.keep = keep  # of each log the end alone stays: "20GB,6h"
        self.spool = spool  # each log is uploaded by segment, and so much waits for it at most: "4GB"
        self.against, self.on_parting = against, on_parting  # logs of an earlier run; "stop" or "report": record/against.py
        self.progress = progress  # the file in which steps are counted
        self.device_wait = device_wait  # seconds, 0: as long as usual (docs/design/device-runtime.md)


# Of this process; sitecustomize replaces it.
options = Options()


def _number(environment, name, default, kind=int):
    """The variable as a number, `default` where it is empty or none."""
    try:
        return kind(environment.get(name, "") or default)
    except ValueError:
        messages.complain("%s is not a number: %r" % (name, environment[name]))
        return default


def _lines(environment, name):
    """A text, or with "@" before it the file that has it: an environment may not be long enough."""
    value = environment.get(name, "")
    if not value.startswith("@"):
        return value
    try:
        with open(value[1:], encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        messages.complain("%s cannot be read: %s" % (name, error))
        return ""


def read_environment(environment):
    seed = environment.get("OPGUARD_DETERMINISTIC", "")
    return Options(
        trace=environment.get("OPGUARD_TRACE", ""),
        tree=os.path.realpath(environment.get("OPGUARD_TREE") or os.getcwd()),
        packages=[p for p in environment.get("OPGUARD_WITH", "").split(",") if p],
        left_out=_lines(environment, "OPGUARD_LEFT_OUT"),
        steps=None if environment.get("OPGUARD_STEPS") == "auto" else _number(environment, "OPGUARD_STEPS", 0),
        compiling=environment.get("OPGUARD_COMPILING", "1") != "0",
        log=environment.get("OPGUARD_LOG", ""),
        hook=environment.get("OPGUARD_HOOK", ""),
        mode=environment.get("OPGUARD_MODE") or "default",
        trusted=environment.get("OPGUARD_TRUSTED", ""),
        seed=_number(environment, "OPGUARD_DETERMINISTIC", 0) if seed else None,
        controlled=[(n, environment[n]) for n in environment.get("OPGUARD_CONTROLLED", "").split(",") if n in environment],
        rank=_number(environment, "RANK", 0),
        world=_number(environment, "WORLD_SIZE", 1),
        capture=_lines(environment, "OPGUARD_CAPTURE"),
        transplant=_lines(environment, "OPGUARD_TRANSPLANT"),
        drill=_lines(environment, "OPGUARD_DRILL"),
        slices=_lines(environment, "OPGUARD_SLICES"),
        jitter=_number(environment, "OPGUARD_JITTER", 0) if environment.get("OPGUARD_JITTER") else None,
        until=_number(environment, "OPGUARD_UNTIL_STEP", 0) if environment.get("OPGUARD_UNTIL_STEP") else None,
        steps_recorded=environment.get("OPGUARD_RECORD_STEPS", ""),
        first_step=_number(environment, "OPGUARD_FIRST_STEP", 0),
        ring=_number(environment, "OPGUARD_RING", 0),
        ring_on=environment.get("OPGUARD_RING_ON", ""),
        activities=environment.get("OPGUARD_ACTIVITIES") or "auto",
        plugins=[p for p in environment.get("OPGUARD_DEVICE_PLUGIN", "").split(os.pathsep) if p],
        injection=environment.get("CUDA_INJECTION64_PATH", ""),
        cuda_home=environment.get("CUDA_HOME", ""),
        device_wait=_number(environment, "OPGUARD_DEVICE_WAIT", 0, float),
        progress=environment.get("OPGUARD_PROGRESS", ""),
        simulate=environment.get("OPGUARD_SIMULATE", "") == "1",
        observe=environment.get("OPGUARD_OBSERVE", ""),
        observe_operators=environment.get("OPGUARD_OBSERVE_OPERATORS", "") == "1",
        observations=environment.get("OPGUARD_OBSERVATIONS", "") == "1",
        check=environment.get("OPGUARD_CHECK", "") == "1",
        check_stop=environment.get("OPGUARD_CHECK_STOP", ""),
        keep=environment.get("OPGUARD_KEEP_EVENTS", ""),
        spool=environment.get("OPGUARD_SPOOL", ""),
        against=environment.get("OPGUARD_AGAINST", ""),
        on_parting=environment.get("OPGUARD_ON_PARTING") or "stop",
    )


def _try(what, step, *arguments):
    """A step of ours that fails is told in one line, and the program goes on without it."""
    try:
        step(*arguments)
    except Exception as error:
        messages.complain("%s: %s: %s" % (what, type(error).__name__, error))


def begin(read):
    """Each part on its own: a failure of one leaves the others and the program as they are."""
    global options
    options = read
    importing.keep(sys.modules["opguard"])
    if options.simulate:
        # Before the recording, which wraps what stands in a library then.
        from opguard.simulate import seams

        seams.install()
    if options.seed is not None:
        from opguard.record import determinism

        _try("no determinism control", determinism.install, options.seed, options.controlled)
    if options.hook:
        from opguard.load import hook

        _try("no import hook", hook.install, options.hook)
    if options.trace:
        from opguard.trace import opened, tracer

        _try("files that are read are not noted", opened.install, options.trace, options.tree)
        importing.when_imported("torch", lambda torch: tracer.install(torch, options))
    if options.observe:
        from opguard.observe import observing

        _try("not observed", observing.start, options)
    if options.log:
        _try("not recording", _record)


def _record():
    from opguard.record import recording

    recording.start(options)
