"""One side of a proof: the logical model or one rank's part of the plan, built and stepped once in a process of its
own.

    Side(module, None, dims).capture(...)              logical(d), for the names and shapes that ranks have to have
    Side(module, 1, dims, world=2, names=...)          plan(1, d), its parts placed in the model's

DTensor keeps offsets of the first rank that it sees in caches. Two ranks in one process would take each other's place.
A side is forked and not spawned: torch is imported and the plan loaded already."""

import contextlib
import json
import os
import random
import sys
import warnings

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from . import placement, sources, world
from .makers import Makers
from .problem import Problem, raised, where_defined
from .recorder import Recorder


class Side:
    """rank None: the logical model, world None too. `names`: what logical() has, for a rank. `fake`: tensors have sizes and no numbers."""

    def __init__(self, module, rank, dims, world=None, names=None, fake=False):
        self.module, self.rank, self.dims, self.world, self.names, self.fake = module, rank, dims, world, names, fake
        self.who = "logical" if rank is None else "rank %d" % rank
        self.function = module.logical if rank is None else module.plan
        self.called = "logical(d)" if rank is None else "rank %d: plan(%d, d)" % (rank, rank)

    def capture(self, path):
        """Writes the side's file; returns the kinds and shapes of its inputs. Without a path no step is made."""
        self._start()
        with FakeTensorMode(allow_non_fake_inputs=True) if self.fake else contextlib.nullcontext():
            makers = None if self.fake else Makers()
            with makers or contextlib.nullcontext():
                built = self._build()
            inputs = self._inputs(built)
            if path is None:
                return self._kinds(inputs)
            places = {} if self.rank is None else self._places(built, inputs)
            recorder = Recorder(self.fake, makers)
            described = {name: recorder.input(placement.local(tensor)) for name, (_, tensor) in inputs.items()}
            outputs, output_places = self._step(built["step"], recorder, inputs)
        found = {"version": 1, "rank": self.rank or 0, "world": self.world or 1, "stacks": recorder.stacks}
        found.update(constants=recorder.constants, constants_at=recorder.constants_at, passages=recorder.passages, inputs=described)
        if self.rank is not None:
            found.update(place=places, output_place=output_places)
        found.update(outputs=outputs, nodes=recorder.nodes)
        with open(path, "w", encoding="utf-8") as file:
            file.write(json.dumps(found, allow_nan=False, separators=(",", ":")))  # json.dump would write it piece by piece, in Python
        return self._kinds(inputs)

    def _kinds(self, inputs):
        return {name: {"kind": kind, "shape": [int(size) for size in tensor.shape]} for name, (kind, tensor) in inputs.items()}

    def _start(self):
        torch.set_num_threads(1)
        torch.manual_seed(0)
        random.seed(0)
        world.start(self.rank or 0, self.world or 1)

    def _wrong(self, text):
        return Problem(text, *where_defined(self.function))

    def _build(self):
        """Calls logical() or plan(), and looks at what comes back before a step is made of it: a dict of state, tokens
        and step."""
        try:
            built = self.function(self.dims) if self.rank is None else self.function(self.rank, self.dims)
        except BaseException as error:  # SystemExit too: the rank did not get to its step
            raise raised(self.called, self.function, error) from None
        if not isinstance(built, dict):
            raise self._wrong("%s returns %s, not a dict" % (self.called, type(built).__name__))
        for key in ("state", "tokens", "step"):
            if key not in built:
                raise self._wrong("%s returns no %s" % (self.called, key))
        for key in ("state", "tokens"):
            if not isinstance(built[key], dict):
                raise self._wrong("%s: %s is %s, not a dict" % (self.called, key, type(built[key]).__name__))
        for key in ("step", "place"):
            if built.get(key) is not None and not callable(built[key]) or key == "step" and built[key] is None:
                raise self._wrong("%s: %s is %s, not a function" % (self.called, key, type(built[key]).__name__))
        return built

    def _inputs(self, built):
        """{name: ("state" or "token", tensor)}. A rank's names have to be the model's; it may lack some."""
        found = {}
        for key, kind in (("state", "state"), ("tokens", "token")):
            for name, tensor in built[key].items():
                if not isinstance(name, str):
                    raise self._wrong("%s: %s has the name %r, not a string" % (self.called, key, name))
                if not isinstance(placement.local(tensor), torch.Tensor):
                    raise self._wrong("%s: %s[%r] is %s, not a tensor" % (self.called, key, name, type(tensor).__name__))
                if name in found:
                    raise self._wrong("%s: %r is in state and in tokens" % (self.called, name))
                if self.names is not None and self.names.get(name, {}).get("kind") != kind:
                    raise self._wrong("%s: %s has %r, which logical's has not" % (self.called, key, name))
                found[name] = kind, tensor
        return found

    def _places(self, built, inputs):
        found = {}
        for name, (_, tensor) in inputs.items():
            found[name] = placement.place(self.who, self.function, built, name, tensor, self.names[name]["shape"], self.fake)
        return found

    def _step(self, step, recorder, inputs):
        """The step, recorded. -> (outputs described, places of those that are DTensors cut otherwise than their name).

        Anomaly mode notes for each autograd node which lines made it. An output None is left out: a rank may not have
        it."""
        world.watch_reads(recorder)
        world.watch_backwards(recorder)
        world.let_pipelines_start()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that anomaly mode is slow
            noting = torch.autograd.detect_anomaly(check_nan=False)
        try:
            with noting, recorder:
                outputs = step()
        except BaseException as error:
            raise raised("%s: step()" % self.who, step, error) from None
        if not isinstance(outputs, dict):
            raise Problem("%s: step() returns %s, not a dict of tensors" % (self.who, type(outputs).__name__), *where_defined(step))
        found, places = {}, {}
        for name, tensor in outputs.items():
            if tensor is None:
                continue
            if self.rank is not None:
                _, held = inputs.get(str(name).partition(":")[2], (None, None))
                place = placement.output_place(self.who, step, str(name), tensor, held, self.fake)
                if place is not None:
                    places[str(name)] = place
            tensor = placement.local(tensor)
            if not isinstance(tensor, torch.Tensor):
                raise Problem("%s: step() returns %r as %s, not a tensor" % (self.who, name, type(tensor).__name__), *where_defined(step))
            found[str(name)] = recorder.output(tensor)
        return found, places


