"""Calls of the library that order a training: zero_grad, backward, train, clipping, schedulers, scalers, seeds.

    optimizer.zero_grad()               api "zero_grad", optimizer 0, "AdamW", 12 gradients that were not zero
    loss.backward()                     api "backward", the loss 2.31, 12 gradients of the step before are there still
    clip_grad_norm_(params, 1.0)        api "clip_grad_norm", "norm 2", the bound 1.0, the norm before 7.4

Of calls within each other the outermost counts: model.eval() is no `eval` of each layer. Counterexample: a program that
writes `p.grad = None` itself calls nothing here. What that does shows in the next `backward` row."""

import contextlib
import functools
import sys
import weakref

from opguard.load import importing
from opguard.training import generators, hooks, kinds, modules, parameters, steps, tensors, where

_numbers = {}  # (kind, id) -> (weak reference, number)
_counts = {}


def reset():
    _numbers.clear()
    _counts.clear()


def number_of(kind, thing):
    """Of schedulers, scalers, samplers: from 0, as they are met."""
    known = _numbers.get((kind, id(thing)))
    if known is None or known[0]() is not thing:
        number = _counts[kind] = _counts.get(kind, -1) + 1
        known = _numbers[kind, id(thing)] = (weakref.ref(thing), number)
    return known[1]


def say(name, thing=None, kind=None, number=None, flag=None, result=None):
    """A row of kind `api`; docs/formats/observations.md says what each name puts into the fields. How deep our own
    frames are does not matter: where.here() looks for the program's line."""
    kinds.say("api", (name, thing, kind, number, flag, result, where.here()))


# --- gradients ---


def _is_there(tensor):
    """Is there a gradient, and is it not zero? What the last step has used is known."""
    gradient = tensor.grad
    if gradient is None:
        return False
    if steps.used(tensor) is not None:
        return parameters.known(tensor).gradient_norm != 0
    held = tensors.local(gradient)
    if not tensors.is_plain(held):
        return True
    with tensors.quietly():
        few = held.flatten()[:64] if held.is_contiguous() else held
        return bool(few.any()) or bool(held.any())


def _zeroed(args, kwargs):
    """Of a module all its parameters count, of an optimizer those that it holds. Read before the call: afterwards
    nothing is there."""
    owner = args[0]
    torch = sys.modules["torch"]
    to_none = args[1] if len(args) > 1 else kwargs.get("set_to_none", True)
    if isinstance(owner, torch.optim.Optimizer):
        held, number = steps.held_by(owner), steps.meet(owner).number
    else:
        held = [t for _, t in modules.parameter_names.named_parameters(owner)]
        number = modules.number_of(owner)
    say("zero_grad", number, type(owner).__name__, sum(map(_is_there, held)), bool(to_none))


def _backward(args, kwargs):
    """Before the pass: what the last step has used and is there still will be added to. Of several roots no loss is
    said.

    Under torch.compile's tracing the roots are no tensors with numbers, and nothing is said."""
    roots = args[0] if args else kwargs.get("tensors")
    roots = roots if isinstance(roots, (list, tuple)) else [roots]
    torch = sys.modules["torch"]
    roots = [t for t in roots if isinstance(t, torch.Tensor)]
    if any(tensors.is_traced(t) for t in roots):
        return
    with torch._C.DisableTorchFunction():
        loss = tensors.number(roots[0]) if len(roots) == 1 else None
        wants = any(t.requires_grad for t in roots)
    say("backward", None, None, loss, wants, float(steps.stale()))


def _clipped(name):
    """The bound and, of clip_grad_norm_, what it returns: the norm before clipping. clip_grad_value_ returns none."""

    def tell(token, result, args, kwargs):
        bound = args[1] if len(args) > 1 else kwargs.get("max_norm", kwargs.get("clip_value"))
        norm = args[2] if len(args) > 2 else kwargs.get("norm_type", 2.0)
        say(name, None, None if name == "clip_grad_value" else "norm %g" % float(norm), tensors.number(bound), None, tensors.number(tensors.local(result)) if result is not None else None)

    return tell


# --- modes ---


def _trained(args, kwargs):
    mode = bool(args[1] if len(args) > 1 else kwargs.get("mode", True))
    say("train" if mode else "eval", modules.number_of(args[0]), type(args[0]).__name__, None, mode)


def _evaluated(args, kwargs):
    say("eval", modules.number_of(args[0]), type(args[0]).__name__, None, False)


# --- schedulers, scalers ---


def _scheduled(args, kwargs):
    """A scheduler's step. Its first one, which its __init__ makes, is no step of the program's: the frame of
    _initial_step tells. args[0] may be the context that the step enters, which holds the scheduler as `o`."""
    frame = sys._getframe(1)
    for _ in range(9):  # the first one is made by its __init__
        if frame is None:
            break
        if frame.f_code.co_name == "_initial_step":
            return
        frame = frame.f_back
    scheduler = getattr(args[0], "o", args[0])
    say("scheduler", number_of("scheduler", scheduler), type(scheduler).__name__)


def _scale_of(scaler):
    scale = getattr(scaler, "_scale", None)
    return tensors.number(scale if scale is not None else getattr(scaler, "_init_scale", None))


def _infinity_of(scaler, optimizer):
    """True, False, or None where nothing was unscaled yet or the answer lies on a device."""
    found = getattr(scaler, "_per_optimizer_states", {}).get(id(optimizer), {}).get("found_inf_per_device", {})
    values = [tensors.number(value) for value in found.values()]
    return any(values) if values and None not in values else None


