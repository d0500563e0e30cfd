"""Checkpoints: what the program holds, what it writes of it, what it restores.

    torch.save({"model": ..., "optimizer": ...}, "c.pt")     written: a model and an optimizer, no scheduler
    optimizer.load_state_dict(c["optimizer"])                restored: the optimizer, in train.py:30

What state_dict() returns is remembered by its identity, so that save() knows a part again wherever it lies in what is
saved. A run resumes where an optimizer's state is restored. Counterexample: a model alone is restored where training
begins from weights of others. A state dict that the program copied before it saved it is not known again either.
The cost: _TAGS state dicts at most are held."""

import functools
import os
import sys
import weakref

from opguard.load import importing
from opguard.observe import drawing, facts, places

_holders = {}  # kind -> weak set of objects that the program uses
_tags = {}  # id(a state dict) -> (the dict, kind)
_depth = [0]
_TAGS = 4096


def install(torch):
    _watch_class(torch.nn.Module, "model")
    optim = sys.modules.get("torch.optim.optimizer")
    if optim is not None:
        _watch_class(optim.Optimizer, "optimizer")
    importing.when_imported("torch.optim.lr_scheduler", _schedulers)
    for name in ("torch.amp.grad_scaler", "torch.cuda.amp.grad_scaler"):
        importing.when_imported(name, _scaler)
    importing.when_imported(
        "torchdata.stateful_dataloader.stateful_dataloader", lambda m: _watch_class(m.StatefulDataLoader, "loader")
    )
    _watch_files(torch)


def _schedulers(module):
    base = getattr(module, "LRScheduler", None) or module._LRScheduler
    for kind in [k for k in vars(module).values() if isinstance(k, type) and issubclass(k, base)] + [
        module.ReduceLROnPlateau
    ]:
        _watch_class(kind, "scheduler")
    _use(base, "step", "scheduler")
    _use(module.ReduceLROnPlateau, "step", "scheduler")


def _scaler(module):
    _watch_class(module.GradScaler, "scaler")
    if "scale" in vars(module.GradScaler):
        _use(module.GradScaler, "scale", "scaler", lambda scaler: scaler.is_enabled())


def _use(kind, method, what, counts=lambda held: True):
    """kind.method, which also notes that the program uses this `what`. A scheduler that steps is one to be saved; one
    that was only made is not. counts(self): whether it holds anything, as a GradScaler that is not enabled does not."""
    original = kind.__dict__.get(method)
    if original is None or hasattr(original, "_opguard_used"):
        return

    @functools.wraps(original)
    def used(self, *args, **kwargs):
        try:
            if counts(self):
                use(what, self)
        except Exception:
            pass
        return original(self, *args, **kwargs)

    used._opguard_used = True
    setattr(kind, method, used)


def use(what, held):
    """Held weakly: an optimizer that the program dropped is none that it holds."""
    _holders.setdefault(what, weakref.WeakSet()).add(held)


def _watch_class(kind, what):
    load, save = kind.__dict__.get("load_state_dict"), kind.__dict__.get("state_dict")
    if load is not None and not hasattr(load, "_opguard"):
        kind.load_state_dict = _loading(load, what)
    if save is not None and not hasattr(save, "_opguard"):
        kind.state_dict = _saving(save, what)


def _loading(original, what):
    """load_state_dict, noted at its outermost: one that calls its parts' is one restoring."""

    @functools.wraps(original)
    def load_state_dict(self, *args, **kwargs):
        outer = not _depth[0]
        _depth[0] += 1
        try:
            result = original(self, *args, **kwargs)
        finally:
            _depth[0] -= 1
        if outer and not (what == "optimizer" and _is_own(args, kwargs)):
            facts.add(
                "restored",
                {"what": what, "name": type(self).__name__, "call": "load_state_dict", "place": places.caller()},
            )
            if what == "optimizer":
                _resumed()
        return result

    load_state_dict._opguard = True
    return load_state_dict


def _is_own(args, kwargs):
    """An empty state in a program that read no file: a library hands an optimizer what it holds already."""
    state = args[0] if args else kwargs.get("state_dict")
    return isinstance(state, dict) and not state.get("state") and facts.count("loaded") == 0