def in_a_process(side, path):
    """Starts the capture of a side; returns what `result` waits for."""
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        return child, reader, side
    try:
        os.close(reader)
        with os.fdopen(writer, "w", encoding="utf-8") as pipe:
            json.dump(_attempt(side, path), pipe)
    finally:
        os._exit(0)  # nothing of the parent's is run twice: no exit handler, no file it had open


def _installed_modules():
    """Those of packages: the user's own modules are imported by each side for itself."""
    found = []
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and name == getattr(getattr(module, "__spec__", None), "name", None) and (not sources.is_user(file) or sources.is_installed(file)):
            found.append(name)
    return found


def _attempt(side, path):
    """What the parent reads: names, newly imported modules and the plan's files, or the problem as three values."""
    before = set(sys.modules)
    try:
        names = side.capture(path)
        files = sources.imported(os.path.dirname(os.path.abspath(side.module.__file__)))
        return {"names": names, "modules": sorted(set(_installed_modules()) - before), "sources": sorted(files)}
    except Problem as problem:
        return {"problem": [problem.text, problem.file, problem.line]}
    except BaseException as error:
        return {"problem": ["%s cannot be captured: %s" % (side.who, raised("opguard", None, error).text), None, 1]}
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def result(started):
    """The names of a side that was captured, the modules that it imported, and the user's files that it came from; raises its problem."""
    child, reader, side = started
    with os.fdopen(reader, encoding="utf-8") as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    if not text:
        how = "signal %d" % os.WTERMSIG(status) if os.WIFSIGNALED(status) else "exit status %d" % os.WEXITSTATUS(status)
        raise Problem("%s ended its process: %s" % (side.who, how), *where_defined(side.function))
    found = json.loads(text)
    if "problem" in found:
        what, file, line = found["problem"]
        raise Problem(what, file, line)
    return found["names"], found["modules"], found["sources"]
