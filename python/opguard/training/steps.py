"""Steps of optimizers: what they held, what of it changed, and with which gradients.

    loss.backward(); optimizer.step()    parameter rows of what is new, step.begin, an update row each, an optimizer row

Torch's own hooks of all optimizers tell when. Of optimizers within each other (ZeroRedundancyOptimizer) the outer one
counts. A step that a gradient scaler left out is told by the scaler (api.py).

What no step has changed since the last one is not read again before the next: torch's version, the address and 32
elements tell. Counterexample: a few elements written through `.data` between two steps may be missed in `before`.

The cost: a digest and a norm of each parameter and of each gradient."""

import gc
import math
import sys
import threading
import weakref

from opguard.record import hook_numbers
from opguard.training import generators, hooks, kinds, modules, parameters, tensors, where

_MOST_WALKS = 16
_MOST_ALIASES = 4096
_MOST_LOOKS = 4  # at an optimizer's own tensors
_state = {"next": 0, "stepping": 0, "walks": 0, "scanned": False}


class _Running(threading.local):
    def __init__(self):
        self.steps = []  # of optimizers that run: [optimizer, what was seen before or None]


_running = _Running()


class Known:
    """An optimizer that was met. steps: how many have ended while we watched, those within another's too. noise: the
    generators' states with which they began."""

    __slots__ = ("ref", "number", "first", "steps", "noise")

    def __init__(self, optimizer):
        self.ref, self.number, self.steps = weakref.ref(optimizer), _state["next"], 0
        self.noise = generators.Noise()
        self.first = None  # in which order it took its first step, None: it did not, or within another's
        _state["next"] += 1


_known = {}  # id -> Known


def reset():
    _known.clear()
    parameters.optimizers.clear()
    parameters.reset()
    _state.update(next=0, stepping=0, walks=0, scanned=False)


def meet(optimizer):
    """An optimizer's entry, numbered as it is met."""
    known = _known.get(id(optimizer))
    if known is None or known.ref() is not optimizer:
        known = _known[id(optimizer)] = Known(optimizer)
        _tell()
    return known


def _tell():
    """Those that step come first: one within another holds what that one holds."""
    held = [k for k in _known.values() if k.ref() is not None]
    held.sort(key=lambda k: (k.first is None, k.first or 0, k.number))
    parameters.optimizers[:] = [(k.ref, k.number) for k in held]


def _made(token, result, args, kwargs):
    known = meet(args[0])
    kinds.say("api", ("optimizer", known.number, type(args[0]).__name__, None, None, None, where.here()))


def _steps(optimizer):
    """Its number; the first time its place among those that step."""
    known = meet(optimizer)
    if known.first is None:
        known.first = _state["stepping"]
        _state["stepping"] += 1
        _tell()
    return known.number


def _is_first(optimizer):
    """Of those that live and step, the first tells of what none holds."""
    stepping = [k.first for k in _known.values() if k.first is not None and k.ref() is not None]
    return bool(stepping) and min(stepping) == _known[id(optimizer)].first


def _meet_all():
    """Optimizers that were made before we watched."""
    _state["scanned"] = True
    kind = sys.modules["torch"].optim.Optimizer
    for candidate in gc.get_objects():
        if kind in type.__dict__["__mro__"].__get__(type(candidate)) and "param_groups" in candidate.__dict__:
            meet(candidate)


def gradient_of(parameter):
    """Megatron's main_grad where a parameter has one, else .grad."""
    gradient = getattr(parameter, "main_grad", None) if type(parameter) is not sys.modules["torch"].Tensor else None
    return parameter.grad if gradient is None else gradient


def held_by(optimizer):
    """The tensors of its groups, each once, in order."""
    found, seen = [], set()
    for group in optimizer.param_groups:
        for tensor in group["params"]:
            if id(tensor) not in seen:
                seen.add(id(tensor))
                found.append(tensor)
    return found


def _aliased():
    """Of what an optimizer keeps for a parameter, `self.slow[p]`, which is the parameter's own memory? "": nothing.

    One that wraps another keeps its own, and steps through that one alone: all are looked at."""
    torch = sys.modules["torch"]
    living = [optimizer for optimizer in (known.ref() for known in list(_known.values())) if optimizer is not None]
    tables = [item for optimizer in living for item in list(vars(optimizer).items())]
    for name, table in tables:
        if not isinstance(table, dict):
            continue
        for parameter, kept in list(table.items())[:_MOST_ALIASES]:
            if not isinstance(parameter, torch.Tensor):
                continue
            for value in list(kept.values()) if isinstance(kept, dict) else [kept]:
                if isinstance(value, torch.Tensor) and value is not parameter and tensors.is_plain(value) and tensors.is_plain(parameter):
                    if value.numel() and value.shape == parameter.shape and value.data_ptr() == parameter.data_ptr() != 0:
                        return name
    return ""


