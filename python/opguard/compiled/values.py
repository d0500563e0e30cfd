"""What an operator reads and gives while dynamo traces: its tensors by name, the rest as text. So
src/runtime/recorder/values.cc and src/runtime/probe/operation.cc make them when it runs.

    f(x, [y, 3], n=4)      tensors x, y as arg0, arg1[0]; texts "arg1=[T, 3]", "n=4" before they are quoted
    x.view(s, -1)          s a symbolic size: text "arg0=#0#", and s among the numbers, put in when the graph runs

Counterexample: what dynamo cannot tell is "<Type>", as a type's name; it is never evaluated for this."""

import dataclasses
import re

import torch
from torch._dynamo import variables
from torch._dynamo.variables.user_defined import UserDefinedObjectVariable

from opguard import _rt, operators
from opguard.compiled import variables as dv

_MAX_DEPTH = 4  # as in src/runtime/recorder/values.cc
_MAX_MODULE_DEPTH = 16
_UNSAFE = re.compile(r"[^A-Za-z0-9_.:=\[\]() <>{}'+*/-]")


def quoted(text):
    """Percent-encoded but for harmless characters: ";", "|", "," and "%" separate the parts of a site's text."""
    return _UNSAFE.sub(lambda found: "".join(f"%{byte:02x}" for byte in found[0].encode()), text)


class Values:
    """Inputs or outputs of one operator: its tensors by name, the rest as text (Collector in src/runtime/recorder/values.h)."""

    def __init__(self, tx, kind):
        self.tx, self.kind = tx, kind
        self.names, self.tensors, self.numbers, self.texts = [], [], [], []

    def add(self, name, variable):
        variable = dv.real(variable)
        if dv.is_tensor(variable):
            self._tensor(name, variable)
        else:
            self.texts.append(quoted(name) + "=" + self._text(name, variable, 0))

    def _tensor(self, name, variable):
        """kind: what stands before each name, so that inputs and outputs are told apart."""
        self.names.append(self.kind + quoted(name))
        self.tensors.append(variable)

    def _text(self, name, variable, depth):
        """A value as text, "T" for a tensor in it. Deeper than _MAX_DEPTH a tensor is text as well, as where it
        runs."""
        variable = dv.real(variable)
        if dv.is_tensor(variable):
            if depth > _MAX_DEPTH:
                return quoted("<Tensor>")
            self._tensor(name, variable)
            return "T"
        if isinstance(variable, variables.SymNodeVariable):
            if dv.type_of(variable) is int:
                self.numbers.append(variable)
                return f"#{len(self.numbers) - 1}#"
            return quoted(f"<{getattr(dv.type_of(variable), '__name__', 'number')}>")
        known, value = dv.constant(variable)
        if known:
            return quoted(_rt.describe(value))
        if depth <= _MAX_DEPTH:
            found = self._container(name, variable, depth)
            if found is not None:
                return found
        if isinstance(variable, dv.classes("BaseUserFunctionVariable")):
            return quoted(f"<function {variable.get_name()}>")
        return quoted(f"<{getattr(dv.type_of(variable), '__name__', type(variable).__name__)}>")

    def _container(self, name, variable, depth):
        """Slices, lists, tuples, dicts, data classes; None for any other. A one-tuple is (x,)."""
        if isinstance(variable, variables.SliceVariable):
            start, stop, *step = variable.items
            texts = [self._part(name, label, part, depth) for label, part in (("start", start), ("stop", stop))]
            last = self._part(name, "step", step[0], depth) if step else ""
            return texts[0] + ":" + texts[1] + (":" + last if last else "")
        listed = dv.sequence(variable)
        if listed is not None:
            entries, fields = listed
            labels = [f".{f}" for f in fields] if fields else [f"[{i}]" for i in range(len(entries))]
            texts = [self._text(name + label, item, depth + 1) for label, item in zip(labels, entries)]
            if issubclass(dv.type_of(variable), tuple):
                return "(" + quoted(", ").join(texts) + (quoted(",") if len(texts) == 1 else "") + ")"
            return "[" + quoted(", ").join(texts) + "]"
        entries = dv.mapping(variable)
        if entries is not None:
            return self._entries(name, [(dv.real(getattr(k, "vt", k)), v) for k, v in entries.items()], depth)
        kind = dv.type_of(variable)
        if dataclasses.is_dataclass(kind) and isinstance(variable, UserDefinedObjectVariable):
            fields = [
                (variables.ConstantVariable.create(f.name), variable.var_getattr(self.tx, f.name))
                for f in dataclasses.fields(kind)
            ]
            return quoted(f"<{kind.__name__}>") + self._entries(name, fields, depth)
        return None

    def _part(self, name, label, variable, depth):
        variable = dv.real(variable)
        if dv.constant(variable) == (True, None):
            return ""
        return self._text(f"{name}.{label}", variable, depth + 1)

    def _entries(self, name, entries, depth):
        texts = []
        for key, value in entries:
            known, constant = dv.constant(key)
            label = constant if isinstance(constant, str) else _rt.describe(constant) if known else "?"
            texts.append(quoted(label + ": ") + self._text(f"{name}.{label}", value, depth + 1))
        return "{" + quoted(", ").join(texts) + "}"

    def add_module(self, variable, module, prefix="", depth=0):
        """Parameters and buffers of torch's own modules are inputs: param:weight. Deeper ones by path,
        param:0.weight."""
        for table in (module._parameters, module._buffers):
            for name, value in table.items():
                if value is not None:
                    found = dv.real(dv.attribute(self.tx, variable, name))
                    if dv.is_tensor(found):
                        self._tensor(f"param:{prefix}{name}", found)
        if depth < _MAX_MODULE_DEPTH:
            for name, child in module._modules.items():
                if child is not None:
                    self.add_module(dv.attribute(self.tx, variable, name), child, f"{prefix}{name}.", depth + 1)


