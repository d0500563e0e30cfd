"""What dynamo does at a probe: `og(id, x)` becomes an Operand (compiled_operand.py), whose inputs and outputs are told
to the graph by one call before and one after the operator.

All of this runs while dynamo traces, on its variables; nothing of it is there when the compiled code runs. Where a
graph is broken between the probe and its operator, the probe proper takes the operand's place."""

import contextlib
import dataclasses
import itertools
import re

import torch
from torch._dynamo import variables
from torch._dynamo.exc import ObservedException
from torch._dynamo.guards import GuardBuilder
from torch._dynamo.source import AttrSource
from torch._dynamo.variables.base import VariableTracker
from torch._dynamo.variables.builder import VariableBuilder
from torch._dynamo.variables.builtin import BuiltinVariable
from torch._dynamo.variables.ctx_manager import ContextWrappingVariable
from torch._dynamo.variables.iter import IteratorVariable
from torch._dynamo.variables.object_protocol import generic_richcompare  # noqa: F401  (what came with it is needed)
from torch._dynamo.variables.user_defined import UserDefinedObjectVariable

from opguard import _rt, compiled_operand, compiled_ops, unprobed

_MAX_DEPTH = 4  # as in src/runtime/values.cc
_MAX_MODULE_DEPTH = 16
_UNSAFE = re.compile(r"[^A-Za-z0-9_.:=\[\]() <>{}'+*/-]")
_UNINITIALISED = {
    "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted",
    "_empty_affine_quantized",
}  # fmt: skip
_tokens = itertools.count(1)
_flags = {}  # id of a function of _rt -> the flag of its probes' events


def _quoted(text):
    return _UNSAFE.sub(lambda found: "".join(f"%{byte:02x}" for byte in found[0].encode()), text)


def _real(variable):
    realize = getattr(variable, "realize", None)
    return realize() if realize is not None else variable


def _class(name):
    return getattr(variables, name, ())


def _is_tensor(variable):
    return isinstance(variable, variables.TensorVariable) and not isinstance(
        variable, _class("UnspecializedPythonVariable")
    )


def _constant(variable):
    """-> (True, value) where dynamo knows it."""
    try:
        if variable.is_python_constant():
            return True, variable.as_python_constant()
    except Exception:
        pass
    return False, None


def _type_of(variable):
    try:
        return variable.python_type()
    except Exception:
        return None


def _sequence(variable):
    """-> (items, field names or None), or None."""
    base = getattr(variable, "_base_vt", None) or getattr(variable, "_tuple_vt", None)
    kind = _type_of(variable)
    if isinstance(kind, type) and issubclass(kind, (list, tuple)):
        listed = getattr(variable, "items", None) or getattr(base, "items", None) or []
        if isinstance(listed, list):
            fields = getattr(kind, "_fields", None) if issubclass(kind, tuple) else None
            return listed, fields if fields and len(fields) == len(listed) else None
    return None


def _mapping(variable):
    kind = _type_of(variable)
    if not (isinstance(kind, type) and issubclass(kind, dict)):
        return None
    entries = getattr(variable, "items", None)
    if not isinstance(entries, dict):
        entries = getattr(getattr(variable, "_base_vt", None), "items", None)
    return entries if isinstance(entries, dict) else None


