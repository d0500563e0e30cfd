"""Names of parameters, as the program's modules have them: two runs may hold them in another order.

    DistributedDataParallel(Net())      "fc.weight": the wrapper's "module." is left out
    torch.compile(Net())                "fc.weight": so is "_orig_mod."
    a second Net with the same names    "Net.fc.weight", a third "Net#2.fc.weight"

Nothing is asked of a module's own code: its tables are read as they lie. The modules are found by one walk over the
interpreter's objects, again only when a parameter turns up that no walk has met.

Counterexample: named_parameters() is not called. A program may have its own, and what it does would be done once more.
The cost: a walk looks at every object that the garbage collector knows; a name is kept by the tensor's id after
that."""

import gc
import sys
import weakref

# What FSDP's clean_tensor_name takes out of a name.
_WRAPPERS = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")
_PARALLEL = ("DataParallel", "DistributedDataParallel", "FullyShardedDataParallel", "AveragedModel")
# Parameters that belong to no module and are made anew all the time must not cost a walk each.
_MOST_FRUITLESS = 8

_known = {}  # id -> (weak reference, name or None)
_taken = set()
_prefixes = {}  # id of a root -> (weak reference, prefix of its names)
_fruitless = 0
on_root = []  # called with each root a walk comes by, and the prefix of its names


def names_of(tensors):
    """One name a tensor: "layers.0.weight"; None for what belongs to no module. Never raises for a tensor."""
    global _fruitless
    found, walked = [], False
    for tensor in tensors:
        entry = _entry(tensor)
        if entry is None and not walked and _fruitless < _MOST_FRUITLESS and _is_parameter(tensor):
            walked, before = True, len(_taken)
            walk()
            _fruitless = 0 if len(_taken) > before else _fruitless + 1
            entry = _entry(tensor)
        if entry is None and _is_parameter(tensor):
            # Named late it would have two names in one log.
            entry = _known[id(tensor)] = (weakref.ref(tensor), None)
        found.append(entry[1] if entry else None)
    return found


def _entry(tensor):
    """What is known of a tensor. Its id may be a later tensor's: the weak reference tells."""
    entry = _known.get(id(tensor))
    return entry if entry is not None and entry[0]() is tensor else None


def _is_parameter(tensor):
    torch = sys.modules.get("torch")
    return torch is not None and issubclass(type(tensor), torch.nn.Parameter)


def walk():
    """Names the parameters and meets the buffers of every module that lives.

    A root is a module that is no other's child. Roots are named in the order in which they were made, as the collector
    has them. So of two like models the first has the plain names in each run."""
    module_type = sys.modules["torch"].nn.Module
    is_module = {}
    modules, children = [], set()
    # The oldest generation first: in the order in which they were made.
    for generation in (2, 1, 0):
        for candidate in gc.get_objects(generation):
            kind = type(candidate)
            if kind not in is_module:
                is_module[kind] = module_type in type.__dict__["__mro__"].__get__(kind)
            if is_module[kind]:
                modules.append(candidate)
    for module in modules:
        children.update(id(child) for _, child in table(module, "_modules") if child is not module)
    for root in modules:
        if id(root) not in children:
            _name(root)


def _name(root):
    """The names of a root's parameters. One that it met before keeps its prefix. Tensors that were made anew, as by
    fully_shard(), have the names of those in whose place they stand."""
    known = _prefixes.get(id(root))
    if known is not None and known[0]() is root:
        # Its parameters may be others now, as fully_shard() makes them; their names are those they had.
        for name, tensor in named_parameters(root):
            if _entry(tensor) is None:
                _known[id(tensor)] = (weakref.ref(tensor), known[1] + name)
                _taken.add(known[1] + name)
        for meet in on_root:
            meet(root, known[1])
        return
    fresh = [(name, tensor) for name, tensor in named_parameters(root) if _entry(tensor) is None]
    kind, prefix, number = type(root).__name__, "", 1
    # A second model, an average of the first: told apart by its class.
    while any(prefix + name in _taken for name, _ in fresh):
        prefix = kind + "." if number == 1 else "%s#%d." % (kind, number)
        number += 1
    for name, tensor in fresh:
        _known[id(tensor)] = (weakref.ref(tensor), prefix + name)
        _taken.add(prefix + name)
    _prefixes[id(root)] = (weakref.ref(root), prefix)
    for meet in on_root:
        meet(root, prefix)


def named_parameters(module):
    """[(name, parameter)] in the order of named_parameters(), each parameter once, wrappers' prefixes left out."""
    found, seen = [], set()
    _collect(module, "", found, seen, set())
    return found


def _collect(module, prefix, found, seen, visited):
    if id(module) in visited:
        return
    visited.add(id(module))
    for name, tensor in table(module, "_parameters"):
        if tensor is not None and id(tensor) not in seen:
            seen.add(id(tensor))
            found.append((prefix + name, tensor))
    for name, child in table(module, "_modules"):
        if child is not None:
            _collect(child, prefix if _wraps(module, name, prefix) else "%s%s." % (prefix, name), found, seen, visited)


def modules_below(root):
    """[("layers.0.", module)]: the root and all below it, each once, wrappers' prefixes left out."""
    found, seen, stack = [], set(), [("", root)]
    while stack:
        prefix, module = stack.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        found.append((prefix, module))
        for name, child in reversed(table(module, "_modules")):
            if child is not None:
                stack.append((prefix if _wraps(module, name, prefix) else "%s%s." % (prefix, name), child))
    return found


def is_lazy(tensor):
    """Made, but without a shape yet."""
    lazy = getattr(sys.modules["torch"].nn.parameter, "UninitializedTensorMixin", None)
    return lazy is not None and lazy in type.__dict__["__mro__"].__get__(type(tensor))


def _wraps(module, name, prefix):
    """Does this child's name say nothing? "module" does only directly below a root, or in a wrapper's class: a program
    may call a part of its own so."""
    return name in _WRAPPERS or (name == "module" and (not prefix or type(module).__name__ in _PARALLEL))


def table(module, name):
    """[(name, value)] of one of a module's own tables."""
    try:
        table = object.__getattribute__(module, "__dict__").get(name)
        return [(str(key), value) for key, value in table.items()] if table else []
    except Exception:  # half made, or of a kind of its own (a script module): it has no names for us
        return []
