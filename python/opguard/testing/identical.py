"""assert_bit_identical: two calls from one state, compared; where they differ, recorded and followed back (pivot.py).

    state as it was    fn_a(copies of the arguments), backward    its results, gradients, what it left
    state as it was    fn_b(copies of the arguments), backward    the same, compared name by name
    they differ        each once more, to see whether it repeats itself; then both recorded

Counterexample: a function that draws from a generator of its own making is seeded by nobody, and differs from itself.
That is said, and the place where its two runs part. The cost: two runs, and up to four more where bits differ."""

import contextlib
import copy
import dataclasses
import functools
import sys
import types

import torch

from opguard.testing import NotBitIdentical, bits, kept, pivot

_SHOWN = 6  # differing values named in a failure


def check(fn_a, fn_b, args, kwargs, backward):
    __tracebackhide__ = True
    both = [Call(fn, args, kwargs, backward) for fn in (fn_a, fn_b)]
    title = "not bit-identical: a (%s) and b (%s)" % (_title(fn_a), _title(fn_b))
    before = kept.Kept(fn_a, fn_b, args, kwargs)
    try:
        text, differing, found = _compare(both, title, before)
    finally:
        before.restore()
    if differing:
        raise NotBitIdentical(text, [name for name, _ in differing], found)


def _compare(both, title, before):
    """-> (text, [(name, how)], pivot)"""
    a, b = both
    unlike = bits.differences(*_common(a.state(), b.state()))
    left = [_run(call, before) for call in both]
    differing = _differences(*left)
    if not differing:
        return "", [], None
    lines = [title] + listed(differing)
    if unlike:
        lines.append("before either ran, %s differed already: %s" % (unlike[0][0], unlike[0][1]))
        lines.append("give both the same: b.load_state_dict(a.state_dict())")
    # One that does not repeat itself is compared with itself: that is the difference to be found.
    for side, call in zip("ab", both):
        if _differences(left["ab".index(side)], _run(call, before)):
            text, found = _look(call, call, before)
            lines.append("%s differs from itself when it runs again from the same state; below, a and b are two runs of it" % side)
            return "\n".join(lines + [text]), differing, found
    text, found = _look(a, b, before)
    return "\n".join(lines + [text]), differing, found


def _look(a, b, before):
    """Both recorded. What is compiled runs eagerly then: no difference any more means that compiling makes it."""
    recorded = []

    def recording(call):
        def run(watched):
            left = dict(_run(call, before, watched))
            recorded.append(left)
            return {name: value for name, value in left.items() if isinstance(value, torch.Tensor)}

        run.names = call.names()
        return run

    text, found = pivot.find(recording(a), recording(b))
    if len(recorded) == 2 and not _differences(*(list(left.items()) for left in recorded)):
        if "torch._dynamo" in sys.modules:
            return "with what is compiled run eagerly they agree: compiling makes the difference, and no operator inside is told", None
        return "recorded, they agree: the difference comes and goes", None
    return text, found


def _differences(left_a, left_b):
    common_a, common_b = _common(left_a, left_b)
    return bits.differences(common_a, common_b)


def _common(left_a, left_b):
    """Results are compared all; of parameters and buffers those of names that both have."""
    known = [{name for name, _ in left} for left in (left_a, left_b)]
    return [[(name, value) for name, value in left if name.startswith("out") or name in known[0] & known[1]] for left in (left_a, left_b)]


def listed(differing):
    lines = ["  %s: %s" % told for told in differing[:_SHOWN]]
    return lines + (["  and %d more" % (len(differing) - _SHOWN)] if len(differing) > _SHOWN else [])


def _run(call, before, watched=contextlib.nullcontext()):
    """One run from the state that was kept."""
    before.restore()
    return call.run(watched)