class _Values:
    """Inputs or outputs of one operator: its tensors by name, the rest as text (Collector in src/runtime/values.h)."""

    def __init__(self, tx, kind):
        self.tx, self.kind = tx, kind
        self.names, self.tensors, self.numbers, self.texts = [], [], [], []

    def add(self, name, variable):
        variable = _real(variable)
        if _is_tensor(variable):
            self._tensor(name, variable)
        else:
            self.texts.append(_quoted(name) + "=" + self._text(name, variable, 0))

    def _tensor(self, name, variable):
        self.names.append(self.kind + _quoted(name))
        self.tensors.append(variable)

    def _text(self, name, variable, depth):
        variable = _real(variable)
        if _is_tensor(variable):
            if depth > _MAX_DEPTH:
                return _quoted("<Tensor>")
            self._tensor(name, variable)
            return "T"
        if isinstance(variable, variables.SymNodeVariable):
            if _type_of(variable) is int:
                self.numbers.append(variable)
                return f"#{len(self.numbers) - 1}#"
            return _quoted(f"<{getattr(_type_of(variable), '__name__', 'number')}>")
        known, value = _constant(variable)
        if known:
            return _quoted(_rt.describe(value))
        if depth <= _MAX_DEPTH:
            found = self._container(name, variable, depth)
            if found is not None:
                return found
        if isinstance(variable, _class("BaseUserFunctionVariable")):
            return _quoted(f"<function {variable.get_name()}>")
        return _quoted(f"<{getattr(_type_of(variable), '__name__', type(variable).__name__)}>")

    def _container(self, name, variable, depth):
        if isinstance(variable, variables.SliceVariable):
            start, stop, *step = variable.items
            texts = [self._part(name, label, part, depth) for label, part in (("start", start), ("stop", stop))]
            last = self._part(name, "step", step[0], depth) if step else ""
            return texts[0] + ":" + texts[1] + (":" + last if last else "")
        listed = _sequence(variable)
        if listed is not None:
            entries, fields = listed
            labels = [f".{f}" for f in fields] if fields else [f"[{i}]" for i in range(len(entries))]
            texts = [self._text(name + label, item, depth + 1) for label, item in zip(labels, entries)]
            if issubclass(_type_of(variable), tuple):
                return "(" + _quoted(", ").join(texts) + (_quoted(",") if len(texts) == 1 else "") + ")"
            return "[" + _quoted(", ").join(texts) + "]"
        entries = _mapping(variable)
        if entries is not None:
            return self._entries(name, [(_real(getattr(k, "vt", k)), v) for k, v in entries.items()], depth)
        kind = _type_of(variable)
        if dataclasses.is_dataclass(kind) and isinstance(variable, UserDefinedObjectVariable):
            fields = [
                (variables.ConstantVariable.create(f.name), variable.var_getattr(self.tx, f.name))
                for f in dataclasses.fields(kind)
            ]
            return _quoted(f"<{kind.__name__}>") + self._entries(name, fields, depth)
        return None

    def _part(self, name, label, variable, depth):
        variable = _real(variable)
        if _constant(variable) == (True, None):
            return ""
        return self._text(f"{name}.{label}", variable, depth + 1)

    def _entries(self, name, entries, depth):
        texts = []
        for key, value in entries:
            known, constant = _constant(key)
            label = constant if isinstance(constant, str) else _rt.describe(constant) if known else "?"
            texts.append(_quoted(label + ": ") + self._text(f"{name}.{label}", value, depth + 1))
        return "{" + _quoted(", ").join(texts) + "}"

    def add_module(self, variable, module, prefix="", depth=0):
        for table in (module._parameters, module._buffers):
            for name, value in table.items():
                if value is not None:
                    found = _real(_attribute(self.tx, variable, name))
                    if _is_tensor(found):
                        self._tensor(f"param:{prefix}{name}", found)
        if depth < _MAX_MODULE_DEPTH:
            for name, child in module._modules.items():
                if child is not None:
                    self.add_module(_attribute(self.tx, variable, name), child, f"{prefix}{name}.", depth + 1)


def _attribute(tx, variable, name):
    return VariableTracker.build(tx, getattr).call_function(
        tx, [_real(variable), variables.ConstantVariable.create(name)], {}
    )


def _module_of(tx, variable):
    """The torch.nn.Module that a variable is, or None."""
    value = getattr(variable, "value", None)
    if value is None and hasattr(variable, "module_key"):
        value = tx.output.get_submodule(variable.module_key)
    return value if isinstance(value, torch.nn.Module) else None


def _in_package(name, package):
    return isinstance(name, str) and (name == package or name.startswith(package + "."))


def _is_torch_module(module):
    return _in_package(getattr(type(module).forward, "__module__", None), "torch")


def _function_of(callee):
    for name in ("fn", "value"):
        function = getattr(callee, name, None)
        if callable(function) and not isinstance(function, torch.nn.Module):
            return function
    return None


def _receiver(callee):
    """The variable of a bound method's receiver; None for anything else, and where it is a module or a class."""
    if isinstance(callee, variables.GetAttrVariable):
        owner = _real(callee.obj)
        if isinstance(owner, (_class("PythonModuleVariable"), _class("UserDefinedClassVariable"))):
            return None
        return owner
    if isinstance(callee, variables.UserMethodVariable):
        owner = _real(callee.obj)
        return None if isinstance(owner, _class("UserDefinedClassVariable")) else owner
    return None


def _name_of(callee):
    if isinstance(callee, variables.GetAttrVariable):
        return callee.name
    return getattr(_function_of(callee), "__name__", "")


