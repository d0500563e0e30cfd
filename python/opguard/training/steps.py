"""Optimizers' steps: what each parameter is before and behind one, and which are held by none.

A digest is made of the parameters that a step may have written, and of the gradients that it is given. What was not
written since (torch's version counter) is not read again: a frozen model costs nothing after its first step.
On a device nothing is waited for, so digests and norms are none there."""

import sys
import weakref

from opguard import _rt
from opguard.load import importing
from opguard.record import hook_numbers
from opguard.training import calls, models, objects, ranks, sink, waiting, where

_MOST_BUFFERS = 512

_digests = {}  # number of a parameter -> (version, digest)
_used = {}  # id of a parameter -> (weak reference to its gradient, version after the step that used it)
_before = {}  # id of an optimizer -> what its step began with
_first = []  # the optimizer that stepped first, and speaks for what none holds


def install(torch):
    optim = sys.modules.get("torch.optim.optimizer")
    if optim is None:
        return
    optimizer = optim.Optimizer
    _meet_made(optimizer)
    with hook_numbers.apart():
        optim.register_optimizer_step_pre_hook(_begins)
    with hook_numbers.apart():
        optim.register_optimizer_step_post_hook(_ended)


def _meet_made(kind):
    """An optimizer that has not stepped holds its parameters too."""
    import functools

    original = kind.__init__

    @functools.wraps(original)
    def __init__(self, *args, **kwargs):
        original(self, *args, **kwargs)
        objects.optimizers.of(self)

    kind.__init__ = __init__


def _groups():
    """{id of a tensor: (optimizer, group, weight decay)} of all optimizers that live."""
    found = {}
    for number, optimizer in objects.optimizers.living():
        for place, group in enumerate(optimizer.param_groups):
            decay = group.get("weight_decay")
            decay = float(decay) if isinstance(decay, (int, float)) else None
            for tensor in group["params"]:
                found.setdefault(id(tensor), (number, place, decay))
    return found


def _digests_of(rows):
    """{number: digest} of [(number, tensor, held)]: what was not written since is as it was.

    Counterexample: a normalisation's running statistics, which kernels write past the counter."""
    found, fresh = {}, []
    for number, tensor, held in rows:
        known = _digests.get(number)
        version = _version(tensor)
        buffer = held is not None and held.buffer
        if not buffer and known is not None and known[0] == version and known[2]() is tensor:
            found[number] = known[1]
        else:
            fresh.append((number, tensor, version))
    if fresh:
        for (number, tensor, version), digest in zip(fresh, _rt.hashes([models.local(t).detach() for _, t, _ in fresh])):
            found[number] = digest
            _digests[number] = (version, digest, weakref.ref(tensor))
    return found


def _version(tensor):
    try:
        return models.local(tensor)._version
    except RuntimeError:  # an inference tensor has none
        return object()


def _norms(tensors):
    """Norms by position, None where they cannot be had without waiting."""
    torch = sys.modules["torch"]
    found = [None] * len(tensors)
    wanted = [
        i for i, t in enumerate(tensors)
        if t is not None and models.is_readable(models.local(t)) and (t.is_floating_point() or t.is_complex())
    ]  # fmt: skip
    by_type = {}
    for i in wanted:
        by_type.setdefault(tensors[i].dtype, []).append(i)
    for places in by_type.values():
        held = [models.local(tensors[i]).detach() for i in places]
        try:
            norms = torch._foreach_norm(held)
            values = torch.stack([n.to(torch.float64) for n in norms]).tolist()
        except (RuntimeError, AttributeError, NotImplementedError):
            values = [float(torch.linalg.vector_norm(t.to(torch.float32))) for t in held]
        for i, value in zip(places, values):
            found[i] = value
    return found


