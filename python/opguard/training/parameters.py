"""Parameters and buffers: what they are called, who holds them, in what memory they lie.

    parameter 3    "head.weight" of module 7, names ["emb.weight", "head.weight"], optimizer 0, group 1

They are looked through before each step of an optimizer; a row is said where something has changed. Tensors are held
weakly. Buffers of at most 1 MiB each are known, 512 of them.

Two tensors share memory where their storage has one address; `storage` numbers them. Counterexample: a parameter that
two modules hold is one tensor with two names, and has one row.

The cost: a microsecond a parameter and step."""

import sys
import weakref

from opguard.record import parameter_names
from opguard.training import kinds, modules, tensors

_MOST_BYTES, _MOST_BUFFERS, _MOST_ATTRIBUTES = 1 << 20, 512, 8


class Held:
    """A parameter or buffer that was met.

        seen        what its row said; another one is said where this differs
        value       its digest as it was read last
        gradient    what the last step used of it: (weak reference, version, digest, thread)
        stamp       tensors.stamp() then"""

    __slots__ = ("ref", "number", "kind", "seen", "said", "constant", "place", "value", "gradient", "gradient_norm", "holder", "stamp", "loaded", "as_loaded")

    def __init__(self, tensor, number, kind):
        self.number, self.kind = number, kind
        self.seen = self.said = self.place = self.value = self.gradient = self.holder = None
        self.gradient_norm = self.stamp = None
        self.loaded = False  # a load_state_dict has filled it
        self.as_loaded = None  # (its type, its digest) then, until a step has begun
        self.constant = None  # not asked so far: what is initialised only now is none

    def is_as_loaded(self, tensor):
        """At the first step behind a load: does it begin with what was loaded? None: no load, or of another type."""
        loaded, self.as_loaded = self.as_loaded, None
        return None if loaded is None or loaded[0] != tensor.dtype or None in (loaded[1], self.value) else loaded[1] == self.value


class Place:
    """Where a tensor was found: its root and holder, and all its names below the root. `prefix` stands before each
    name: it tells them from those of a root that was met earlier, as "Net." does."""

    __slots__ = ("root", "module", "attr", "names", "prefix")

    def __init__(self, root, module, attr, name, prefix):
        self.root, self.module, self.attr, self.names, self.prefix = root, module, attr, [name], prefix


_held = {}  # id of a tensor -> Held
_storages = {}  # address -> number
_state = {"next": 0}
optimizers = []  # of steps.py: (weak reference, number) of those that are known; those that step come first


def reset():
    _held.clear()
    _storages.clear()
    _state["next"] = 0


def meet(tensor, kind="parameter"):
    """The entry of a tensor. Its id may have been another's, which is dead: the weak reference tells."""
    entry = _held.get(id(tensor))
    if entry is not None and entry.ref() is tensor:
        return entry
    key = id(tensor)
    entry = Held(tensor, _state["next"], kind)
    _state["next"] += 1

    def died(reference):
        if _held.get(key) is entry:
            del _held[key]

    entry.ref = weakref.ref(tensor, died)
    _held[key] = entry
    return entry


def known(tensor):
    entry = _held.get(id(tensor))
    return entry if entry is not None and entry.ref() is tensor else None


def scan():
    """({id of a parameter: Place}, {id of a buffer: Place}, the tensors) of all living roots, in order."""
    found, buffers, order = {}, {}, []
    lazy = parameter_names.is_lazy
    for root in modules.roots():
        prefix = parameter_names._prefixes.get(id(root))
        prefix = prefix[1] if prefix is not None and prefix[0]() is root else ""
        for path, module in parameter_names.modules_below(root):
            table = object.__getattribute__(module, "__dict__")
            for attr, tensor in (table.get("_parameters") or {}).items():
                if tensor is None or lazy(tensor):
                    continue
                place = found.get(id(tensor))
                if place is None:
                    found[id(tensor)] = Place(root, module, str(attr), path + str(attr), prefix)
                    order.append(tensor)
                elif place.root is root:
                    place.names.append(path + str(attr))
            for attr, tensor in (table.get("_buffers") or {}).items():
                if tensor is None or id(tensor) in buffers or len(buffers) >= _MOST_BUFFERS or lazy(tensor):
                    continue
                if tensor.numel() * tensor.element_size() <= _MOST_BYTES:
                    buffers[id(tensor)] = Place(root, module, str(attr), path + str(attr), prefix)
                    order.append(tensor)
    return found, buffers, order