def _call_inputs(tx, values, callee, args, kwargs):
    """-> flags of the event. As Operation::call_inputs of src/runtime/operation.cc."""
    callee, flags = _real(callee), ""
    function = _function_of(callee)
    if _in_package(getattr(function, "__module__", None), "torch.distributed"):
        flags += "c"
    if _name_of(callee) in _UNINITIALISED:
        flags += "u"
    receiver, module = _receiver(callee), _module_of(tx, callee)
    if receiver is not None:
        values.add("self", receiver)
        module = _module_of(tx, receiver)
        inside = _name_of(callee) == "forward" and _in_package(getattr(function, "__module__", None), "torch")
        if module is not None and inside:
            values.add_module(receiver, module)
    elif module is not None and _is_torch_module(module):
        values.add_module(callee, module)
    for i, argument in enumerate(args):
        values.add(f"arg{i}", argument)
    for name, argument in kwargs:
        values.add(name, argument)
    return flags


def _inline(tx, function, arguments):
    return tx.inline_user_function_return(VariableTracker.build(tx, function), arguments, {})


def _list(entries):
    return variables.ListVariable(list(entries), mutation_type=_new_value())


def _new_value():
    from torch._dynamo.variables.base import ValueMutationNew

    return ValueMutationNew()


def _text(value):
    return variables.ConstantVariable.create(value)


def _open_sites(tx):
    return tx.output.__dict__.setdefault("_opguard_open", {})


def _enter(tx, boundary, callee, names, values, flags=""):
    """-> token of the site"""
    inputs = _Values(tx, compiled_ops.IN)
    if callee is not None:
        entries = values[1]
        flags += _call_inputs(tx, inputs, callee, values[0], entries)
    else:
        for name, value in zip(names, values):
            if name == "base" and _constant(_real(value)) == (True, None):
                continue
            inputs.add(name, value)
    token = next(_tokens)
    site = compiled_ops.site(token, _quoted(boundary), flags, inputs.names, inputs.texts)
    _open_sites(tx)[token] = boundary, flags, inputs
    _inline(tx, compiled_operand.emit_enter, [_list(inputs.tensors), _list(inputs.numbers), _text(site)])
    return token


def _leave(tx, token, result, flags=""):
    """result: None where success is the only answer."""
    boundary, entered_flags, inputs = _open_sites(tx).pop(token)
    flags += entered_flags
    outputs = _Values(tx, compiled_ops.OUT)
    if result is not None:
        result = _real(result)
        listed = _sequence(result)
        for i, item in enumerate(listed[0] if listed is not None else [result]):
            outputs.add(f"out{i}", item)
    site = compiled_ops.site(token, _quoted(boundary), flags, outputs.names, outputs.texts)
    names = ",".join(name[1:] for name in inputs.names)
    _inline(
        tx,
        compiled_operand.emit_leave,
        [_list(outputs.tensors), _list(inputs.tensors), _text(names), _list(outputs.numbers), _text(site)],
    )


@contextlib.contextmanager
def _told_if_raised(tx):
    """The program's own error, which it may handle inside the graph."""
    before = list(_open_sites(tx))
    try:
        yield
    except ObservedException:
        for token in reversed([token for token in _open_sites(tx) if token not in before]):
            _leave(tx, token, None, compiled_ops.RAISED)
        raise


_OPERAND = compiled_operand.Operand.__new__(compiled_operand.Operand)
_PLACE = compiled_operand.Place.__new__(compiled_operand.Place)


class _StandIn(UserDefinedObjectVariable):
    """An instance whose fields are variables, made and used up inside the trace."""

    _nonvar_fields = {"boundary", "silent", "maker", "flags", *UserDefinedObjectVariable._nonvar_fields}
    _own = ()

    def __init__(self, value, boundary, real, base=None, silent=False, maker=_rt.probe, **kwargs):
        super().__init__(value, **kwargs)
        self.boundary, self.real, self.silent, self.maker = boundary, real, silent, maker
        self.flags = _flags.get(id(maker), "")
        self.base = base if base is not None else _text(None)

    def var_getattr(self, tx, name):
        if name == "boundary":
            return _text(self.boundary)
        if name in ("real", "base"):
            return getattr(self, name)
        if (name.startswith("__") and name.endswith("__")) or name in self._own:
            return super().var_getattr(tx, name)
        return self.apply(tx, self._reader, [_text(name)])

    def apply(self, tx, function, args):
        with _told_if_raised(tx):
            return _inline(tx, function, [self, *args])

    def call_function(self, tx, args, kwargs):
        with _told_if_raised(tx):
            return super().call_function(tx, args, kwargs)

    def call_method(self, tx, name, args, kwargs):
        if name == "__setattr__":
            return self.apply(tx, self._writer, args)
        with _told_if_raised(tx):
            return super().call_method(tx, name, args, kwargs)

    def method_setattr_standard(self, tx, name, value, *args, **kwargs):
        return self.apply(tx, self._writer, [name, value])

    def reconstruct(self, codegen):
        codegen.add_push_null(lambda: codegen.load_import_from("opguard._rt", self.maker.__name__))
        codegen(_text(self.boundary))
        codegen(self.real)
        codegen.call_function(2, False)


