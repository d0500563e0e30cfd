"""What a checkpoint holds beside what the models hold: saved and loaded.

    torch.save({"model": state, "optimizer": ...})    names that end in a parameter's are compared with it

A tensor of a model that some model holds bit for bit under that name is the same; an average's copy is so of its own."""

import functools
import os
import sys

from opguard import _rt
from opguard.load import importing
from opguard.record import parameter_names
from opguard.training import calls, models, sink, where

_DEEPEST = 6
_MOST_TENSORS = 65536
_NAMED = 8


def install(torch):
    _wrap(torch.serialization, "save", (torch,), 1)
    importing.when_imported("safetensors.torch", lambda module: (_wrap(module, "save_file", (), 1), _wrap(module, "save_model", (), 1)))


def _wrap(module, name, others, path):
    original = getattr(module, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def save(*args, **kwargs):
        _saved(args[0] if args else next(iter(kwargs.values()), None), args[path] if len(args) > path else kwargs.get("f", kwargs.get("filename")))
        return original(*args, **kwargs)

    for holder in (module,) + others:
        if getattr(holder, name, None) is original:
            setattr(holder, name, save)


def _flat(value, found, path="", depth=0):
    torch = sys.modules["torch"]
    if len(found) >= _MOST_TENSORS or depth > _DEEPEST:
        return
    if isinstance(value, torch.Tensor):
        found.append((path, value))
    elif isinstance(value, torch.nn.Module):
        _flat(value.state_dict(), found, path, depth + 1)
    elif isinstance(value, dict):
        for key, inner in value.items():
            _flat(inner, found, "%s.%s" % (path, key) if path else str(key), depth + 1)


def _plain(name):
    """Without what wrappers put before a name."""
    for prefix in ("module.", "_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module."):
        name = name.replace(prefix, "")
    return name


def _live():
    """{name: tensors of that name}, of models that were called."""
    found = {}
    for root in calls.roots():
        for path, module in parameter_names.modules_below(root):
            skipped = getattr(module, "_non_persistent_buffers_set", ())
            for table in (module._parameters, module._buffers):
                for attr, tensor in table.items():
                    if tensor is not None and attr not in skipped:
                        found.setdefault(path + attr, []).append(tensor)
    return found


def _hashes(tensors):
    readable = [models.local(t).detach() for t in tensors]
    return _rt.hashes(readable)


@sink.guarded
def _saved(value, path):
    given = []
    _flat(value, given)
    live = _live()
    by_name = {}
    for name, tensor in given:
        parts = _plain(name).split(".")
        for start in range(len(parts)):
            suffix = ".".join(parts[start:])
            if suffix in live:
                by_name.setdefault(suffix, []).append(tensor)
                break
    same, unlike = 0, []
    for name, tensors in by_name.items():
        held = live[name]
        digests = _hashes(held)
        mine = _hashes(tensors)
        if any(d is None for d in digests + mine):
            continue
        if all(d in digests for d in mine):
            same += 1
        else:
            unlike.append(name)
    missing = [name for name in live if name not in by_name] if by_name else []
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    sink.see("save", (text, len(given), len(live), same, missing[:_NAMED], unlike[:_NAMED], where.place(3)))


@sink.guarded
def loaded(module, state, result):
    torch = sys.modules["torch"]
    if not isinstance(state, dict):
        return
    given = {_plain(str(name)): tensor for name, tensor in state.items() if isinstance(tensor, torch.Tensor)}
    unlike = []
    for path, below in parameter_names.modules_below(module):
        for table in (below._parameters, below._buffers):
            for attr, tensor in table.items():
                other = given.get(path + attr)
                if tensor is None or other is None or other.dtype != tensor.dtype or other.shape != tensor.shape:
                    continue
                mine, theirs = _hashes([tensor, other])
                if mine is not None and theirs is not None and mine != theirs:
                    unlike.append(path + attr)
    missing, unexpected = getattr(result, "missing_keys", ()), getattr(result, "unexpected_keys", ())
    sink.see("load", (type(module).__name__, len(given), len(missing), len(unexpected), unlike[:_NAMED], where.place(3)))