def _decays(optimizer):
    """Does a group that decays hold something? None where no group is meant to."""
    asked = [group["params"] for group in optimizer.param_groups if tensors.number(group.get("weight_decay"))]
    return any(asked) if asked else None


def _may_look(place):
    """Not at what another thread trains: its backward passes write gradients without the interpreter's lock."""
    return modules.entry_of(place.root).thread in (None, threading.get_ident())


class Seen:
    """What was seen before a step.

        held               what the optimizer holds
        others, buffers    what no optimizer holds; of several optimizers the first one tells of them
        before             {id: digest} of what is held
        left               how many parameters want a gradient and are held by none
        strangers          how many are held and of no module"""

    def __init__(self, optimizer, gradients):
        torch = sys.modules["torch"]
        self.number = _steps(optimizer)
        if not _state["scanned"]:
            _meet_all()
        known = _known[id(optimizer)]
        self.noise_fresh, self.noise = known.noise.begins()
        self.aliased = _aliased() if known.steps < _MOST_LOOKS else None
        self.held = held_by(optimizer)
        places, buffers, order = parameters.scan()
        if any(id(t) not in places for t in self.held) and _state["walks"] < _MOST_WALKS:
            _state["walks"] += 1
            modules.walk()
            places, buffers, order = parameters.scan()
        holders = parameters.holders()
        parameters.say_changed(places, buffers, order, holders)
        strangers = [t for t in self.held if id(t) not in places]
        parameters.say_strangers(strangers, holders)
        self.strangers = len(strangers)
        self.left = sum(1 for t in order if id(t) in places and id(t) not in holders and t.requires_grad)
        first = _is_first(optimizer)
        self.others = [t for t in order if id(t) not in holders and id(t) in places and _may_look(places[id(t)])] if first else []
        self.buffers = [t for t in order if id(t) in buffers] if first else []
        # A gradient that a closure makes is not there yet.
        self.gradients = self._gradients() if gradients else None
        # What the last step has left is what this one finds, unless somebody wrote it.
        with tensors.quietly():
            same = {id(t) for t in self.held if (e := parameters.known(t)).stamp is not None and e.stamp == tensors.stamp(t)}
        fresh = [t for t in self.held if id(t) not in same]
        fresh += [t for t in self.others + self.buffers if parameters.known(t).value is None]
        for tensor, value in zip(fresh, tensors.hashes(fresh)):
            parameters.known(tensor).value = value
        self.before = {id(t): parameters.known(t).value for t in self.held}
        self.as_loaded = {id(t): parameters.known(t).is_as_loaded(t) for t in self.held}
        self.places, self.holders, self.torch = places, holders, torch

    def _gradients(self):
        """{id of a parameter: (digest, type, norm)} of those that have one."""
        pairs = [(t, gradient_of(t)) for t in self.held + self.others]
        pairs = [(t, g) for t, g in pairs if g is not None]
        given = [g for _, g in pairs]
        digests, norms = tensors.read(given)
        return {id(t): (d, tensors.dtype_text(g.dtype), n) for (t, g), d, n in zip(pairs, digests, norms)}

    def end(self, optimizer, skipped, place):
        """The rows of a step that is over: an `update` of each parameter, then the `optimizer`.

        moved is None where a digest is: on a device nothing is read. The norm of all gradients is the root of the
        norms' squares; where one is infinite or no number their sum says so."""
        if self.gradients is None:
            self.gradients = self._gradients()
        every = self.held + self.others + self.buffers
        values, norms = tensors.read(every)
        with tensors.quietly():
            stamps = [tensors.stamp(t) for t in self.held]
        changed = 0
        for i, (tensor, value, norm) in enumerate(zip(every, values, norms)):
            entry = parameters.known(tensor)
            if entry is None:
                continue
            before = self.before.get(id(tensor)) if i < len(self.held) else entry.value
            digest, dtype, gradient_norm = self.gradients.get(id(tensor), (None, None, None))
            moved = None if before is None or value is None else before != value
            if i < len(self.held):
                changed += bool(moved)
                entry.stamp = stamps[i]
            entry.value = value
            module = entry.holder() if entry.holder is not None else None
            kinds.say("update", (
                entry.number, self.number, value, before, digest, dtype, gradient_norm, norm, moved, None if module is None else bool(module.training),
                self.as_loaded.get(id(tensor)),
            ))  # fmt: skip
        squares = [n * n for _, _, n in (self.gradients[id(t)] for t in self.held if id(t) in self.gradients) if n is not None]
        known = any(value is not None for value in values[: len(self.held)]) or not self.held
        norm = math.sqrt(sum(squares)) if squares and all(map(math.isfinite, squares)) else (sum(squares) if squares else None)
        rates = [tensors.number(group.get("lr")) for group in optimizer.param_groups]
        kinds.say("optimizer", (
            self.number, type(optimizer).__name__, rates, len(self.held), self.strangers, changed if known else None, self.left, norm, skipped, place,
            _decays(optimizer), self.noise_fresh, self.noise, self.aliased,
        ))  # fmt: skip
        self.remember()

    def remember(self):
        """Which gradients have been used now: a backward pass that finds them again adds to them."""
        for tensor in self.held:
            entry = parameters.known(tensor)
            gradient = tensor.grad
            if entry is None:
                continue
            digest, _, norm = self.gradients.get(id(tensor), (None, None, None))
            entry.gradient_norm = norm
            entry.gradient = None if gradient is None else (weakref.ref(gradient), _version(gradient), digest, threading.get_ident())