@sink.guarded
def _begins(optimizer, args, kwargs):
    if calls._is_compiling():
        return None
    ranks.meet()
    torch = sys.modules["torch"]
    number, _ = objects.optimizers.of(optimizer)
    if not _first:
        _first.append(number)
    step = _rt.step()
    found, groups = models.walk(step), _groups()
    mine = {id(t) for group in optimizer.param_groups for t in group["params"]}
    rows = []  # [number, tensor, held]
    tensors = [t for group in optimizer.param_groups for t in group["params"]]
    buffers = 0
    for key, held in found.items():
        tensor = held.tensor()
        if tensor is None or key in mine:
            continue
        if held.buffer:
            buffers += 1
            if number == _first[0] and buffers <= _MOST_BUFFERS:
                tensors.append(tensor)
        elif number == _first[0] and key not in groups:
            tensors.append(tensor)
    named = dict(zip(map(id, tensors), models.names(tensors)))
    shared = {}
    for held in found.values():
        tensor = held.tensor()
        if tensor is not None and not held.buffer:
            shared.setdefault(models.storage_of(tensor), []).append(held.name)
    _tied(shared)
    with torch.no_grad():
        for tensor in tensors:
            held = found.get(id(tensor))
            name = named.get(id(tensor)) or (held.name if held else None)
            names = shared.get(models.storage_of(tensor), ())
            rows.append((models.tell(tensor, held, name, groups.get(id(tensor)), names if held else ()), tensor, held))
        before = _digests_of(rows)
        gradients = [t.grad if t.is_leaf and t.grad is not None and not t.grad.is_sparse else None for _, t, _ in rows]
        has = [t.is_leaf and t.grad is not None for _, t, _ in rows]
        readable = [models.local(g).detach() for g in gradients if g is not None]
        digests = iter(_rt.hashes(readable))
        of_gradients = [next(digests) if g is not None else None for g in gradients]
        norms = _norms(gradients)
    types = [models.dtype_name(t.grad.dtype) if h else None for (_, t, _), h in zip(rows, has)]
    strangers = sum(1 for t in optimizer_tensors(optimizer) if id(t) not in found and named.get(id(t)) is None) if found else 0
    left = sum(1 for key, held in found.items() if not held.buffer and key not in groups and _wants(held))
    _before[id(optimizer)] = (rows, before, of_gradients, types, norms, strangers, left, where.place(3))
    return None


def optimizer_tensors(optimizer):
    return [t for group in optimizer.param_groups for t in group["params"]]


def _wants(held):
    tensor = held.tensor()
    return tensor is not None and tensor.requires_grad


def _tied(shared):
    """Names of one module tree that share memory because one tensor is held twice."""
    for root in calls.roots():
        seen = {}
        for path, module in models.parameter_names.modules_below(root):
            for attr, tensor in module._parameters.items():
                if tensor is not None:
                    seen.setdefault(id(tensor), []).append((path + attr, tensor))
        for pairs in seen.values():
            if len(pairs) > 1:
                shared[models.storage_of(pairs[0][1])] = [name for name, _ in pairs]


@sink.guarded
def _ended_row(optimizer):
    begun = _before.pop(id(optimizer), None)
    if begun is None:
        return
    torch = sys.modules["torch"]
    rows, before, gradients, types, norms, strangers, left, place = begun
    number, _ = objects.optimizers.of(optimizer)
    with torch.no_grad():
        after = _digests_of(rows)
        lengths = _norms([t for _, t, _ in rows])
    changed_ones, total = 0, 0.0
    mine = {id(t) for t in optimizer_tensors(optimizer)}
    modules = {n: m for n, m in objects.modules.living()}
    for (parameter, tensor, held), gradient, dtype, norm, length in zip(rows, gradients, types, norms, lengths):
        old, new = before.get(parameter), after.get(parameter)
        changed = None if old is None or new is None else old != new
        module = modules.get(held.module) if held else None
        if id(tensor) in mine:
            changed_ones += bool(changed)
            total += norm * norm if norm is not None else 0.0
        sink.see(
            "update",
            (parameter, number, new, old, gradient, dtype, norm, length, changed, module.training if module is not None else None),
        )
    _used.clear() if len(_used) > 100000 else None
    for tensor in optimizer_tensors(optimizer):
        if tensor.is_leaf and tensor.grad is not None:
            _used[id(tensor)] = (weakref.ref(tensor), weakref.ref(tensor.grad), _version(tensor.grad))
        else:
            _used.pop(id(tensor), None)
    rates = []
    for group in optimizer.param_groups:
        rate = group.get("lr")
        if isinstance(rate, (int, float)):
            rates.append(float(rate))
        elif rate is not None and getattr(rate, "device", None) is not None and rate.device.type == "cpu":
            rates.append(float(rate))
    readable = any(norm is not None for norm in norms)
    known = any(d is not None for d in after.values())
    sink.see(
        "optimizer",
        (number, type(optimizer).__name__, rates, len(mine), strangers, changed_ones if known else None, left,
         total ** 0.5 if readable else None, False, place),
    )  # fmt: skip


def _ended(optimizer, args, kwargs):
    _ended_row(optimizer)
    waiting.step_ended()


def stale():
    """Parameters whose gradient the last step used, and that nobody has touched since."""
    count = 0
    for reference, gradient, version in list(_used.values()):
        tensor, kept = reference(), gradient()
        if tensor is None or kept is None:
            continue
        if tensor.grad is kept and _version(kept) == version:
            count += 1
    return count
