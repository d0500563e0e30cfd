"""Modules and their calls: which ran, in what mode, on tensors of what form.

    Net()(x)    module 0 "" Net, module 1 "fc" Linear, form 0, call of module 1 by module 0, call of module 0

torch.nn.Module.__call__ is wrapped, and no hook registered: torch.compile traces the call below it (hooks.py). A root
is a module that no other holds. Modules are held weakly; one that is made anew all the time, such as a loss, takes the
number of its dead likes.

A form is the mode, the types and shapes of a call. Most calls repeat one, so a call's row is five values and the form's
row is said once. Counterexample: `model.forward(x)` is no call of the module, and has no row.

The cost: about 6 us a call, 20 us in evaluation, where the generators are compared."""

import functools
import sys
import threading
import weakref

from opguard import _rt
from opguard.record import parameter_names
from opguard.training import generators, hooks, kinds, tensors, where

_MOST_WALKS = 16
_MOST_FORMS = 50_000  # further ones are not recorded


class Entry:
    """A module that was met.

        said        its row is in the log as it is
        key         (type, without parameters) of a root that may give its number to another once it is dead
        thread      of a root, the one by which it was called last
        repeated    one list holds it more than once"""

    __slots__ = ("ref", "number", "root", "parent", "name", "type", "library", "said", "names", "key", "thread", "repeated")

    def __init__(self, module, number, key):
        self.number, self.key = number, key
        self.root, self.parent, self.name = self, None, ""
        self.type = type(module).__name__
        self.library = not where.is_users_class(type(module))
        self.said, self.names, self.repeated = False, None, False
        self.thread = None  # of a root: by which it was called last


_entries = {}  # id of a module -> Entry
_free = {}  # (type, without parameters) -> numbers of dead roots
_forms = {}
_argument_names = {}  # function -> names
_state = {"next": 0, "walks": 0}


class _Calls(threading.local):
    def __init__(self):
        self.stack = []


calls = _Calls()


def reset():
    _entries.clear()
    _forms.clear()
    _free.clear()
    _state.update(next=0, walks=0)


def innermost():
    """(the entry of the module that runs, the module) or (None, None)."""
    return calls.stack[-1][:2] if calls.stack else (None, None)


def entry_of(module):
    """A module's entry; an unknown one is met, which may walk through all that live."""
    found = _entries.get(id(module))
    if found is not None and found.ref() is module:
        return found
    return _meet(module)


def known(module):
    found = _entries.get(id(module))
    return found if found is not None and found.ref() is module else None


def _meet(module):
    """A module that holds others or parameters may have a root: all are walked through, _MOST_WALKS times a log. Else
    it is its own."""
    holds = bool(parameter_names.table(module, "_modules") or parameter_names.table(module, "_parameters"))
    if holds and walk():
        found = _entries.get(id(module))
        if found is not None and found.ref() is module:
            return found
    _meet_tree(module, "")
    return _entries[id(module)]


def walk():
    """Meets every module that lives, if it may cost a walk still."""
    if _state["walks"] >= _MOST_WALKS:
        return False
    _state["walks"] += 1
    parameter_names.walk()
    return True


def _new(module, alone):
    """alone: a root without children and parameters. Its number is free once it is dead: a loss that is made in each
    step would else take a number a step."""
    key = (type(module).__name__, alone)
    free = _free.get(key) if alone else None
    if free:
        entry = free.pop()
    else:
        entry = Entry(module, _state["next"], key if alone else None)
        _state["next"] += 1
    number = id(module)

    def died(reference):
        if _entries.get(number) is entry and entry.ref is reference:
            del _entries[number]
            if entry.key is not None and entry.root is entry:
                _free.setdefault(entry.key, []).append(entry)

    entry.ref = weakref.ref(module, died)
    _entries[number] = entry
    return entry