class Call:
    """fn(*args, **kwargs), to be run as often as wanted.

    roots: modules that it reaches and that no other of them holds. Their parameters and buffers are its state."""

    def __init__(self, fn, args, kwargs, backward):
        if not callable(fn):
            raise TypeError("assert_bit_identical compares functions and modules, not %r" % (fn,))
        self.fn, self.args, self.kwargs, self.backward = fn, args, kwargs, backward
        for name, value in [("args[%d]" % i, v) for i, v in enumerate(args)] + list(kwargs.items()):
            if isinstance(value, torch.Tensor):
                bits.readable(value, name)
        owner = getattr(fn, "__self__", None)
        if isinstance(owner, type) and issubclass(owner, torch.autograd.Function):
            self.fn = lambda *args, **kwargs: owner.apply(*args, **kwargs)  # the class is asked again, of each run
        modules = [v for v in kept.reached(fn, args, kwargs) if isinstance(v, torch.nn.Module)]
        below = {id(inner) for module in modules for inner in module.modules() if inner is not module}
        self.roots = [module for module in modules if id(module) not in below]

    def state(self):
        """[(name, tensor)]: of one module its own names, of several with their number in front."""
        found = []
        for number, root in enumerate(self.roots):
            prefix = "" if len(self.roots) == 1 else "module%d." % number
            found += [(prefix + name.replace("_orig_mod.", ""), tensor) for name, tensor in bits.state_of(root)]
        return found

    def names(self):
        return {id(tensor): name for name, tensor in self.state()}

    def run(self, watched):
        """[(name, value)] of all that it gives and leaves; the values are copies. watched: around what is the
        program's.

        A call that has left gradients behind has made its backward pass itself; then none is made here."""
        args, kwargs = copied((self.args, self.kwargs))
        state = self.state()
        gradients = {name: tensor.grad for name, tensor in state}
        with watched:
            out = self.fn(*args, **kwargs)
        found = bits.leaves(out)
        passed = any(tensor.grad is not gradients.get(name) for name, tensor in state) or any(t.grad is not None for t in _leaves((args, kwargs)))
        if self.backward and not passed:
            _backward([value for _, value in found if isinstance(value, torch.Tensor)], watched)
        found = bits.kept(found)
        inputs = [("args[%d]" % i, value) for i, value in enumerate(args)] + list(kwargs.items())
        for name, value in inputs:
            found += _gradients(name, value)
        for name, tensor in self.state():
            found.append((name, tensor))
            if tensor.grad is not None:
                found.append((name + ".grad", tensor.grad))
        return bits.kept([(name, value) for name, value in found if not isinstance(value, torch.Tensor) or bits.readable(value, name) is not None])


def _gradients(name, value):
    """Of the tensors of an argument, and what the call wrote into them."""
    found = []
    try:
        given = bits.leaves(value, name)
    except bits.CannotCompare:
        return []  # an object of the program's: what it holds is not compared
    for path, tensor in given:
        if isinstance(tensor, torch.Tensor):
            found.append((path, tensor))
            if tensor.is_leaf and tensor.grad is not None:
                found.append((path + ".grad", tensor.grad))
    return found if not isinstance(value, torch.nn.Module) else []


def _leaves(value):
    return [t for t in kept.reached(value) if isinstance(t, torch.Tensor) and t.is_leaf and not isinstance(t, torch.nn.Parameter)]


def _backward(results, watched):
    """Gradients of every result, weighed by numbers that no sum hides: ones would not tell a permutation."""
    roots = [t for t in results if t.requires_grad and t.grad_fn is not None]
    if not roots:
        return
    generator = torch.Generator().manual_seed(0)
    weights = []
    for root in roots:
        wide = torch.randn(root.shape, generator=generator, dtype=torch.complex64 if root.is_complex() else torch.float32)
        weights.append(torch.ones_like(root) if root.dim() == 0 else wide.to(root.device, root.dtype))
    with watched:
        torch.autograd.backward(roots, weights)


def copied(value, memo=None):
    """Tensors and arrays copied, the same one once; containers rebuilt; all else as it is."""
    memo = {} if memo is None else memo
    if id(value) in memo:
        return memo[id(value)]
    fresh = value
    if isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter):
        with torch.no_grad():
            fresh = value.detach().clone()
        fresh.requires_grad_(value.requires_grad)
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        fresh = type(value)(*(copied(item, memo) for item in value))
    elif type(value) in (tuple, list):
        fresh = type(value)(copied(item, memo) for item in value)
    elif isinstance(value, dict):
        fresh = copy.copy(value)
        for key, item in value.items():
            fresh[key] = copied(item, memo)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        fresh = copy.copy(value)
        for field in dataclasses.fields(value):
            object.__setattr__(fresh, field.name, copied(getattr(value, field.name), memo))
    elif type(value).__module__ == "numpy" and hasattr(value, "copy"):
        fresh = value.copy()
    memo[id(value)] = fresh
    return fresh


def _title(fn):
    """What a function is called in a failure: "reference", "lambda of line 12", "compiled Net"."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    if isinstance(getattr(fn, "__wrapped__", None), types.FunctionType) and not hasattr(fn, "_torchdynamo_orig_callable"):
        fn = fn.__wrapped__
    original = getattr(fn, "_orig_mod", None)
    if original is not None:
        return "compiled " + _title(original)
    if isinstance(fn, torch.nn.Module):
        return type(fn).__name__
    name = getattr(fn, "__qualname__", None) or type(fn).__qualname__
    code = getattr(fn, "__code__", None)
    if "<lambda>" in name and code is not None:
        name = "lambda of line %d" % code.co_firstlineno
    prefix = "compiled " if hasattr(fn, "_torchdynamo_orig_callable") else ""
    return prefix + name.rpartition("<locals>.")[2]
