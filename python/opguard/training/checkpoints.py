"""Checkpoints: is what is saved what the models hold, and do they hold what was loaded?

    torch.save({"model": ema.state_dict()}, path)      8 tensors, 8 live, 0 same, unlike "fc.weight", ...
    net.load_state_dict(half, strict=False)            3 given, 5 missing, unlike []

A saved tensor belongs to the live ones whose name its own ends with. {"model": {"module.fc.weight": ...}} has the name
model.fc.weight, whose longest end that is a live name is fc.weight. Wrappers' parts of a name are left out. A live
name is `same` where some model's tensor of that name is saved bit for bit. A model none of whose names is there is not
meant, and counts for nothing. Counterexample: another type or shape, as a checkpoint in halves has, tells nothing.

The cost: a digest of the saved tensors and of the models', for each file."""

import os
import sys
import threading

from opguard.load import importing
from opguard.record import parameter_names
from opguard.training import api, hooks, kinds, modules, parameters, steps, tensors, where

_MOST_DEPTH, _MOST_TENSORS, _MOST_NAMES = 6, 100_000, 8
_WRAPPERS = ("module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")


def _collect(value, name, found, depth=0):
    """(parts of a name, tensor) into `found`, of dictionaries, lists and modules, _MOST_DEPTH levels deep.

    dict.items(value), not value.items(): a subclass of the program's is not asked."""
    torch = sys.modules["torch"]
    if len(found) >= _MOST_TENSORS:
        return
    if isinstance(value, torch.Tensor):
        found.append((name, value))
    elif isinstance(value, torch.nn.Module):
        for live, tensor in _of_module(value):
            found.append((name + live.split("."), tensor))
    elif depth < _MOST_DEPTH:
        if isinstance(value, dict):
            for key, item in list(dict.items(value)):
                parts = [p for p in str(key).split(".") if p not in _WRAPPERS] if isinstance(key, str) else [str(key)]
                _collect(item, name + parts, found, depth + 1)
        elif isinstance(value, (list, tuple)):
            for i, item in enumerate(value):
                _collect(item, name + [str(i)], found, depth + 1)


def _of_module(root):
    """[(name, tensor)] that belongs in a state dictionary; of what two names share, both."""
    found = []
    for path, module in parameter_names.modules_below(root):
        table = object.__getattribute__(module, "__dict__")
        apart = table.get("_non_persistent_buffers_set") or ()
        for kind in ("_parameters", "_buffers"):
            for attr, tensor in (table.get(kind) or {}).items():
                if tensor is not None and attr not in apart and not parameter_names.is_lazy(tensor):
                    found.append((path + str(attr), tensor))
    return found


def _saved(value, path):
    """The row of a file. A model counts where at least half of its names are in the file: else the file is another's.

    A name that is not there is no loss where its memory is, under another name: tied weights are often saved once."""
    saved = []
    _collect(value, [], saved)
    models = [_of_module(root) for root in modules.roots()]
    live = {}  # name -> tensors
    for model in models:
        for name, tensor in model:
            live.setdefault(name, []).append(tensor)
    pairs = {}  # name -> [(saved, live)]
    for parts, tensor in saved:
        for begin in range(len(parts)):  # the longest name first
            name = ".".join(parts[begin:])
            if name in live:
                pairs.setdefault(name, []).extend((tensor, held) for held in live[name])
                break
    same, unlike = _compare(pairs)
    missing, count = [], 0
    for model in models:
        meant = [name in pairs for name, _ in model]
        if not any(meant) or sum(meant) * 2 < len(meant):
            continue
        count += len(model)
        there = {_key(tensor) for name, tensor in model if name in pairs}
        missing += [name for name, tensor in model if name not in pairs and _key(tensor) not in there and name not in missing]
    count = count or sum(map(len, models))
    kinds.say("save", (path, len(saved), count, len(same), missing[:_MOST_NAMES], unlike[:_MOST_NAMES], where.here(), _trained_missing(models, pairs)))


def _trained_missing(models, pairs):
    """Names that an optimizer trains and the file lacks, of models most of whose trained names it has; None of others.

    An adapter's file has what was trained, and few of the model's names."""
    holders, found = parameters.holders(), None
    for model in models:
        trained = [(name, tensor) for name, tensor in model if id(tensor) in holders and tensor.requires_grad]
        there = {_key(tensor) for name, tensor in trained if name in pairs}
        if not there or sum(_key(tensor) in there for _, tensor in trained) * 2 < len(trained):
            continue
        found = [] if found is None else found
        found += [name for name, tensor in trained if name not in pairs and _key(tensor) not in there and name not in found]
    return None if found is None else found[:_MOST_NAMES]