def _version(tensor):
    return None if tensor.is_inference() else tensor._version


def used(tensor):
    """The gradient that the last step of its optimizer has used, and that nobody has touched since; else None.

    Of another thread's model nothing is asked: autograd writes a leaf's gradient without the GIL, and who reads `.grad`
    meanwhile reads memory that was given back."""
    entry = parameters.known(tensor)
    if entry is None or entry.gradient is None or entry.gradient[3] != threading.get_ident():
        return None
    gradient = tensor.grad
    if gradient is None:
        return None
    reference, version = entry.gradient[:2]
    return gradient if reference() is gradient and _version(gradient) == version else None


def stale():
    """How many gradients of the steps before are there still, and will be added to."""
    found = []
    for known in list(_known.values()):
        optimizer = known.ref()
        if optimizer is None or known.first is None:
            continue
        for tensor in held_by(optimizer):
            gradient = used(tensor)
            if gradient is not None:
                found.append((gradient, parameters.known(tensor).gradient[2]))
    # What writes through `.data` changes no version.
    now = tensors.hashes([g for g, _ in found])
    return sum(1 for (_, digest), value in zip(found, now) if digest is None or value is None or digest == value)


# --- torch's hooks ---


def _is_running(optimizer):
    """Is a step of it on this thread's stack still, or has it raised?"""
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_name == "wrapper" and "args" in frame.f_code.co_varnames:
            args = frame.f_locals.get("args")
            if args and args[0] is optimizer:
                return True
        frame = frame.f_back
    return False


def _begins(optimizer, args, kwargs):
    """An entry for each step on the stack; only the outermost looks. One whose step raised has left its entry: it is
    taken off where its step runs no more."""
    if not kinds.watching() or hooks.compiling():
        return
    running = _running.steps
    while running and (running[-1][0] is optimizer or not _is_running(running[-1][0])):
        running.pop()
    if running:
        running.append([optimizer, None])
        return
    entry = [optimizer, None]
    running.append(entry)
    closure = (len(args) > 1 and callable(args[1])) or callable(kwargs.get("closure"))
    hooks.unwatched(_look, entry, optimizer, not closure)


@hooks.guarded
def _look(entry, optimizer, gradients):
    entry[1] = Seen(optimizer, gradients)
    kinds.say("api", ("step.begin", entry[1].number, type(optimizer).__name__, None, None, None, where.here(2)))


def _ended(optimizer, args, kwargs):
    running = _running.steps
    while running:
        entry = running.pop()
        if entry[0] is optimizer:
            known = _known.get(id(optimizer))
            if known is not None:
                known.steps += 1
            if entry[1] is not None and not running and kinds.watching() and not hooks.compiling():
                hooks.unwatched(_end, entry[1], optimizer)
            return


@hooks.guarded
def _end(seen, optimizer):
    found = getattr(optimizer, "found_inf", None)  # of a scaler whose optimizer leaves the step out itself
    found = tensors.number(found) if found is not None else None
    seen.end(optimizer, bool(found), where.here(2))


@hooks.guarded
def left_out(optimizer):
    """A gradient scaler did not let it step."""
    seen = Seen(optimizer, True)
    seen.end(optimizer, True, where.here(2))


def count(optimizer):
    """How many steps of it have ended: a scaler that leaves one out does not raise it."""
    known = _known.get(id(optimizer))
    return known.steps if known is not None else 0


def install(torch):
    """Before the recording's own hooks: a row belongs to the step that ends."""
    kinds.at_begin(reset)
    optim = sys.modules["torch.optim.optimizer"]
    if not hasattr(optim, "register_optimizer_step_pre_hook"):
        return
    with hook_numbers.apart():
        optim.register_optimizer_step_pre_hook(_begins)
    with hook_numbers.apart():
        optim.register_optimizer_step_post_hook(_ended)
    hooks.around(optim.Optimizer, "__init__", end=_made, family="Optimizer")
