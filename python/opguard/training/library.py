"""Calls of the library that a training loop is made of: zero_grad, backward, clipping, schedulers, scalers, seeds.

Functions are wrapped where they stand and told before they run, except for clipping, whose result is told as well. A
call within another of the same name (step of a scheduler's base class) is not told again."""

import functools
import sys
import threading

from opguard.training import calls, functional, objects, sink, steps, where

_inside = threading.local()


def see(name, thing=None, kind=None, number=None, flag=None, result=None):
    sink.see("api", (name, thing, kind, number, flag, result, where.place(2)))


def wrap(owner, attribute, name, tell, told_after=False):
    """tell(*args, **kwargs) -> the fields of see() behind the name, or None: nothing is told."""
    original = vars(owner).get(attribute) if isinstance(owner, type) else getattr(owner, attribute, None)
    if original is None or getattr(original, "_opguard_training", False):
        return

    @sink.guarded
    def observed(args, kwargs, result=None):
        found = tell(*args, **kwargs) if not told_after else tell(result, *args, **kwargs)
        if found is not None:
            see(name, *found)

    @functools.wraps(original)
    def wrapper(*args, **kwargs):
        names = getattr(_inside, "names", None)
        if names is None:
            names = _inside.names = set()
        if name in names or calls._is_compiling():
            return original(*args, **kwargs)
        names.add(name)
        try:
            if not told_after:
                observed(args, kwargs)
            result = original(*args, **kwargs)
            if told_after:
                observed(args, kwargs, result)
            return result
        finally:
            names.discard(name)

    wrapper._opguard_training = True
    setattr(owner, attribute, wrapper)


def _number(thing):
    return objects.others.of(thing)[0]


def _kind(thing):
    return type(thing).__name__


def _value_of(tensor):
    """A loss, where it can be read without waiting."""
    torch = sys.modules["torch"]
    if isinstance(tensor, torch.Tensor) and tensor.numel() == 1 and tensor.device.type == "cpu" and tensor.layout is torch.strided:
        return float(tensor.detach().to(torch.float64).reshape(()).item()) if not tensor.is_complex() else None
    return None


def _backward(tensors, *args, **kwargs):
    outputs = tensors if isinstance(tensors, (list, tuple)) else (tensors,)
    first = outputs[0] if outputs else None
    return None, None, _value_of(first), bool(getattr(first, "requires_grad", False)), steps.stale()


def _nonzero_gradients(parameters):
    """How many are there and hold something; the first that does is enough to know that some do."""
    torch = sys.modules["torch"]
    count = 0
    for parameter in parameters:
        gradient = parameter.grad if parameter.is_leaf else None
        if gradient is None or gradient.is_sparse or gradient.device.type != "cpu":
            continue
        if id(parameter) in _untouched() or not bool(torch.count_nonzero(gradient.detach())):
            continue
        count += 1
        break
    return count


def _untouched():
    """Gradients that a step has used already: to clear them throws nothing away."""
    return {key for key, (reference, gradient, version) in steps._used.items()
            if reference() is not None and gradient() is not None and reference().grad is gradient() and steps._version(gradient()) == version}


def _zero_grad_of_optimizer(optimizer, set_to_none=True):
    return objects.optimizers.of(optimizer)[0], _kind(optimizer), _nonzero_gradients(steps.optimizer_tensors(optimizer)), bool(set_to_none)


def _zero_grad_of_module(module, set_to_none=True):
    return calls.number_of(module), _kind(module), _nonzero_gradients(module.parameters()), bool(set_to_none)


def _scale(scaler):
    value = getattr(scaler, "_scale", None)
    if value is None:
        return float(getattr(scaler, "_init_scale", 0.0))
    return _value_of(value)


def _scaler(scaler, *args, **kwargs):
    return _number(scaler), _kind(scaler), _scale(scaler) if scaler.is_enabled() else None