def _resumed():
    """From here on a draw comes from a state that the resume should have restored."""
    found = {}
    random, numpy, torch = sys.modules.get("random"), sys.modules.get("numpy.random.mtrand"), sys.modules.get("torch")
    if random is not None:
        found["python"] = drawing.digest(random._inst.getstate())
    if numpy is not None:
        found["numpy"] = drawing.digest(numpy._rand.get_state())
    found["torch"] = drawing.digest(torch.default_generator.get_state())
    _states.update(found)
    facts.put("seeds_at_resume", facts.count("seeds"))


# Generator -> digest of its state at the last resume.
_states = {}


def _saving(original, what):
    @functools.wraps(original)
    def state_dict(self, *args, **kwargs):
        result = original(self, *args, **kwargs)
        _tag(result, what)
        return result

    state_dict._opguard = True
    return state_dict


def _tag(value, what):
    """The value is held, so that its id stays its own. Beyond _TAGS all are forgotten at once."""
    if len(_tags) > _TAGS:
        _tags.clear()
    _tags[id(value)] = (value, what)


def tag_generator(value, name):
    _tag(value, "generator." + name)


def _watch_files(torch):
    """torch.save notes what of the program's is in the file, before it is written. torch.load notes the file's keys.

    Of names the last part alone is kept. Generators' states are tagged as they are asked for, as state dicts are."""
    import random

    original, load = torch.save, torch.load

    @functools.wraps(original)
    def save(obj, *args, **kwargs):
        try:
            held, keys = set(), []
            _contents(obj, held, keys, 0)
            name = args[0] if args else kwargs.get("f")
            facts.add("saved", {
                "file": os.path.basename(name) if isinstance(name, (str, os.PathLike)) else "",
                "place": places.caller(),
                "holds": sorted(held), "keys": sorted(keys)[:40], "in_use": in_use(), "at_step": facts.step,
            })  # fmt: skip
        except Exception:
            pass
        return original(obj, *args, **kwargs)

    torch.save = save

    def loaded(result, args, kwargs):
        name = args[0] if args else kwargs.get("f")
        facts.add("loaded", {
            "file": os.path.basename(name) if isinstance(name, (str, os.PathLike)) else "", "place": places.caller(),
            "keys": sorted(map(str, result))[:40] if isinstance(result, dict) else [],
        })  # fmt: skip

    drawing.after(torch, "load", loaded)
    for owner, name, what in (
        (random, "getstate", "python"),
        (torch, "get_rng_state", "torch"),
        (torch.random, "get_rng_state", "torch"),
    ):
        drawing.after(owner, name, lambda state, args, kwargs, what=what: tag_generator(state, what))
    importing.when_imported(
        "numpy.random",
        lambda held: drawing.after(held, "get_state", lambda state, args, kwargs: tag_generator(state, "numpy")),
    )


def _contents(value, held, keys, depth):
    """Into `held` the kinds of tagged parts, into `keys` the names of the outer two levels. Four levels are looked at,
    200 entries of a dict, lists below 64: a file's form is wanted, not its contents."""
    tagged = _tags.get(id(value))
    if tagged is not None and tagged[0] is value:
        held.add(tagged[1])
        return
    if depth < 4 and isinstance(value, dict):
        for key, inner in list(value.items())[:200]:
            if depth < 2:
                keys.append(str(key)[:60])
            _contents(inner, held, keys, depth + 1)
    elif depth < 4 and isinstance(value, (list, tuple)) and len(value) < 64:
        for inner in value:
            _contents(inner, held, keys, depth + 1)


def in_use():
    """{kind: class names} of what a checkpoint would need; a generator is needed once it has drawn."""
    found = {kind: sorted(type(held).__name__ for held in holders) for kind, holders in _holders.items()}
    for source in (drawing.PYTHON, drawing.NUMPY, drawing.TORCH):
        if source.has_drawn():
            found["generator." + source.name] = [source.name]
    return found


def gather():
    """drawn_since_resume: generators whose state moved since. They gave other numbers than the run that was saved,
    unless their state was restored as well."""
    facts.put("in_use", in_use())
    if _states:
        random, numpy, torch = (
            sys.modules.get("random"),
            sys.modules.get("numpy.random.mtrand"),
            sys.modules.get("torch"),
        )
        now = {"python": random._inst.getstate(), "torch": torch.default_generator.get_state()}
        if numpy is not None:
            now["numpy"] = numpy._rand.get_state()
        facts.put(
            "drawn_since_resume",
            sorted(n for n, s in now.items() if n in _states and drawing.digest(s) != _states[n]),
        )