def _scaler(name):
    """(begin, end) of a GradScaler's method. The optimizer's count of steps before and after tells whether step() let
    it step: where it did not, rows with `skipped` are said."""

    def begin(args, kwargs):
        return steps.count(args[1]) if name == "step" and len(args) > 1 else None

    def end(token, result, args, kwargs):
        scaler = args[0]
        if not getattr(scaler, "_enabled", True):
            return
        optimizer = args[1] if len(args) > 1 else kwargs.get("optimizer")
        if name == "step" and optimizer is not None and steps.count(optimizer) == token:
            steps.left_out(optimizer)
        flag = _infinity_of(scaler, optimizer) if name in ("step", "unscale_") else None
        say("scaler." + name.rstrip("_"), number_of("scaler", scaler), type(scaler).__name__, _scale_of(scaler), flag)

    return begin, end


# --- seeds, samplers, no_sync, init ---


def _seeded(args, kwargs):
    seed = args[0] if args else kwargs.get("seed")
    say("seed", None, None, tensors.number(seed) if not isinstance(seed, bool) else None)


def _was_seeded(token, result, args, kwargs):
    generators.seeded()


def _epoch_set(args, kwargs):
    epoch = args[1] if len(args) > 1 else kwargs.get("epoch")
    say("set_epoch", number_of("sampler", args[0]), type(args[0]).__name__, tensors.number(epoch))


def wrap_set_epoch(kind):
    """Of a sampler of whatever class."""
    for base in kind.__mro__:
        if "set_epoch" in vars(base):
            hooks.around(base, "set_epoch", _epoch_set)


def _on_data_parallel(kind):
    hooks.around(kind, "__init__", _replicated)
    _wrap_no_sync(kind)


def _replicated(args, kwargs):
    """Replicas are made, be they called or not: who goes around the wrapper leaves its promise standing."""
    say("replicate", None, type(args[0]).__name__)


def _wrap_no_sync(kind):
    original = kind.no_sync
    if getattr(original, "_opguard_training", False):
        return

    @hooks.guarded
    def tell(module, entered):
        if kinds.watching() and not hooks.compiling():
            say("no_sync", modules.number_of(module), type(module).__name__, None, entered)

    @functools.wraps(original)
    def no_sync(self, *args, **kwargs):
        return _within(original(self, *args, **kwargs), functools.partial(tell, self))

    hooks.replace(kind, "no_sync", original, no_sync)


@contextlib.contextmanager
def _within(manager, tell):
    with manager as value:
        tell(True)
        try:
            yield value
        finally:
            tell(False)


def _filled(name):
    """torch.nn.init's functions, of parameters alone. `flag`: it held what a checkpoint had loaded, which is now
    gone."""

    def tell(args, kwargs):
        tensor = args[0] if args else kwargs.get("tensor")
        if isinstance(tensor, sys.modules["torch"].nn.Parameter) and not tensors.is_traced(tensor):
            entry = parameters.meet(tensor)
            say("init." + name, entry.number, None, None, entry.loaded)

    return tell


_INIT = (
    "uniform_ normal_ trunc_normal_ constant_ ones_ zeros_ eye_ dirac_ xavier_uniform_ xavier_normal_ kaiming_uniform_ kaiming_normal_ "
    "orthogonal_ sparse_"
)  # fmt: skip


def install(torch):
    kinds.at_begin(reset)
    around, module = hooks.around, torch.nn.Module
    around(sys.modules["torch.optim.optimizer"].Optimizer, "zero_grad", _zeroed)
    around(module, "zero_grad", _zeroed)
    around(torch.autograd, "backward", _backward)
    around(torch.Tensor, "backward", _backward)
    around(module, "train", _trained, family="mode")
    around(module, "eval", _evaluated, family="mode")
    for name, tell in (("clip_grad_norm_", "clip_grad_norm"), ("clip_grad_value_", "clip_grad_value")):
        original = getattr(torch.nn.utils, name)
        ours = around(torch.nn.utils.clip_grad, name, end=_clipped(tell), family="clip")
        if ours is not None and original is getattr(ours, "__wrapped__", None):
            setattr(torch.nn.utils, name, ours)
    schedulers = sys.modules["torch.optim.lr_scheduler"]
    # Most warn two frames up, of the program: no frame of ours may stand between. What they enter tells as well.
    entered = getattr(schedulers, "_enable_get_lr_call", None)
    quiet = () if entered is None else (getattr(schedulers, "LRScheduler", None), getattr(schedulers, "_LRScheduler", None))
    if entered is not None:
        around(entered, "__enter__", _scheduled, family="scheduler")
    for kind in list(vars(schedulers).values()):
        if isinstance(kind, type) and "step" in vars(kind) and kind.__module__ == schedulers.__name__ and kind not in quiet:
            around(kind, "step", _scheduled, family="scheduler")
    _wrap_scalers(torch)
    original = torch.random.manual_seed
    ours = around(torch.random, "manual_seed", _seeded, _was_seeded, family="seed")
    if ours is not None and torch.manual_seed is original:
        torch.manual_seed = ours
    for name in _INIT.split():
        around(torch.nn.init, name, _filled(name), family="init")
    importing.when_imported("torch.nn.parallel.distributed", lambda held: _on_data_parallel(held.DistributedDataParallel))


def _wrap_scalers(torch):
    scalers = [getattr(getattr(torch, "amp", None), "GradScaler", None), torch.cuda.amp.GradScaler]
    for kind in scalers:
        for name in ("scale", "unscale_", "step", "update"):
            if kind is not None and name in vars(kind):
                begin, end = _scaler(name)
                around = hooks.around
                around(kind, name, begin, end, family="scaler")
