"""The program's parameters: which module holds each, which optimizer, what shares its memory.

They are looked up at each optimizer step, and said again only where something has changed. The cost: one walk over the
modules of the roots; of more than _MANY modules only now and then."""

import sys
import weakref

from opguard.record import parameter_names
from opguard.training import calls, objects, sink
from opguard.training.forms import dtype_name

_MANY = 4000
_EVERY = 16  # steps between two walks over so many modules
_MOST_ATTRIBUTES = 8

_said = {}  # number -> what was said of it
_storages = {}  # address -> number
_constant = {}  # number -> were all elements equal as it was met
_last = {"walk": None, "step": -_EVERY}


class Held:
    """A tensor of a model."""

    __slots__ = ("tensor", "name", "attr", "module", "root", "buffer")

    def __init__(self, tensor, name, attr, module, root, buffer):
        self.tensor, self.name, self.attr, self.module, self.root, self.buffer = tensor, name, attr, module, root, buffer


def walk(step):
    """{id of a tensor: Held}, of the modules that were called as roots, the largest root first."""
    found = _last["walk"]
    if found is not None and len(found) > _MANY and step - _last["step"] < _EVERY:
        return {id(held.tensor()): held for held in found.values() if held.tensor() is not None}
    found, trees = {}, []
    for root in calls.roots():
        trees.append((root, parameter_names.modules_below(root)))
    trees.sort(key=lambda tree: -len(tree[1]))
    for root, modules in trees:
        number = calls.number_of(root)
        for path, module in modules:
            for table, is_buffer in ((module._parameters, False), (module._buffers, True)):
                for attr, tensor in list(table.items()):
                    if tensor is None or id(tensor) in found:
                        continue
                    held = Held(weakref.ref(tensor), path + attr, attr, calls.number_of(module), number, is_buffer)
                    found[id(tensor)] = held
    _last["walk"], _last["step"] = found, step
    return found


def local(tensor):
    """What of it lies on this rank: a DTensor's own part."""
    inner = getattr(tensor, "_local_tensor", None)
    return tensor if inner is None else inner


def is_readable(tensor):
    torch = sys.modules["torch"]
    return tensor.layout is torch.strided and tensor.device.type == "cpu"


def names(tensors):
    return parameter_names.names_of(tensors)


def storage_of(tensor):
    try:
        address = local(tensor).untyped_storage().data_ptr()
    except (AttributeError, RuntimeError, NotImplementedError):
        return id(tensor)
    return _storages.setdefault(address, len(_storages)) if address else id(tensor)


def _is_constant(tensor):
    tensor = local(tensor)
    if tensor.numel() == 0 or not is_readable(tensor) or tensor.is_quantized:
        return False
    first = tensor.reshape(-1)[0] if tensor.dim() else tensor
    return bool((tensor == first).all())


def _attributes(tensor):
    found = []
    for name, value in list(vars(tensor).items())[:64]:
        if not name.startswith("_") and type(value) in (bool, int, str) and len(found) < 2 * _MOST_ATTRIBUTES:
            found += [name, value]
    return tuple(found)


def _placement(tensor):
    placements = getattr(tensor, "placements", None)
    return ", ".join(str(p) for p in placements) if placements is not None else None


def tell(tensor, held, name, group, shared):
    """Its number. group: (optimizer, group, weight decay) or None; shared: names of what has the same memory."""
    number, _ = objects.parameters.of(tensor)
    if number not in _constant:
        _constant[number] = _is_constant(tensor.detach())
    optimizer, place, decay = group or (None, None, None)
    row = (
        number, held.root if held else None, name, held.module if held else None,
        "buffer" if held and held.buffer else "parameter", held.attr if held else "", dtype_name(tensor.dtype),
        tuple(tensor.shape), tensor.requires_grad, tensor.is_leaf, storage_of(tensor), tuple(shared), _constant[number],
        _attributes(tensor), optimizer, place, decay, _placement(tensor),
    )  # fmt: skip
    if _said.get(number) != row:
        _said[number] = row
        sink.see("parameter", row)
    return number
