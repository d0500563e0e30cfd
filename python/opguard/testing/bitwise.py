"""@pytest.mark.bitwise: a test's body runs twice from one state and must give the same bits.

    run 1    seeds, state as it was      body      what it returned, its losses, its parameters after each optimizer step, ...
    run 2    the same seeds and state    body      the same bits, or the test fails and says at which operator they part

Counterexample: two runs that both write a file and read it back: the second one finds the first one's file. State is what
testing/kept.py reaches: fixture values, globals and closures of the test, flags and random numbers."""

import contextlib
import random
import sys

import torch

from opguard import _rt
from opguard.testing import NotBitIdentical, bits, calls, identical, kept, pivot

_WHOLE = 4096  # elements up to which a value is kept whole; of larger ones their fingerprint
_RECORDINGS = 3  # pairs of runs recorded in search of a difference that comes and goes


class Fingerprint(str):
    """Stands for a value too large to keep."""


class Observer(contextlib.AbstractContextManager):
    """Within it: losses of every backward pass and parameters after every optimizer step, as [(name, value)]."""

    def __init__(self, names):
        self.names, self.found = names, []
        self.passes = self.steps = 0

    def __enter__(self):
        optim = sys.modules["torch.optim.optimizer"]
        self.engine = torch.autograd.Variable._execution_engine
        torch.autograd.Variable._execution_engine = _Engine(self.engine, self)
        register = getattr(optim, "register_optimizer_step_post_hook", None)
        self.hook = register(self.stepped) if register is not None else None
        return self

    def __exit__(self, *error):
        torch.autograd.Variable._execution_engine = self.engine
        if self.hook is not None:
            self.hook.remove()

    def add(self, name, value):
        """A value under a name, taken apart, each leaf kept small."""
        self.found += [(path, small(leaf)) for path, leaf in bits.leaves(value, name)]

    def backward(self, roots):
        """Losses as a backward pass begins: what the engine is given, whoever calls it."""
        for number, root in enumerate(roots):
            self.add("loss of backward pass %d%s" % (self.passes, "" if len(roots) == 1 else "[%d]" % number), root)
        self.passes += 1

    def stepped(self, optimizer, args, kwargs):
        """All parameters of the optimizer after its step, by their names in the modules that the test reaches."""
        for number, group in enumerate(optimizer.param_groups):
            for place, parameter in enumerate(group["params"]):
                name = self.names.get(id(parameter), "group %d, parameter %d" % (number, place))
                self.add("%s after step %d" % (name, self.steps), parameter)
        self.steps += 1


class _Engine:
    """Stands for torch's engine while a test runs: run_backward tells the roots, all else goes through."""

    def __init__(self, engine, observer):
        self.engine, self.observer = engine, observer

    def run_backward(self, tensors, *args, **kwargs):
        self.observer.backward(tensors)
        return self.engine.run_backward(tensors, *args, **kwargs)

    def __getattr__(self, name):
        return getattr(self.engine, name)


def small(leaf):
    """What is kept of a leaf: a copy, or of more than _WHOLE elements its type, shape and og1 fingerprint."""
    if not isinstance(leaf, torch.Tensor):
        return leaf
    if leaf.numel() <= _WHOLE:
        return leaf.detach().clone()
    return Fingerprint("%s %s %016x:%016x" % (leaf.dtype, list(leaf.shape), *_rt.fingerprint(leaf.detach().cpu().contiguous())))


def run(body, roots, runs=2, seed=0, deterministic=True):
    """body() `runs` times. roots: what it may change. NotBitIdentical where two of its runs differ."""
    __tracebackhide__ = True
    before = kept.Kept(body, *roots)
    try:
        first = None
        for number in range(1, runs + 1):
            left = _observed(body, roots, before, seed, deterministic)
            if first is None:
                first = left
            elif differing := bits.differences(first, left):
                text, found = _look(body, roots, before, seed, deterministic)
                told = ["not bit-identical: a (run 1 of this test) and b (run %d)" % number] + identical.listed(differing)
                raise NotBitIdentical("\n".join(told + [text]), [name for name, _ in differing], found)
    finally:
        before.restore_flags()
        kept.set_random(before.random)


def _observed(body, roots, before, seed, deterministic, watched=contextlib.nullcontext()):
    """One run -> [(name, value)]."""
    begin(before, seed, deterministic)
    call = identical.Call(body, roots, {}, False)
    with Observer(call.names()) as observer:
        with watched:
            out = body()
    observer.add("returned", out)
    for name, tensor in call.state():
        observer.add(name, tensor)
        if tensor.grad is not None:
            observer.add(name + ".grad", tensor.grad)
    return observer.found


def begin(before, seed, deterministic):
    """The state of the first run, seeds, and kernels that repeat themselves where there are such."""
    before.restore()
    random.seed(seed)
    torch.manual_seed(seed)
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed(seed % 2**32)
    if deterministic:
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False


def _look(body, roots, before, seed, deterministic):
    """(text, pivot): two further runs, recorded. A difference that is not there then comes and goes: up to _RECORDINGS
    pairs are tried."""
    for _ in range(_RECORDINGS):
        found = []

        def recorded(watched):
            found.append(_observed(body, roots, before, seed, deterministic, watched))
            return {name: value for name, value in found[-1] if isinstance(value, torch.Tensor)}

        text, told = pivot.find(recorded, recorded)
        if calls.busy() or len(found) < 2 or bits.differences(*found):
            return text, told
    return "recorded, %d further pairs of runs agree: the difference comes and goes" % _RECORDINGS, None