def _meet_tree(root, prefix):
    """Each module below `root` gets its root, path and parent. A module of another tree whose root lives stays there.

        trunk = Net(); a = Head(trunk); b = Head(trunk)      trunk belongs to the head that was met first

    prefix: of its parameters' names, which says nothing of its modules' paths."""
    if not kinds.watching():
        return
    below = parameter_names.modules_below(root)
    top, inside = None, {id(module) for _, module in below}
    parents, again = {}, set()
    for path, module in below:
        children = set()
        for _, child in parameter_names.table(module, "_modules"):
            if child is not None:
                parents.setdefault(id(child), module)
                (again if id(child) in children else children).add(id(child))
        entry = known(module)
        if entry is None:
            alone = len(below) == 1 and not parameter_names.table(root, "_parameters")
            entry = _new(module, alone)
            entry.root = top or entry
        elif top is not None and entry.root is not top:
            of = entry.root.ref()
            if of is not None and id(of) not in inside and id(module) not in (id(of),):
                continue  # it has a root that lives, and is no part of this one
            entry.root, entry.said = top, False
        if top is None:
            top = entry
            if entry.root is not entry:
                entry.root, entry.said = entry, False
        if id(module) in again and not entry.repeated:
            entry.repeated, entry.said = True, False
        name = path.rstrip(".")
        parent = parents.get(id(module))
        entry.parent = known(parent) if parent is not None else None
        if entry.name != name:
            entry.name, entry.said = name, False


def roots():
    """The living roots, in the order in which they were met."""
    found = [(e.number, e.ref()) for e in list(_entries.values()) if e.root is e]
    return [module for _, module in sorted(((n, m) for n, m in found if m is not None), key=lambda pair: pair[0])]


def number_of(module):
    """The number of a module, which is said first; None for none."""
    if module is None:
        return None
    entry = entry_of(module)
    _say(entry, module)
    return entry.number


def _say(entry, module):
    """The row of a module, its root's first. A changed entry is said again, under its number."""
    if entry.said:
        return
    entry.said = True
    if entry.root is not entry and not entry.root.said:
        root = entry.root.ref()
        if root is not None:
            _say(entry.root, root)
    first = getattr(module, "batch_first", None)
    kinds.say("module", (
        entry.number, entry.name, entry.type, entry.library, entry.root.number, len(parameter_names.named_parameters(module)),
        first if isinstance(first, bool) else None, entry.repeated,
        tensors.number(getattr(module, "momentum", None)) if getattr(module, "running_mean", None) is not None else None,
    ))  # fmt: skip


# --- a call ---


def _names_of(module):
    forward = getattr(type(module), "forward", None)
    names = _argument_names.get(forward)
    if names is None:
        code = getattr(forward, "__code__", None)
        names = tuple(code.co_varnames[1 : code.co_argcount]) if code is not None else ()
        if len(_argument_names) < 10_000:
            _argument_names[forward] = names
    return names


def autocast_of(torch):
    """The type that autocast gives here, as a text; None where it is off, "other" for a device that is not asked."""
    if not torch._C._is_any_autocast_enabled():
        return None
    for kind in ("cuda", "cpu"):
        if kind == "cuda":
            on, dtype = torch.is_autocast_enabled(), torch.get_autocast_gpu_dtype
        else:
            on, dtype = torch._C.is_autocast_cpu_enabled(), torch._C.get_autocast_cpu_dtype
        if on:
            return tensors.dtype_text(dtype())
    return "other"


def _enter(module, args, kwargs):
    """Before a call: what it is given, in which mode. None where nothing is to be told of it: a replica, a traced call.

    caller: the entry of the module that runs. A checkpoint computes its module again inside a backward pass, where none
    runs: its parent is the caller. Of a root all below it is looked at, of others their own parameters alone."""
    torch = sys.modules["torch"]
    stack = calls.stack
    if "_is_replica" in module.__dict__:
        return None  # of DataParallel: made anew for each call
    with torch._C.DisableTorchFunction():
        found = []
        names = _names_of(module)
        for i, value in enumerate(args):
            tensors.collect(value, names[i] if i < len(names) else "arg%d" % i, found)
        for name, value in kwargs.items():
            tensors.collect(value, name, found)
        for _, tensor in found:
            if type(tensor) is not torch.Tensor and tensors.is_traced(tensor):
                return None
        inputs = tuple([(n, t.dtype, tensors.shape_of(t), t.requires_grad) for n, t in found])
        entry = _entries.get(id(module))
        if entry is None or entry.ref() is not module:
            entry = _meet(module)
        if not entry.said:
            _say(entry, module)
        caller = stack[-1][0] if stack else None
        if caller is None and entry.parent is not None and torch._C._current_graph_task_id() != -1:
            caller = entry.parent  # a checkpoint, computed again
        training = bool(module.training)
        state = None if training else generators.state(torch)
        if caller is None:
            entry.thread = threading.get_ident()
            whole = _whole(module, parameter_names)
        else:
            whole = _own(module)
    call = (entry, module, caller, training, torch.is_grad_enabled(), autocast_of(torch), inputs, whole, state)
    stack.append(call)
    return call