def _key(tensor):
    """What two names of one memory share."""
    held = tensors.local(tensor)
    try:
        return held.data_ptr() or id(tensor), tuple(held.shape)
    except Exception:
        return id(tensor), ()


def _compare(pairs):
    """([names of which one pair is alike], [names of which none is])."""
    torch = sys.modules["torch"]
    every, wanted = {}, []
    for name, held in pairs.items():
        for one, other in held:
            if one.dtype == other.dtype and one.shape == other.shape and _key(one) != _key(other):
                for tensor in (one, other):
                    if id(tensor) not in every:
                        every[id(tensor)] = len(wanted)
                        wanted.append(tensor)
    with torch._C.DisableTorchFunction():
        digests = tensors.hashes(wanted)
    same, unlike = [], []
    for name, held in pairs.items():
        alike, known = False, False
        for one, other in held:
            if one.dtype != other.dtype or one.shape != other.shape:
                continue
            if _key(one) == _key(other):
                alike = known = True
            else:
                a, b = digests[every[id(one)]], digests[every[id(other)]]
                known = known or (a is not None and b is not None)
                alike = alike or (a is not None and a == b)
        if alike:
            same.append(name)
        elif known:
            unlike.append(name)
    return same, unlike


# A buffer in memory has no path: its type is said, as <BytesIO>.
def _path_text(path):
    return os.fspath(path) if isinstance(path, (str, bytes, os.PathLike)) else "<%s>" % type(path).__name__


def _saving(args, kwargs):
    value = args[0] if args else next(iter(kwargs.values()), None)
    torch = sys.modules["torch"]
    if isinstance(value, (torch.UntypedStorage, torch.storage.TypedStorage)):
        return  # what pickle asks of a tensor
    if threading.current_thread() is not threading.main_thread() and where.here() is None:
        return  # a library's thread writes what was given to it before
    named = [kwargs[name] for name in ("f", "filename", "checkpoint_id", "storage_writer") if kwargs.get(name) is not None]
    path = args[1] if len(args) > 1 else named[0] if named else None
    path = getattr(path, "path", path)  # a writer's
    path = _path_text(path)
    _saved(value, path if isinstance(path, str) else path.decode("utf-8", "replace"))


# --- loading ---


def _live(module):
    """{name: tensor} as a state dictionary names them."""
    live = {}
    for path, below in _with_wrappers(module):
        table = object.__getattribute__(below, "__dict__")
        for kind in ("_parameters", "_buffers"):
            for attr, tensor in (table.get(kind) or {}).items():
                if tensor is not None:
                    live[path + str(attr)] = tensor
    return live


def _given(args, kwargs):
    """Names and tensors, as they are before the call, which may change the dictionary; and how many of them are the
    module's own memory: these a load leaves as they are.

        net.load_state_dict(net.state_dict())      all are its own: nothing is loaded"""
    state = args[1] if len(args) > 1 else kwargs.get("state_dict")
    torch = sys.modules["torch"]
    given = [(str(k), v) for k, v in list(dict.items(state)) if isinstance(v, torch.Tensor)] if isinstance(state, dict) else []
    live = _live(args[0])
    own = [_key(live[name]) for name, tensor in given if name in live and tensor.numel() and _key(tensor) == _key(live[name])]
    # What torch.distributed.checkpoint has filled in place is loaded already. An object with a state of its own it fills
    # and then hands that state, before it returns.
    left = [key for key in own if key not in _filled] if _IN_PLACE not in hooks.inside.families else []
    _filled.difference_update(own)
    return given, len(left)


_filled = set()  # keys of tensors
_IN_PLACE = "load in place"


def _fills(args, kwargs):
    """torch.distributed.checkpoint fills the tensors of the dictionary that it is given. They are loaded once it
    returns."""
    found = []
    _collect(args[0] if args else kwargs.get("state_dict"), [], found)
    _filled.update(_key(tensor) for _, tensor in found)


