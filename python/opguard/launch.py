"""python -m opguard.launch [OPTIONS] SCRIPT [ARGS...] or [OPTIONS] -m MODULE [ARGS...]: what `opguard run` does, by a Python module.

    torchrun --nproc-per-node 8 -m opguard.launch --record logs/run1 --steps 100..103 train.py --batch 4

The process becomes the script's own interpreter (execv), so process ids, signals and exit codes are the script's. Our
package is loaded as it starts, before torch: sources with probes on disk, or named in a hook map, record every operator.
Every rank records into one folder, a restart of torchrun's into logs/run1.restart1.

Counterexample: options behind SCRIPT are the script's, also those that have our names."""

import argparse
import os
import subprocess
import sys

from opguard import recordings


def main(words):
    options, program = parse(words)
    if sys.flags.isolated or sys.flags.ignore_environment or sys.flags.no_site:
        fail("this Python was started with -I, -E or -S, which keeps opguard out: leave that flag out")
    package = os.path.dirname(os.path.abspath(__file__))
    os.environ.update(environment(options, os.environ, os.path.join(package, "boot")))
    try:
        os.execv(sys.executable, [sys.executable, *subprocess._args_from_interpreter_flags(), *program])
    except OSError as error:
        fail("cannot start %s: %s" % (sys.executable, error))


def parse(words):
    """-> (options, the words behind them). Abbreviations are off: an option of the script's is not to be taken for one
    of ours."""
    parser = argparse.ArgumentParser(prog="python -m opguard.launch", allow_abbrev=False, description="Record a script's training steps.")
    # Of --log torchrun would say that it might be --log-dir, though it stands behind our name.
    parser.add_argument("--record", "--log", dest="log", required=True, metavar="DIR", help="write the logs to this folder")
    parser.add_argument("--steps", default="", metavar="M..N", help="record steps M to N only, counted from 0")
    parser.add_argument("--from-step", type=int, metavar="N", help="record from step N on")
    parser.add_argument("--every", type=int, default=1, metavar="K", help="record every K-th step only")
    parser.add_argument("--mode", default="default", choices=recordings.MODES)
    parser.add_argument("--ring", type=int, default=0, metavar="K", help="keep the last K steps, and write them when a watcher says so")
    parser.add_argument("--on", default="nan,spike", metavar="WATCHERS", help="nan, spike, signal=USR1, separated by commas")
    parser.add_argument("--hook", default="", metavar="FILE", help="a map of instrumented texts: docs/design/architecture.md, OPGUARD_HOOK")
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="run this module in place of a script")
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="SCRIPT ARGS")
    options = parser.parse_args(words)
    program = ["-m", *options.module] if options.module else options.program
    if not program or program == ["-m"]:
        parser.error("no script to run")
    if options.steps and options.from_step is not None:
        parser.error("--steps and --from-step both say where to begin: leave one out")
    if options.from_step is not None:
        options.steps = "%d.." % options.from_step
    return options, program


def environment(options, given, boot):
    """The variables of docs/design/architecture.md that this start needs."""
    log = recordings.of_restart(os.path.abspath(options.log), given)
    path = given.get("PYTHONPATH")
    return {
        # Given back by boot/sitecustomize.py, as the user set it.
        "PYTHONPATH": boot if not path else boot + os.pathsep + path,
        "OPGUARD_BOOT": boot,
        **({"OPGUARD_PYTHONPATH": path} if path is not None else {}),
        "OPGUARD_LOG": log,
        "OPGUARD_TREE": os.getcwd(),
        "OPGUARD_MODE": options.mode,
        "OPGUARD_RECORD_STEPS": recordings.window_text(options.steps or None, options.every),
        "OPGUARD_RING": str(options.ring or ""),
        "OPGUARD_RING_ON": options.on if options.ring else "",
        "OPGUARD_HOOK": options.hook and os.path.abspath(options.hook),
    }


def fail(message):
    sys.stderr.write("opguard: error: %s\n" % message)
    sys.exit(2)


if __name__ == "__main__":
    main(sys.argv[1:])