def _module_of(tx, variable):
    """The torch.nn.Module that a variable is, or None."""
    value = dv.field(variable, "value")
    if value is None and hasattr(variable, "module_key"):
        value = tx.output.get_submodule(variable.module_key)
    return value if isinstance(value, torch.nn.Module) else None


def in_package(name, package):
    return isinstance(name, str) and (name == package or name.startswith(package + "."))


def _is_torch_module(module):
    return in_package(getattr(type(module).forward, "__module__", None), "torch")


def _function_of(callee):
    for name in ("fn", "value"):
        function = dv.field(callee, name)
        if callable(function) and not isinstance(function, torch.nn.Module):
            return function
    return None


def _receiver(callee):
    """The variable of a bound method's receiver; None for anything else, and where it is a module or a class."""
    if isinstance(callee, variables.GetAttrVariable):
        owner = dv.real(callee.obj)
        if isinstance(owner, (dv.classes("PythonModuleVariable"), dv.classes("UserDefinedClassVariable"))):
            return None
        return owner
    if isinstance(callee, variables.UserMethodVariable):
        owner = dv.real(callee.obj)
        return None if isinstance(owner, dv.classes("UserDefinedClassVariable")) else owner
    return None


def _name_of(callee):
    """The method's or function's name, "" where dynamo does not know."""
    if isinstance(callee, variables.GetAttrVariable):
        return callee.name
    return getattr(_function_of(callee), "__name__", "")


def call_inputs(tx, values, callee, args, kwargs):
    """-> flags of the event. As Operation::call_inputs of src/runtime/probe/call_inputs.cc."""
    callee, flags = dv.real(callee), ""
    function = _function_of(callee)
    if in_package(getattr(function, "__module__", None), "torch.distributed"):
        flags += "c"
    if operators.leaves_garbage(_name_of(callee)):
        flags += "u"
    receiver, module = _receiver(callee), _module_of(tx, callee)
    if receiver is not None:
        values.add("self", receiver)
        module = _module_of(tx, receiver)
        inside = _name_of(callee) == "forward" and in_package(getattr(function, "__module__", None), "torch")
        if module is not None and inside:
            values.add_module(receiver, module)
    elif module is not None and _is_torch_module(module):
        values.add_module(callee, module)
    for i, argument in enumerate(args):
        values.add(f"arg{i}", argument)
    for name, argument in sorted(kwargs, key=lambda item: item[0]):
        values.add(name, argument)
    return flags
