"""What `opguard prove` runs in Python: a plan and its logical model, each stepped once, written down for the checker.

    python -m opguard.prove.capture plan.py --out DIR [--dims hidden=16,heads=8] [--full [NAME=N,...]]

    plan.py     DIMS = {"hidden": 4, "vocab": 5}; WORLD = 2
                def logical(d): ...        {"state": {"w": tensor}, "tokens": {"ids": tensor}, "step": function}
                def plan(rank, d): ...     the same of one rank's parts, and "place" where they are not the whole

DIR gets logical.json, rank-0.json to rank-<n>.json, and plan.json last: where it is, the others are whole.
Exit 0, or 3 with one line for a plan that cannot be used. Nothing is written elsewhere, not even bytecode.
Counterexample: a deadlock is no bad input. No rank waits here; the checker finds it.

It also runs as a file, by its path: the package opguard itself needs an extension that this command does not.
The cost: a process a side, `--jobs` of them at a time, each of which makes one step at the dims."""

import argparse
import ast
import importlib.util
import json
import math
import os
import sys
import types
import warnings

if __name__ == "__main__" and not __package__:
    # Run by its path. Its folder must not stay on sys.path: a plan may well import a module named `world`.
    _here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or os.curdir) != _here]
    __package__ = "opguard_prove"
    sys.modules[__package__] = types.ModuleType(__package__)
    sys.modules[__package__].__path__ = [_here]

from .problem import Problem, line_of_name, raised  # noqa: E402