class OperandVariable(_StandIn):
    _own = frozenset(vars(compiled_operand.Operand))
    _reader, _writer = staticmethod(compiled_operand.read_attribute), staticmethod(compiled_operand.write_attribute)


class PlaceVariable(_StandIn):
    _own = frozenset(vars(compiled_operand.Place))
    _reader, _writer = staticmethod(compiled_operand.read_place), staticmethod(compiled_operand.write_place)


class ItemsVariable(IteratorVariable):
    _nonvar_fields = {"boundary", "own_items", "flags", *IteratorVariable._nonvar_fields}

    def __init__(self, operand, iterator, whole, own_items, **kwargs):
        super().__init__(**kwargs)
        self.boundary, self.flags = operand.boundary, operand.flags + compiled_ops.NEW_HISTORY
        self.iterator, self.whole, self.own_items = iterator, whole, own_items

    def python_type(self):
        return compiled_operand.Items

    def tp_iternext_impl(self, tx):
        return self._next(tx, "tp_iternext_impl")

    def next_variable(self, tx):
        return self._next(tx, "next_variable")

    def _next(self, tx, method):
        item = getattr(self.iterator, method)(tx)
        names, values = [], []
        if self.whole is not None:
            names, values = ["self"], [self.whole]
        if self.own_items:
            names, values = [*names, "arg0"], [*values, item]
        _leave(tx, _enter(tx, self.boundary, None, names, values, self.flags), item)
        return item

    def reconstruct(self, codegen):
        codegen.add_push_null(lambda: codegen.append_output(codegen.create_load_python_module(iter)))
        codegen.add_push_null(lambda: codegen.load_import_from("opguard._rt", "probe"))
        codegen(_text(self.boundary))
        codegen(self.iterator)
        codegen.call_function(2, False)
        codegen.call_function(1, False)


class _Word(VariableTracker):
    """A function of ours that dynamo meets and that we answer."""

    def __init__(self, value, **kwargs):
        super().__init__(**kwargs)
        self.value = value

    _nonvar_fields = {"value", *VariableTracker._nonvar_fields}

    def as_python_constant(self):
        return self.value

    def python_type(self):
        return type(self.value)

    def reconstruct(self, codegen):
        module = getattr(self.value, "__module__", None) or "opguard._rt"
        codegen.load_import_from(module, self.value.__name__)


class ProbeWord(_Word):
    def call_function(self, tx, args, kwargs):
        known, boundary = _constant(_real(args[0]))
        operand = _real(args[1])
        if not known or kwargs or _passes(operand):
            unprobed.count("with" if known else "id")
            return args[1]
        silent = _is_silent(tx, boundary)
        if not silent:
            _locate(tx, boundary)
        if _is_tensor(operand) and _is_condition(tx):
            # Dynamo breaks the graph at a tensor's truth, and must see the tensor to do it as ever.
            if not silent:
                _leave(tx, _enter(tx, boundary, None, ["self"], [operand]), None)
            return args[1]
        return OperandVariable(_OPERAND, boundary, operand, silent=silent, maker=self.value)


class PlaceWord(_Word):
    def call_function(self, tx, args, kwargs):
        boundary = _constant(_real(args[0]))[1]
        silent = _is_silent(tx, boundary)
        if not silent:
            _locate(tx, boundary)
        return PlaceVariable(_PLACE, boundary, _real(args[1]), silent=silent, maker=self.value)


class AgainWord(_Word):
    def call_function(self, tx, args, kwargs):
        place, real, base = (_real(arg) for arg in args)
        if not _is_tensor(base):
            base = None
        return OperandVariable(_OPERAND, place.boundary, real, base=base, silent=place.silent)