def _own(module):
    """(dtype, does any want a gradient, None) of the module's own parameters."""
    dtype, wants = None, None
    for parameter in (object.__getattribute__(module, "__dict__").get("_parameters") or {}).values():
        if parameter is not None:
            dtype = dtype or parameter.dtype
            wants = bool(wants) or parameter.requires_grad
    return dtype, wants, None


def _whole(root, names):
    """The same of all below a root, and whether all are in one mode."""
    dtype, wants, uniform, mode = None, None, True, root.training
    seen, stack = {id(root)}, [root]
    while stack:
        table = object.__getattribute__(stack.pop(), "__dict__")
        uniform = uniform and table.get("training") == mode
        for parameter in (table.get("_parameters") or {}).values():
            if parameter is not None:
                dtype = dtype or parameter.dtype
                wants = bool(wants) or parameter.requires_grad
        for child in (table.get("_modules") or {}).values():
            if child is not None and id(child) not in seen:
                seen.add(id(child))
                stack.append(child)
    return dtype, wants, uniform


def _leave(call, result, place):
    """Behind a call: its form, which is said where it is new, and its row. Beyond _MOST_FORMS nothing is said of a call
    that has a further one: a program whose shapes change with each call would fill the log."""
    entry, module, caller, training, grad, autocast, inputs, (dtype, wants, uniform), state = call
    torch = sys.modules["torch"]
    with torch._C.DisableTorchFunction():
        drew = None if state is None else generators.has_drawn(torch, state)
        if type(result) is torch.Tensor:
            outputs = (("out", result.dtype, tensors.shape_of(result), result.requires_grad),)
        else:
            found = []
            tensors.collect(result, "out", found)
            outputs = tuple([(n, t.dtype, tensors.shape_of(t), t.requires_grad) for n, t in found])
    key = (training, grad, autocast, inputs, outputs, dtype, wants, uniform)
    form = _forms.get(key)
    if form is None:
        if len(_forms) >= _MOST_FORMS:
            return
        form = _forms[key] = len(_forms)
        text = tensors.dtype_text
        kinds.say("form", (
            form, training, grad, autocast, [(n, text(d), s, r) for n, d, s, r in inputs], [(n, text(d), s, r) for n, d, s, r in outputs],
            None if dtype is None else text(dtype), wants, uniform,
        ))  # fmt: skip
    kinds.say("call", (entry.number, form, None if caller is None else caller.number, drew, place))


_enter_guarded, _leave_guarded = hooks.guarded(_enter), hooks.guarded(_leave)


def _ended(call, result):
    """The call has returned; frames: this, hooks.unwatched or not, the wrapper, its caller."""
    stack = calls.stack
    while stack and stack[-1] is not call:
        stack.pop()
    if stack:
        stack.pop()
    _leave_guarded(call, result, where.here(3))


def install(torch):
    parameter_names.on_root.append(_meet_tree)
    kinds.at_begin(reset)
    original = torch.nn.Module.__call__
    watching, compiling, unwatched = kinds.watching, hooks.compiling, hooks.unwatched

    @functools.wraps(original)
    def __call__(self, *args, **kwargs):
        if not _rt.observing() or not watching() or compiling():
            return original(self, *args, **kwargs)
        call = unwatched(_enter_guarded, self, args, kwargs)
        if call is None:
            return original(self, *args, **kwargs)
        try:
            result = original(self, *args, **kwargs)
        except BaseException:
            stack = calls.stack
            while stack and stack.pop() is not call:
                pass
            raise
        unwatched(_ended, call, result)
        return result

    hooks.replace(torch.nn.Module, "__call__", original, __call__)