def _loaded(token, result, args, kwargs):
    """Behind load_state_dict: what the module holds now beside what was given, compared in the live one's type.

    Each parameter remembers its digest. The first step behind the load tells by it whether something wrote in
    between."""
    (given, own), module = token, args[0]
    missing = getattr(result, "missing_keys", None)
    unexpected = getattr(result, "unexpected_keys", None)
    live = _live(module)
    pairs = {name: [(_as(tensor, live[name]), live[name])] for name, tensor in given if name in live}
    _, unlike = _compare(pairs)
    filled = [live[name] for name in pairs if isinstance(live[name], sys.modules["torch"].nn.Parameter)]
    with tensors.quietly():
        digests = tensors.hashes(filled)
    for tensor, digest in zip(filled, digests):
        entry = parameters.meet(tensor)
        entry.loaded, entry.as_loaded = True, (tensor.dtype, digest)
    kinds.say("load", (
        type(module).__name__, len(given), None if missing is None else len(missing), None if unexpected is None else len(unexpected),
        unlike[:_MOST_NAMES], where.here(), own, "module", modules.number_of(module),
    ))  # fmt: skip


def _with_wrappers(root):
    """[("module.fc.", module)]: names as they are, not stripped."""
    found, stack, seen = [], [("", root)], set()
    while stack:
        prefix, module = stack.pop()
        found.append((prefix, module))
        if (prefix, id(module)) in seen or prefix.count(".") > 64:
            continue
        seen.add((prefix, id(module)))
        for name, child in parameter_names.table(module, "_modules"):
            if child is not None:
                stack.append(("%s%s." % (prefix, name), child))
    return found


def _as(tensor, like):
    """What loading makes of it: of the live one's type."""
    if tensor.dtype == like.dtype or not tensors.is_plain(tensor):
        return tensor
    with tensors.quietly():
        return tensor.detach().to(like.dtype)


def _state_loaded(of, number):
    """Of what is no module: an optimizer, a scheduler, a gradient scaler."""

    def tell(token, result, args, kwargs):
        state = args[1] if len(args) > 1 else kwargs.get("state_dict")
        held = state.get("state", state) if isinstance(state, dict) else {}
        kinds.say("load", (type(args[0]).__name__, len(held), None, None, [], where.here(), None, of, number(args[0])))

    return tell


def install(torch):
    kinds.at_begin(_filled.clear)
    original = torch.serialization.save
    ours = hooks.around(torch.serialization, "save", _saving, family="save")
    if ours is not None and torch.save is original:
        torch.save = ours
    hooks.around(torch.nn.Module, "load_state_dict", _given, _loaded, family="load")
    optimizer = _state_loaded("optimizer", lambda held: steps.meet(held).number)
    hooks.around(sys.modules["torch.optim.optimizer"].Optimizer, "load_state_dict", end=optimizer, family="load")
    scheduler = _state_loaded("scheduler", lambda held: api.number_of("scheduler", held))
    schedulers = sys.modules["torch.optim.lr_scheduler"]
    for kind in list(vars(schedulers).values()):
        if isinstance(kind, type) and "load_state_dict" in vars(kind) and kind.__module__ == schedulers.__name__:
            hooks.around(kind, "load_state_dict", end=scheduler, family="load")
    scaler = getattr(getattr(torch, "amp", None), "GradScaler", None) or torch.cuda.amp.GradScaler
    hooks.around(scaler, "load_state_dict", end=_state_loaded("scaler", lambda held: api.number_of("scaler", held)), family="load")
    importing.when_imported("safetensors.torch", _on_safetensors)
    importing.when_imported("torch.distributed.checkpoint", _on_distributed)


def _on_distributed(module):
    """Each rank tells of its own shards."""
    saver = sys.modules.get(module.__name__ + ".state_dict_saver", module)
    for name in ("save", "async_save", "save_state_dict"):
        original = getattr(saver, name, None)
        ours = hooks.around(saver, name, _saving, family="save")
        if ours is not None and getattr(module, name, None) is original:
            setattr(module, name, ours)
    loader = sys.modules.get(module.__name__ + ".state_dict_loader", module)
    for name in ("load", "load_state_dict"):
        original = getattr(loader, name, None)
        ours = hooks.around(loader, name, _fills, family=_IN_PLACE)
        if ours is not None and getattr(module, name, None) is original:
            setattr(module, name, ours)


def _on_safetensors(module):
    for name in ("save_file", "save", "save_model"):
        hooks.around(module, name, _saving, family="save")