class EnterWord(_Word):
    def call_function(self, tx, args, kwargs):
        # The stand-in is `self` of the function we are called from.
        place = _real(tx.symbolic_locals["self"])
        if place.silent:
            return _text(None)
        second = _real(args[1])
        if _constant(second) == (True, "tensors"):
            if not _is_tensor(place.real):
                return _text(None)
            second = _text(None)
        if _constant(second) == (True, None):
            names = [_constant(_real(name))[1] for name in _sequence(_real(args[2]))[0]]
            return _text(_enter(tx, place.boundary, None, names, _sequence(_real(args[3]))[0], place.flags))
        positional = _sequence(_real(args[2]))[0]
        named = [(_constant(_real(getattr(k, "vt", k)))[1], v) for k, v in _mapping(_real(args[3])).items()]
        return _text(_enter(tx, place.boundary, second, None, (positional, named), place.flags))


class LeaveWord(_Word):
    def call_function(self, tx, args, kwargs):
        token = _constant(_real(args[0]))[1]
        if token is not None:
            _leave(tx, token, args[1] if len(args) > 1 else None)
        return _text(None)


class ItemsWord(_Word):
    def call_function(self, tx, args, kwargs):
        operand = _real(args[0])
        iterator = VariableTracker.build(tx, iter).call_function(tx, [operand.real], {})
        if operand.silent:
            return iterator
        kind = _type_of(operand.real)
        own = isinstance(kind, type) and issubclass(kind, (list, tuple, dict))
        whole = operand.real if _is_tensor(operand.real) else None
        return ItemsVariable(operand, iterator, whole, own, mutation_type=_new_value())


def _passes(operand):
    """Is it used in a form that has no stand-in: a context manager?"""
    if isinstance(operand, ContextWrappingVariable):
        return True
    kind = _type_of(operand)
    return isinstance(operand, UserDefinedObjectVariable) and hasattr(kind, "__enter__") and hasattr(kind, "__exit__")


def _is_condition(tx):
    """Is what `og` returns to its caller asked for its truth next?"""
    caller = getattr(tx, "parent", None)
    following = getattr(caller, "next_instruction", None)
    name = getattr(following, "opname", "")
    return ("JUMP" in name and "_IF_" in name) or name in ("TO_BOOL", "UNARY_NOT")


def _is_batched():
    """Under vmap an operator would want a batching rule."""
    return any(level.key() == torch._C._functorch.TransformType.Vmap for level in _levels())


def _levels():
    return getattr(torch._C._functorch, "get_interpreter_stack", lambda: None)() or []


def _is_silent(tx, boundary):
    if not _rt.recording():
        return True
    # The body of a higher-order operator (a branch of cond, a score_mod) may change nothing outside of it.
    if getattr(tx.output.current_tracer, "parent", None) is not None:
        unprobed.count("higher-order")
        return True
    if _is_batched():
        unprobed.count("vmap")
        return True
    return False


def _locate(tx, boundary):
    while tx is not None and _in_package(tx.f_globals.get("__name__"), "opguard"):
        tx = getattr(tx, "parent", None)
    if tx is not None:
        code = tx.f_code
        _rt.locate(boundary, code.co_filename, tx.lineno or 0, getattr(code, "co_qualname", code.co_name))


def _answer_operators():
    original = BuiltinVariable._make_handler

    def make_handler(function, types, has_kwargs):
        method = compiled_operand.OPERATORS.get(function)
        if method is not None and types and issubclass(types[0], OperandVariable):
            return lambda tx, args, kwargs: args[0].apply(tx, method, args[1:])
        return original(function, types, has_kwargs)

    BuiltinVariable._make_handler = staticmethod(make_handler)


def _dispatch(kind):
    def dispatch(builder, value):
        builder.install_guards(GuardBuilder.ID_MATCH)
        return kind(value, source=builder.source)

    return dispatch


def install(probes):
    """probes: functions of _rt that make a probe of (id, operand) -> the flag of their events."""
    _flags.update((id(function), flag) for function, flag in probes.items())
    words = {
        compiled_operand.enter: EnterWord,
        compiled_operand.leave: LeaveWord,
        compiled_operand.items: ItemsWord,
        compiled_operand.again: AgainWord,
        **dict.fromkeys(probes, ProbeWord),
        _rt.aug: PlaceWord,
    }
    _answer_operators()
    table = VariableBuilder._id_dispatch()
    for function, kind in words.items():
        table[id(function)] = _dispatch(kind)