def holders():
    """{id of a parameter: (number of the optimizer, group's index, weight decay)}; those that have stepped first."""
    found = {}
    for reference, number in optimizers:
        optimizer = reference()
        for index, group in enumerate(getattr(optimizer, "param_groups", ())):
            decay = group.get("weight_decay")
            decay = decay if isinstance(decay, (int, float)) else None
            for tensor in group["params"]:
                found.setdefault(id(tensor), (number, index, decay))
    return found


def _address(tensor):
    """Of the memory that it shares with others; None where it has none that can be told."""
    if tensors.is_traced(tensor):
        return None  # torch warns
    try:
        return tensor.untyped_storage().data_ptr() or None
    except Exception:  # of a kind that has none
        return None


def _placement(tensor):
    """Of a DTensor "Shard(dim=0), Replicate()"; "FlatShard" for FSDP1's; None for a whole tensor."""
    placements = getattr(tensor, "placements", None) if hasattr(tensor, "_local_tensor") else None
    if placements is not None:
        return ", ".join(repr(p) for p in placements)
    return "FlatShard" if type(tensor).__name__ == "FlatParameter" else None


def _attributes(tensor):
    """[name, value, name, value, ...] of plain values that the program has put on the tensor: `p.sequence_parallel =
    True` is one."""
    found = []
    for name, value in list(getattr(tensor, "__dict__", {}).items())[:64]:
        if not name.startswith("_") and isinstance(value, (bool, int, float, str)) and len(found) < 2 * _MOST_ATTRIBUTES:
            found += [name, value if not isinstance(value, str) else value[:80]]
    return found


def say_changed(places, buffers, order, held_by):
    """Rows of what is new or changed. -> [(Held, tensor)] of all of them, parameters and buffers.

    Two passes: only when all addresses are known is it known who shares memory. `seen` is compared as a whole:
    another name, holder, type, address or optimizer is a reason for a row."""
    torch = sys.modules["torch"]
    listed = []
    with torch._C.DisableTorchFunction():
        shared, fresh = {}, []
        for tensor in order:
            place = places.get(id(tensor))
            is_buffer = place is None
            place = place or buffers[id(tensor)]
            entry = _held.get(id(tensor))
            if entry is None or entry.ref() is not tensor:
                entry = meet(tensor, "buffer" if is_buffer else "parameter")
            if entry.holder is None or entry.holder() is not place.module:
                entry.holder = weakref.ref(place.module)
            local = tensors.local(tensor)
            address = local.data_ptr() if type(local).__torch_dispatch__ is torch.Tensor.__torch_dispatch__ and local.layout is torch.strided else 0
            if address and not is_buffer:
                shared.setdefault(address, []).append((place, tensor))
            names = place.names if len(place.names) < 2 else tuple(place.names)
            seen = (
                id(place.root), id(place.module), place.attr, names if isinstance(names, tuple) else names[0], place.prefix, tensor.dtype,
                tensor.requires_grad, tensor.is_leaf, address, held_by.get(id(tensor)),
            )  # fmt: skip
            listed.append((entry, tensor))
            fresh.append((entry, tensor, place, seen))
        for entry, tensor, place, seen in fresh:
            together = shared.get(seen[8]) if seen[8] else None
            if together is not None and len(together) > 1:
                seen += (tuple((p.prefix, *p.names) for p, _ in together),)
            if entry.seen != seen:
                entry.seen = seen
                _say(entry, tensor, place, together, held_by.get(id(tensor)))
    return listed


def say_strangers(strangers, held_by):
    """Held by an optimizer, and of no module."""
    for tensor in strangers:
        entry = meet(tensor)
        seen = (tensor.dtype, tensor.requires_grad, tensor.is_leaf, held_by.get(id(tensor)))
        if entry.seen != seen:
            entry.seen = seen
            _say(entry, tensor, None, None, held_by.get(id(tensor)))


def _say(entry, tensor, place, together, held):
    if entry.constant is None:
        entry.constant = (False if entry.kind == "buffer" else tensors.is_constant(tensor)) or False
    storage = _address(tensors.local(tensor))
    number = entry.number if storage is None else _storages.setdefault(storage, len(_storages))
    names = []
    for other, _ in together or ([(place, tensor)] if place is not None else []):
        names += [other.prefix + name for name in other.names]
    optimizer, group, decay = held if held is not None else (None, None, None)
    kinds.say("parameter", (
        entry.number,
        None if place is None else modules.number_of(place.root),
        None if place is None else place.prefix + place.names[0],
        None if place is None else modules.number_of(place.module),
        entry.kind, "" if place is None else place.attr, tensors.dtype_text(tensor.dtype), tensors.shape_of(tensor), tensor.requires_grad,
        tensor.is_leaf, number, names, entry.constant, _attributes(tensor), optimizer, group, decay, _placement(tensor),
    ))  # fmt: skip