class Plan:
    """The user's module, as far as it is known: `tree` after parse(), `module` after load(). given: its path as the
    user wrote it; path: absolute."""

    def __init__(self, given):
        self.given, self.path = given, os.path.abspath(given)
        self.tree = self.module = None

    def wrong(self, text, name=None):
        """The problem at the line that defines `name`, at line 1 where there is none."""
        return Problem(text, None, line_of_name(self.tree, name) if name and self.tree else 1)

    def shown(self, file):
        """A file as the user would write it: relative, if the plan was given so."""
        if file is None:
            return self.given
        folder = os.path.dirname(self.path)
        file = os.path.abspath(file)
        if file.startswith(folder + os.sep):
            return os.path.join(os.path.dirname(self.given), os.path.relpath(file, folder))
        return file

    def parse(self):
        """Before torch is imported: a typing error is told at once."""
        try:
            with open(self.path, "rb") as file:
                self.tree = ast.parse(file.read(), self.path)
        except OSError as error:
            raise Problem("cannot be read: %s" % error.strerror) from None
        except SyntaxError as error:
            raise Problem("syntax error: %s" % error.msg, None, error.lineno or 1) from None
        except ValueError as error:
            raise Problem("cannot be read: %s" % error) from None

    def load(self):
        """Imports it as a script of its folder would be: the folder first on sys.path, its own name, no bytecode. It
        may end in SystemExit, which is a problem of the plan's as any other error is."""
        sys.dont_write_bytecode = True
        sys.path.insert(0, os.path.dirname(self.path))
        sys.argv = [self.given]
        name = os.path.splitext(os.path.basename(self.path))[0]
        name = name if name not in sys.modules else "opguard_plan"  # a plan may be called json.py
        spec = importlib.util.spec_from_file_location(name, self.path)
        if spec is None:
            raise Problem("is no Python file")
        self.module = sys.modules[name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(self.module)
        except BaseException as error:
            raise raised("import", None, error) from None

    def check(self):
        """WORLD is a number of ranks, or names in DIMS whose product it is: ("dp", "tp"). Names are looked up once dims
        are known."""
        for name, signature in (("logical", "logical(d)"), ("plan", "plan(rank, d)")):
            if not callable(getattr(self.module, name, None)):
                raise self.wrong("no %s is defined" % signature, name)
        world = getattr(self.module, "WORLD", None)
        if world is None:
            raise self.wrong("no WORLD, the number of ranks, is defined")
        if isinstance(world, (tuple, list)) and world and all(isinstance(name, str) for name in world):
            return
        if not isinstance(world, int) or isinstance(world, bool) or world < 1:
            raise self.wrong("WORLD is %r, not a number of ranks" % (world,), "WORLD")

    def mesh(self, dims):
        """The extents of the ranks' mesh, slowest first: WORLD is a number, or names in DIMS."""
        world = self.module.WORLD
        if isinstance(world, int):
            return [world]
        for name in world:
            if dims.get(name, 0) < 1:
                raise self.wrong("WORLD has %r, and DIMS has %s of it" % (name, dims.get(name, "nothing")), "WORLD")
        return [dims[name] for name in world]

    def _extents(self, table):
        """A table of the module's, copied. A bool is no extent, although Python counts it as an integer."""
        found = getattr(self.module, table, None)
        if not isinstance(found, dict):
            raise self.wrong("no %s, a dict of extents, is defined" % table if found is None else "%s is no dict" % table, table)
        for name, value in found.items():
            if not isinstance(name, str) or not isinstance(value, int) or isinstance(value, bool):
                raise self.wrong("%s[%r] is %r, not an integer" % (table, name, value), table)
        return dict(found)

    def full_dims(self, dims, changes):
        """The dims that the reduced ones stand for: what --full says; else FULL."""
        found = self._extents("FULL") if not changes or hasattr(self.module, "FULL") else {}
        for name in found:
            if name not in dims:
                raise self.wrong("FULL has %r, which DIMS has not" % name, "FULL")
        return self._changed(dict(dims, **found), "--full", changes)

    def dims(self, changes):
        """DIMS, with what --dims says instead."""
        return self._changed(self._extents("DIMS"), "--dims", changes)

    def _changed(self, found, option, changes):
        for change in (changes or "").split(","):
            if not change:
                continue
            name, _, value = (part.strip() for part in change.partition("="))
            if name not in found:
                raise self.wrong("%s %s: DIMS has no %r, it has %s" % (option, change, name, ", ".join(found)), "DIMS")
            if not value.isdecimal():
                raise self.wrong("%s %s: not an integer" % (option, change), "DIMS")
            found[name] = int(value)
        return found

    def add_sizes(self, names, dims):
        """How many values each token may take: TOKENS says it, or the vocabulary does."""
        tokens = getattr(self.module, "TOKENS", None) or {}
        if isinstance(tokens, (int, str)) and not isinstance(tokens, bool):
            tokens = {name: tokens for name, about in names.items() if about["kind"] == "token"}  # one size for all
        if not isinstance(tokens, dict):
            raise self.wrong("TOKENS is %s: it may be a number, a name in DIMS, or a dict of those by token" % type(tokens).__name__, "TOKENS")
        for name in tokens:
            if names.get(name, {}).get("kind") != "token":
                raise self.wrong("TOKENS has %r, which logical's tokens have not" % (name,), "TOKENS")
        for name, about in names.items():
            if about["kind"] != "token":
                continue
            size = tokens.get(name, "vocab")
            size = dims.get(size) if isinstance(size, str) else size
            if not isinstance(size, int) or isinstance(size, bool) or size < 1:
                raise self.wrong("how many values has the token %r? TOKENS = {%r: n}, or DIMS has vocab" % (name, name), "TOKENS")
            about["size"] = size


def capture(plan, options):
    """The order matters: torch is imported behind parse(), patches come before the plan is loaded, and nothing is
    computed before the sides are forked. The large dims are captured last, beside the small ones."""
    plan.parse()
    os.makedirs(options.out, exist_ok=True)
    os.environ["TORCHDYNAMO_DISABLE"] = "1"  # compiled code has the same meaning, but not the same operators
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # a proof has one line to say
    try:
        import torch
    except ImportError as error:
        raise Problem("this Python has no torch: %s" % error) from None
    torch.set_num_threads(1)  # threads of a pool do not survive a fork

    from . import mesh_ranks, side, world

    world.before_plan()
    plan.load()
    plan.check()
    dims = plan.dims(options.dims)
    # Nothing has been computed here when the sides are forked: a backward pass leaves threads that a child waits for.
    sys.stdout.flush()
    sys.stderr.flush()
    stale = os.path.join(options.out, "full", "plan.json")
    if os.path.exists(stale):
        os.remove(stale)
    _capture_sides(side, plan, options, dims, options.out, torch.__version__)
    if options.full is not None:
        full = plan.full_dims(dims, options.full)
        reduced, mesh = plan.mesh(dims), plan.mesh(full)
        if any((small == 1) != (extent == 1) or small > extent for small, extent in zip(reduced, mesh)):
            raise plan.wrong("the ranks are %s at reduced dims and %s at full ones: an axis that has several has several in both, and not fewer" % (reduced, mesh), "WORLD")
        ranks = mesh_ranks.star(mesh, reduced)
        twins = [mesh_ranks.twin(rank, mesh, reduced) for rank in ranks]
        _capture_sides(side, plan, options, full, os.path.join(options.out, "full"), torch.__version__, ranks, twins)


def _capture_sides(side, plan, options, dims, folder, version, ranks=None, twins=None):
    """The model and the ranks at some dims; `ranks`: only these, without numbers, each beside the rank at reduced dims that is its twin."""
    os.makedirs(folder, exist_ok=True)
    last, fake, mesh = os.path.join(folder, "plan.json"), ranks is not None, plan.mesh(dims)
    if os.path.exists(last):
        os.remove(last)
    world = math.prod(mesh)
    names, modules, files = side.result(side.in_a_process(side.Side(plan.module, None, dict(dims), fake=fake), os.path.join(folder, "logical.json")))
    plan.add_sizes(names, dims)
    if not fake:
        _note_ones(side, plan, dims, names)
    _import(modules)
    waiting, problems, sources = [], [], {os.path.basename(plan.path), *files}
    for rank in range(world) if ranks is None else ranks:
        if len(waiting) == options.jobs:
            _finish(side, waiting, problems, sources)
        if problems:
            break
        one = side.Side(plan.module, rank, dict(dims), world, names, fake)
        waiting.append(side.in_a_process(one, os.path.join(folder, "rank-%d.json" % rank)))
    while waiting:
        _finish(side, waiting, problems, sources)
    if problems:
        raise problems[0]
    about = {"version": 1, "plan": plan.path, "torch": version.partition("+")[0], "world": world, "dims": dims, "names": names}
    about["sources"] = sorted(sources)
    if fake:
        about.update(ranks=ranks, twins=twins)
    with open(last + ".part", "w", encoding="utf-8") as file:
        json.dump(about, file, indent=1)
    os.replace(last + ".part", last)


def _note_ones(side, plan, dims, names):
    """Which extents of 1 are so by a dim of 1: the model is built with 2 instead. An axis of the ranks cuts extents, it is none."""
    axes = plan.module.WORLD if isinstance(plan.module.WORLD, (tuple, list)) else ()
    for dim in dims:
        if dims[dim] != 1 or dim in axes:
            continue
        try:
            larger = side.result(side.in_a_process(side.Side(plan.module, None, dict(dims, **{dim: 2})), None))[0]
        except Problem:
            larger = {}  # it is never built so: such a dim has one value
        for name, about in names.items():
            shape, other = about["shape"], larger.get(name, about)["shape"]
            grown = [place for place in range(len(shape)) if len(shape) == len(other) and shape[place] == 1 < other[place]]
            about["ones"] = sorted({*about.get("ones", []), *grown})


def _import(modules):
    """What the model's side has imported as it ran, once here rather than in each rank: torch's compiler alone takes 2 s."""
    for name in modules:
        if name not in sys.modules:
            try:
                importlib.import_module(name)
            except Exception:  # a rank that needs it will say so
                pass


def _finish(side, waiting, problems, sources):
    """The lowest rank first: which problem is told does not depend on which rank was faster."""
    try:
        sources.update(side.result(waiting.pop(0))[2])
    except Problem as problem:
        problems.append(problem)


def main(argv=None):
    parser = argparse.ArgumentParser(prog="opguard.prove.capture", description="Captures a parallel plan and its logical model.")
    parser.add_argument("plan", metavar="PLAN.py")
    parser.add_argument("--out", metavar="DIR", required=True)
    parser.add_argument("--dims", metavar="NAME=N,...", help="other extents than the plan's DIMS")
    parser.add_argument("--full", metavar="NAME=N,...", nargs="?", const="", help="capture some ranks at these dims too, without numbers; without a value: the plan's FULL")
    parser.add_argument("--jobs", metavar="N", type=int, default=min(2, os.cpu_count() or 1), help="ranks captured at a time")
    options = parser.parse_args(argv)
    options.jobs = max(1, options.jobs)
    plan = Plan(options.plan)
    try:
        capture(plan, options)
    except Problem as problem:
        sys.stderr.write("%s:%d: %s\n" % (plan.shown(problem.file), problem.line, " ".join(problem.text.split())))
        return 3
    except OSError as error:
        sys.stderr.write("%s:1: %s cannot be written: %s\n" % (plan.given, error.filename or options.out, error.strerror))
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