def install(torch):
    optimizer = torch.optim.Optimizer
    wrap(optimizer, "zero_grad", "zero_grad", _zero_grad_of_optimizer)
    wrap(torch.nn.Module, "zero_grad", "zero_grad", _zero_grad_of_module)
    wrap(torch.Tensor, "backward", "backward", _backward)
    wrap(torch.autograd, "backward", "backward", _backward)
    _modes(torch)
    clip = torch.nn.utils.clip_grad
    for attribute, name in (("clip_grad_norm_", "clip_grad_norm"), ("clip_grad_value_", "clip_grad_value")):
        wrap(clip, attribute, name, _clipped, told_after=True)
        setattr(torch.nn.utils, attribute, getattr(clip, attribute))
    schedulers = torch.optim.lr_scheduler
    for base in ("LRScheduler", "_LRScheduler", "ReduceLROnPlateau", "SequentialLR", "ChainedScheduler"):
        kind = getattr(schedulers, base, None)
        if isinstance(kind, type):
            wrap(kind, "step", "scheduler", lambda scheduler, *args, **kwargs: (_number(scheduler), _kind(scheduler)))
    wrap(torch, "manual_seed", "seed", lambda seed: (None, None, float(seed) if isinstance(seed, int) else None))
    scaler = getattr(getattr(torch.amp, "grad_scaler", None), "GradScaler", None)
    if scaler is not None:
        for attribute, name in (("scale", "scale"), ("unscale_", "unscale"), ("step", "step"), ("update", "update")):
            wrap(scaler, attribute, "scaler." + name, _scaler)
    for attribute in (
        "normal_", "uniform_", "xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_", "trunc_normal_",
        "orthogonal_", "zeros_", "ones_", "constant_",
    ):  # fmt: skip
        wrap(torch.nn.init, attribute, "init." + attribute.rstrip("_"), functools.partial(_initialised, attribute))
    _own_fills(torch)
    functional.install(torch)
    _wrap_load(torch)


def _clipped(norm, parameters=None, bound=None, *args, **kwargs):
    bound = kwargs.get("max_norm", kwargs.get("clip_value", bound))
    return None, None, float(bound) if isinstance(bound, (int, float)) else None, None, _value_of(norm) if norm is not None else None


def _initialised(attribute, tensor, *args, **kwargs):
    torch = sys.modules["torch"]
    return (objects.parameters.of(tensor)[0],) if isinstance(tensor, torch.nn.Parameter) else None


def _own_fills(torch):
    """p.data.normal_() of a parameter's own data, as initialisers of transformers do, is told by its storage."""
    for attribute in ("normal_", "uniform_"):
        original = getattr(torch.Tensor, attribute)

        def filled(self, *args, _original=original, _attribute=attribute, **kwargs):
            if isinstance(self, torch.nn.Parameter) and not calls._is_compiling() and "init." not in str(getattr(_inside, "names", "")):
                _fill(self, _attribute)
            return _original(self, *args, **kwargs)

        filled = functools.wraps(original)(filled) if hasattr(original, "__name__") else filled
        setattr(torch.Tensor, attribute, filled)


@sink.guarded
def _fill(tensor, attribute):
    see("init." + attribute.rstrip("_"), objects.parameters.of(tensor)[0])


def _modes(torch):
    """train(mode): eval() is train(False)."""
    inner = torch.nn.Module.train

    @sink.guarded
    def tell(module, mode):
        see("train" if mode else "eval", calls.number_of(module), _kind(module), None, bool(mode))

    @functools.wraps(inner)
    def train(self, mode=True):
        depth = getattr(_inside, "modes", 0)
        _inside.modes = depth + 1
        try:
            if depth == 0 and isinstance(mode, bool) and not calls._is_compiling():
                tell(self, mode)
            return inner(self, mode)
        finally:
            _inside.modes = depth

    torch.nn.Module.train = train


def _wrap_load(torch):
    from opguard.training import checkpoints

    original = torch.nn.Module.load_state_dict

    @functools.wraps(original)
    def load_state_dict(self, state_dict, *args, **kwargs):
        result = original(self, state_dict, *args, **kwargs)
        checkpoints.loaded(self, state_dict, result)
        return result

    torch.nn.Module.load_state_dict = load_state_dict


def on_ranks(module):
    """torch.nn.parallel.distributed"""
    kind = getattr(module, "DistributedDataParallel", None)
    if kind is not None:
        wrap(kind, "no_sync", "no_sync", lambda wrapped: (calls.number_of(wrapped), _kind(wrapped), None, True))


def on_samplers(module):
    """torch.utils.data.distributed"""
    wrap(module.DistributedSampler, "set_epoch", "set_epoch",
         lambda sampler, epoch: (_number(sampler), _kind(sampler), float(epoch) if isinstance(epoch, int) else None))
