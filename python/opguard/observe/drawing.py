"""Random generators: who seeds them, with what, and who draws before anybody did.

    random.shuffle(x)             python's generator, never seeded: where
    numpy.random.default_rng()    a generator seeded by the system: where
    torch.manual_seed(3)          torch's generators, seeded: where, with 3, in step 0

A generator's functions are wrapped while it is unseeded, and put back as they were with its first seed. A seed that
comes later is noted too. Nothing is drawn here.

Counterexample: `tempfile` draws names. places.py knows such plumbing."""

import functools
import hashlib
import os
import sys

from opguard.observe import facts, places

_CONTROL = os.path.join("opguard", "record", "determinism.py")
_STATES = 64  # that are kept to be known again
_SITES = 8  # unseeded draws of one generator, before its functions are left alone

_asking = False  # numpy asks the system for a seed
_got = {}  # id(a state that the program took) -> the state: to set it again is no seed


class Generator:
    """One of the three process-wide generators: python's, numpy's old one, torch's on the processor.

        sites       distinct places that drew while it was unseeded; at _SITES its functions are put back
        baseline    a digest of its state when it was last settled

    Once the functions are put back, further draws are told by another digest, and cost nothing themselves."""

    def __init__(self, name):
        self.name, self.seeded, self.sites = name, False, 0
        self.wrapped = []  # (owner, attribute, original or None, ours)
        self.baseline = None

    def wrap(self, owner, attribute, is_ours=lambda args, kwargs: True):
        """owner.attribute notes a draw while the generator is unseeded. is_ours(args, kwargs): does this call draw from
        it?

        `torch.rand(2, generator=g)` does not. An owner that takes no attributes, as a type of C's, is left as it is."""
        original = getattr(owner, attribute, None)
        if original is None:
            return
        inherited = attribute not in vars(owner)

        @functools.wraps(original)
        def draw(*args, **kwargs):
            if not self.seeded and is_ours(args, kwargs):
                self.drawn(attribute)
            return original(*args, **kwargs)

        try:
            setattr(owner, attribute, draw)
        except (TypeError, AttributeError):
            return
        self.wrapped.append((owner, attribute, None if inherited else original, draw))

    def drawn(self, call):
        """Plumbing that draws (tempfile) has no place and is not told."""
        place = places.caller()
        if place is None:
            return
        entry = facts.add("draws", {"generator": self.name, "call": call, "place": place})
        if entry is None or entry["times"] == 1:
            self.sites += 1
        if self.sites >= _SITES:
            self.leave()

    def leave(self):
        """The owner's own functions again. One that was inherited was put on the owner by us, and is deleted there.
        Where the program has put a function of its own in between, that stays."""
        for owner, attribute, original, ours in self.wrapped:
            if vars(owner).get(attribute) is not ours:
                continue  # the program's own by now
            if original is None:
                delattr(owner, attribute)
            else:
                setattr(owner, attribute, original)
        self.wrapped = []

    def seed(self, value, call, by=""):
        """Notes one seeding: value None is from the system, and then the generator stays unseeded. by: "control" where
        `--deterministic` seeds, else "" for the program.

        A seed from the system below no line of the program's is not told."""
        if not by and sys._getframe(2).f_code.co_filename.endswith(_CONTROL):
            by = "control"
        place = None if by else places.caller()
        if not by and place is None and value is None:
            return
        facts.add(
            "seeds",
            {
                "generator": self.name,
                "call": call,
                "seed": None if value is None else _shown(value),
                "place": place,
                "by": by,
                "at_step": facts.step,
            },
        )
        if value is not None:
            self.seeded = True
            self.leave()

    def settled(self):
        """It has just been seeded, or the program begins: what is drawn from now on moves its state."""
        try:
            self.baseline = digest(_STATE[self.name]())
        except Exception:
            self.baseline = None

    def has_drawn(self):
        """Whether its state moved since it was settled. Draws that no wrapper saw, as in C++, count too."""
        try:
            return self.baseline is not None and digest(_STATE[self.name]()) != self.baseline
        except Exception:
            return False

    def restored(self, state, call):
        """A state set back for a while neither seeds nor restores. What a file held is another object."""
        if _got.get(id(state)) is state:
            return
        facts.add("restored", {"what": "generator", "name": self.name, "call": call, "place": places.caller()})
        self.seeded = True
        self.leave()


def _shown(value):
    return str(value)[:80]


# By the generators themselves: what wraps random.getstate takes note of what the program asks for.
_STATE = {
    "python": lambda: sys.modules["random"]._inst.getstate(),
    "numpy": lambda: sys.modules["numpy.random.mtrand"]._rand.get_state(),
    "torch": lambda: sys.modules["torch"].default_generator.get_state(),
}
PYTHON, NUMPY, TORCH = Generator("python"), Generator("numpy"), Generator("torch")


def digest(state):
    """20 bytes of a generator's state: torch's is a tensor of bytes, python's and numpy's are tuples. States are large;
    these are kept."""
    if hasattr(state, "data_ptr"):
        state = bytes(state.tolist())
    return hashlib.sha1(repr(state).encode() if not isinstance(state, bytes) else state).digest()


def took(state):
    """The program asked for this state. It is held, so that its id stays its own; beyond _STATES the oldest is forgotten."""
    if len(_got) > _STATES:
        del _got[next(iter(_got))]
    _got[id(state)] = state


def after(owner, attribute, tell):
    """tell(result, args, kwargs) after each call of owner.attribute, which works as before."""
    original = getattr(owner, attribute, None)
    if original is None:
        return

    @functools.wraps(original)
    def told(*args, **kwargs):
        result = original(*args, **kwargs)
        try:
            tell(result, args, kwargs)
        except Exception:
            pass  # the program goes first
        return result

    try:
        setattr(owner, attribute, told)
    except (TypeError, AttributeError):
        pass


def first(args, kwargs, name, at=0):
    """The argument that a function has at position `at` or by name; None where it was not given."""
    return args[at] if len(args) > at else kwargs.get(name)


def python(control):
    """Python's generator. random.random and the like are bound methods of random._inst: those are what is wrapped.

    control: the settings of a controlled run. Where it seeds python, nothing that is drawn is unseeded."""
    import random

    if "seed" in control:
        PYTHON.seed(control["seed"], "random.seed", "control")
    names = [n for n in random.__all__ if getattr(getattr(random, n), "__self__", None) is random._inst]
    if not PYTHON.seeded:
        for name in names:
            if name not in ("seed", "getstate", "setstate"):
                PYTHON.wrap(random, name)
    _python_seeds(random)
    _system(random)


def _python_seeds(random):
    """Random.seed is wrapped on the class, since a Random that is made without a seed calls it too: random.Random()
    draws one from the system."""
    original = random.Random.seed

    @functools.wraps(original)
    def seed(self, a=None, *more, **kwargs):
        if self is random._inst:
            PYTHON.seed(a, "random.seed")
        elif a is None and not isinstance(self, random.SystemRandom) and places.is_direct():
            entropy("random.Random()")
        result = original(self, a, *more, **kwargs)
        if self is random._inst:
            PYTHON.settled()
        return result

    random.Random.seed = seed
    random.seed = random._inst.seed
    after(random, "getstate", lambda state, args, kwargs: took(state))
    after(random, "setstate", lambda _, args, kwargs: PYTHON.restored(args[0], "random.setstate"))
    PYTHON.settled()


def entropy(call):
    """A generator or a number that the operating system seeds, where the program's own source is behind it."""
    place = places.caller()
    if place is not None:
        facts.add("entropy", {"call": call, "place": place})


def _system(random):
    """Numbers of the operating system, where the program itself asks for them."""
    for owner, name, call in ((os, "urandom", "os.urandom"), (random, "_urandom", "random.SystemRandom")):
        original = getattr(owner, name, None)
        if original is None:
            continue

        def asked(*args, _original=original, _call=call):
            if not _asking and places.is_direct():
                entropy(_call)
            return _original(*args)

        setattr(owner, name, functools.wraps(original)(asked))


def numpy(held):
    """held: numpy.random"""
    generators = sys.modules.get("numpy.random.bit_generator")
    mtrand = sys.modules.get("numpy.random.mtrand")
    inner = getattr(mtrand, "_rand", None)
    names = [
        n for n in held.__all__ if inner is not None and getattr(getattr(held, n, None), "__self__", None) is inner
    ]
    for name in names + ["ranf", "sample"]:
        if name not in ("get_state", "set_state"):
            NUMPY.wrap(held, name)
    after(held, "get_state", lambda state, args, kwargs: took(state))
    after(held, "set_state", lambda _, args, kwargs: NUMPY.restored(args[0], "numpy.random.set_state"))
    original = held.seed

    @functools.wraps(original)
    def seed(*args, **kwargs):
        NUMPY.seed(first(args, kwargs, "seed"), "numpy.random.seed")
        result = original(*args, **kwargs)
        NUMPY.settled()
        return result

    held.seed = seed
    NUMPY.settled()
    # Whatever numpy makes without a seed asks this for one: default_rng(), RandomState(), PCG64().
    inner_bits = getattr(generators, "randbits", None)
    if inner_bits is not None:

        @functools.wraps(inner_bits)
        def randbits(k):
            global _asking
            if places.is_direct():
                entropy("numpy.random")
            _asking = True
            try:
                return inner_bits(k)
            finally:
                _asking = False

        generators.randbits = randbits


_TORCH = (
    "rand randn randint randperm normal bernoulli multinomial poisson rand_like randn_like randint_like "
    "dropout alpha_dropout rrelu",
    "uniform_ normal_ random_ bernoulli_ bernoulli exponential_ geometric_ log_normal_ cauchy_ multinomial",
    "dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout rrelu scaled_dot_product_attention",
)


def torch(module, control):
    """Torch's generator on the processor. module: torch itself, right after its import.

    A function that lies under several names, as torch.manual_seed and torch.random.manual_seed, gets one wrapper for
    all."""
    if "torch.manual_seed" in control:
        TORCH.seed(control["torch.manual_seed"], "torch.manual_seed", "control")
    else:
        _wrap_torch(module)
    seeds = {"torch.manual_seed": [module, module.random], "torch.seed": [module, module.random]}
    for call, owners in seeds.items():
        name = call.rpartition(".")[2]
        original = getattr(module.random, name)
        told = _torch_seed(original, call)
        for owner in owners:
            if getattr(owner, name, None) is original:
                setattr(owner, name, told)
    for owner, call in ((module.random, "torch.set_rng_state"), (module.cuda.random, "torch.cuda.set_rng_state")):
        original = owner.set_rng_state
        after(owner, "set_rng_state", lambda _, args, kwargs, call=call: TORCH.restored(args[0], call))
        after(owner, "get_rng_state", lambda state, args, kwargs: took(state))
        for other in (module, module.cuda):
            if getattr(other, "set_rng_state", None) is original:
                other.set_rng_state = owner.set_rng_state
    module.get_rng_state, module.cuda.get_rng_state = module.random.get_rng_state, module.cuda.random.get_rng_state
    _watch_default(module)


def _torch_seed(original, call):
    @functools.wraps(original)
    def seed(*args, **kwargs):
        TORCH.seed(None if call == "torch.seed" else first(args, kwargs, "seed"), call)
        result = original(*args, **kwargs)
        _default["seed"] = sys.modules["torch"].initial_seed()
        TORCH.settled()
        return result

    return seed


def _wrap_torch(module):
    """The functions that draw, in torch, on Tensor, in torch.nn.functional.

    A dropout draws only where it trains and p is not 0; attention only where dropout_p is not 0. A module's
    initialisation calls Tensor.uniform_ and the like, and is seen there."""

    def default(args, kwargs):
        return kwargs.get("generator") is None and not any(type(a).__name__ == "Generator" for a in args)

    def dropped(position):
        def drops(args, kwargs):
            if not default(args, kwargs):
                return False
            # Without training, or with p = 0, nothing is drawn.
            p = first(args, kwargs, "p", 1)
            training = first(args, kwargs, "training", 2)
            return p != 0 and (position == 2 if training is None else bool(training))

        return drops

    def attends(args, kwargs):
        return bool(first(args, kwargs, "dropout_p", 4))

    functional = module.nn.functional
    for name in _TORCH[0].split():
        TORCH.wrap(module, name, dropped(1) if "dropout" in name or name == "rrelu" else default)
    for name in _TORCH[1].split():
        TORCH.wrap(module.Tensor, name, default)
    for name in _TORCH[2].split():
        TORCH.wrap(
            functional,
            name,
            attends if name.startswith("scaled") else dropped(2) if name == "dropout" else dropped(1),
        )
    after(module, "compile", lambda *_: TORCH.leave())  # what is traced is torch's own


# Of torch's generator: its state (a digest) and its seed when it was last looked at.
_default = {}


def _watch_default(module):
    """Of torch's generator on the processor: seeding by method and draws in C++ pass no function of ours."""
    TORCH.settled()
    _default.update(state=TORCH.baseline, seed=module.initial_seed())


def poll():
    """At a step's end: seeds and draws that were not seen."""
    module = sys.modules.get("torch")
    if not _default or module is None:
        return
    if module.initial_seed() != _default["seed"]:
        _default["seed"] = module.initial_seed()
        if not TORCH.seeded or facts.step > 0:
            facts.add(
                "seeds",
                {
                    "generator": "torch",
                    "call": "a method of the generator",
                    "seed": str(_default["seed"]),
                    "place": None,
                    "by": "",
                    "at_step": facts.step,
                },
            )
        TORCH.seeded = True
        TORCH.leave()
    elif not TORCH.seeded and TORCH.sites == 0 and digest(module.default_generator.get_state()) != _default["state"]:
        TORCH.sites += 1
        facts.add("draws", {"generator": "torch", "call": "", "place": None})


def gather():
    """torch_seed also where nobody seeded: torch then begins with a seed of its own."""
    module = sys.modules.get("torch")
    if module is not None and hasattr(module, "default_generator"):
        facts.put("torch_seed", str(module.initial_seed()))
    facts.put("generators", {g.name: {"seeded": g.seeded, "drawn": g.has_drawn()} for g in (PYTHON, NUMPY, TORCH)})
