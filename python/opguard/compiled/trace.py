"""What dynamo does at a probe: `og(id, x)` becomes an Operand (stand_ins.py). Its inputs and outputs are told
to the graph by one call before and one after the operator.

    dynamo meets          what it makes of it here
    _rt.probe             ProbeWord: called with a constant id it gives an OperandVariable
    a method of Operand   inlined, as any function of Python
    enter, leave          EnterWord, LeaveWord: sites.py puts the calls into the graph

All of this runs while dynamo traces, on its variables; nothing of it is there when the compiled code runs. Where a
graph is broken between the probe and its operator, the probe proper takes the operand's place.

The private classes that are met here are those of torch 2.13. Counterexample: on any other release nothing is put in
place."""

import functools

import torch
from torch._dynamo.guards import GuardBuilder, install_guard
from torch._dynamo.source import AttrSource
from torch._dynamo.variables.base import VariableTracker
from torch._dynamo.variables.builder import VariableBuilder
from torch._dynamo.variables.builtin import BuiltinVariable
from torch._dynamo.variables.ctx_manager import ContextWrappingVariable
from torch._dynamo.variables.iter import IteratorVariable
from torch._dynamo.variables.user_defined import UserDefinedObjectVariable

from opguard import _rt
from opguard.compiled import ops, stand_ins, unprobed
from opguard.compiled import variables as dv
from opguard.compiled.sites import enter, leave, told_if_raised
from opguard.compiled.values import in_package

UNKNOWN = "2.14.0.dev0"  # the first torch whose dynamo was never tried; compared as releases are
_flags = {}  # id of a function of _rt -> the flag of its probes' events


# By the mark of a probe (Mark in src/runtime/probe/operation.h).
_MAKERS = (_rt.probe, _rt.probe_writes, _rt.probe_step, _rt.probe_micro_batch)
_OPERAND = stand_ins.Operand.__new__(stand_ins.Operand)
_PLACE = stand_ins.Place.__new__(stand_ins.Place)


class _StandIn(UserDefinedObjectVariable):
    """An instance whose fields are variables, made and used up inside the trace."""

    _nonvar_fields = {"boundary", "silent", "maker", "flags", *UserDefinedObjectVariable._nonvar_fields}
    _own = ()
    # Also of one that the stack gave us: dynamo would look for its class's source to call a method of ours.
    source = property(lambda self: None, lambda self, value: None)
    fn = None  # 2.12 asks for it, else whether `value` is true

    def __init__(self, value, boundary, real, base=None, silent=False, maker=_rt.probe, **kwargs):
        super().__init__(value, **kwargs)
        self.boundary, self.real, self.silent, self.maker = boundary, real, silent, maker
        self.flags = _flags.get(id(maker), "")
        self.base = base if base is not None else dv.make_text(None)

    def var_getattr(self, tx, name):
        # Names that no operand has: `og(id, x).real` is the real part of x.
        if name == "_opguard_id":
            return dv.make_text(self.boundary)
        if name == "_opguard_real":
            return self.real
        if name == "_opguard_base":
            return self.base
        if (name.startswith("__") and name.endswith("__")) or name in self._own:
            return super().var_getattr(tx, name)
        return self.apply(tx, self._reader, [dv.make_text(name)])

    def apply(self, tx, function, args):
        """The function of stand_ins.py, inlined. What the program's own operator raises ends its site on the way."""
        with told_if_raised(tx):
            return dv.inline(tx, function, [self, *args])

    def call_function(self, tx, args, kwargs):
        with told_if_raised(tx):
            return super().call_function(tx, args, kwargs)

    def call_method(self, tx, name, args, kwargs):
        if name == "__setattr__":
            return self.apply(tx, self._writer, args)
        with told_if_raised(tx):
            return super().call_method(tx, name, args, kwargs)

    def method_setattr_standard(self, tx, name, value, *args, **kwargs):
        return self.apply(tx, self._writer, [name, value])

    def reconstruct(self, codegen):
        """Behind a graph break: code that makes the probe proper again, waiting(probe(id, x)), for the stack."""
        codegen.add_push_null(lambda: codegen.load_import_from("opguard._rt", "waiting"))
        codegen.add_push_null(lambda: codegen.load_import_from("opguard._rt", self.maker.__name__))
        codegen(dv.make_text(self.boundary))
        codegen(self.real)
        codegen.call_function(2, False)
        codegen.call_function(1, False)


class OperandVariable(_StandIn):
    """What og(id, x) gave. `_own`: names that are looked up on the class, and not on x."""

    _own = frozenset(vars(stand_ins.Operand))
    _reader, _writer = staticmethod(stand_ins.read_attribute), staticmethod(stand_ins.write_attribute)


class PlaceVariable(_StandIn):
    _own = frozenset(vars(stand_ins.Place))
    _reader, _writer = staticmethod(stand_ins.read_place), staticmethod(stand_ins.write_place)


class ItemsVariable(IteratorVariable):
    """iter(og(id, x)): each item is an event of the site. The last step, which raises StopIteration, has none.

        whole        x where it is a tensor, which each step reads
        own_items    x is a list, tuple or dict, whose items are read as they are"""

    _nonvar_fields = {"boundary", "own_items", "flags", *IteratorVariable._nonvar_fields}

    def __init__(self, operand, iterator, whole, own_items, **kwargs):
        super().__init__(**kwargs)
        self.boundary, self.flags = operand.boundary, operand.flags + ops.NEW_HISTORY
        self.iterator, self.whole, self.own_items = iterator, whole, own_items

    def python_type(self):
        return stand_ins.Items

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
        leave(tx, enter(tx, self.boundary, None, names, values, self.flags), item)
        return item

    def reconstruct(self, codegen):
        codegen.add_push_null(lambda: codegen.append_output(codegen.create_load_python_module(iter)))
        codegen.add_push_null(lambda: codegen.load_import_from("opguard._rt", "probe"))
        codegen(dv.make_text(self.boundary))
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
        known, boundary = dv.constant(dv.real(args[0]))
        operand = dv.real(args[1])
        if not known or kwargs or _passes(operand):
            unprobed.count("with" if known else "id")
            return args[1]
        silent = _is_silent(tx, boundary)
        if not silent:
            _locate(tx, boundary)
        if dv.is_tensor(operand) and _is_condition(tx):
            # Dynamo breaks the graph at a tensor's truth, and must see the tensor to do it as ever.
            if not silent:
                leave(tx, enter(tx, boundary, None, ["self"], [operand]), None)
            return args[1]
        return OperandVariable(_OPERAND, boundary, operand, silent=silent, maker=self.value)


class PlaceWord(_Word):
    def call_function(self, tx, args, kwargs):
        boundary = dv.constant(dv.real(args[0]))[1]
        silent = _is_silent(tx, boundary)
        if not silent:
            _locate(tx, boundary)
        return PlaceVariable(_PLACE, boundary, dv.real(args[1]), silent=silent, maker=self.value)


class AgainWord(_Word):
    """again(place, real, base): the operand behind og.aug(id, x)[key]. A base that is no tensor is not read."""

    def call_function(self, tx, args, kwargs):
        place, real, base = (dv.real(arg) for arg in args)
        if not dv.is_tensor(base):
            base = None
        return OperandVariable(_OPERAND, place.boundary, real, base=base, silent=place.silent)


class EnterWord(_Word):
    """enter(boundary, callee, names, values) of a stand-in. The callee "tensors" stands for: an event only where the
    operand is a tensor, and then none is called."""

    def call_function(self, tx, args, kwargs):
        # The stand-in is `self` of the function we are called from.
        place = dv.real(tx.symbolic_locals["self"])
        if place.silent:
            return dv.make_text(None)
        second = dv.real(args[1])
        if dv.constant(second) == (True, "tensors"):
            if not dv.is_tensor(place.real):
                return dv.make_text(None)
            second = dv.make_text(None)
        if dv.constant(second) == (True, None):
            names = [dv.constant(dv.real(name))[1] for name in dv.sequence(dv.real(args[2]))[0]]
            return dv.make_text(enter(tx, place.boundary, None, names, dv.sequence(dv.real(args[3]))[0], place.flags))
        positional = dv.sequence(dv.real(args[2]))[0]
        named = [(dv.constant(dv.real(getattr(k, "vt", k)))[1], v) for k, v in dv.mapping(dv.real(args[3])).items()]
        return dv.make_text(enter(tx, place.boundary, second, None, (positional, named), place.flags))


class LeaveWord(_Word):
    def call_function(self, tx, args, kwargs):
        token = dv.constant(dv.real(args[0]))[1]
        if token is not None:
            leave(tx, token, args[1] if len(args) > 1 else None)
        return dv.make_text(None)


class ItemsWord(_Word):
    def call_function(self, tx, args, kwargs):
        operand = dv.real(args[0])
        iterator = VariableTracker.build(tx, iter).call_function(tx, [operand.real], {})
        if operand.silent:
            return iterator
        kind = dv.type_of(operand.real)
        own = isinstance(kind, type) and issubclass(kind, (list, tuple, dict))
        whole = operand.real if dv.is_tensor(operand.real) else None
        return ItemsVariable(operand, iterator, whole, own, mutation_type=dv.new_value())


def _passes(operand):
    """Is it used in a form that has no stand-in: a context manager?"""
    if isinstance(operand, ContextWrappingVariable):
        return True
    kind = dv.type_of(operand)
    return isinstance(operand, UserDefinedObjectVariable) and hasattr(kind, "__enter__") and hasattr(kind, "__exit__")


def _is_condition(tx):
    """Is what `og` returns to its caller asked for its truth next?"""
    caller = getattr(tx, "parent", None)
    following = getattr(caller, "next_instruction", None)
    name = getattr(following, "opname", "")
    return ("JUMP" in name and "_IF_" in name) or name in ("TO_BOOL", "UNARY_NOT")


def _transforms():
    """Functions of torch.func that are at work, under which our operators would want rules of their own. They are a batching rule
    (`vmap`), one for what has no alias (`functionalize`)."""
    kinds = torch._C._functorch.TransformType
    levels = getattr(torch._C._functorch, "get_interpreter_stack", lambda: None)() or []
    found = {level.key() for level in levels}
    return [name for kind, name in ((kinds.Vmap, "vmap"), (kinds.Functionalize, "functionalize")) if kind in found]


def _is_silent(tx, boundary):
    """Is nothing to be recorded at this probe? Why not is counted, but for a process that does not record."""
    if not _rt.recording():
        return True
    # What is exported runs elsewhere, without us: it may hold no operator of ours.
    if tx.output.export or torch.compiler.is_exporting():
        unprobed.count("export")
        return True
    # The body of a higher-order operator (a branch of cond, a score_mod) may change nothing outside of it.
    if getattr(tx.output.current_tracer, "parent", None) is not None:
        unprobed.count("higher-order")
        return True
    for name in _transforms():
        unprobed.count(name)
        return True
    return False


def _locate(tx, boundary):
    """The boundary's place in the program: the first frame on the way out that is not the package's."""
    while tx is not None and in_package(tx.f_globals.get("__name__"), "opguard"):
        tx = getattr(tx, "parent", None)
    if tx is not None:
        code = tx.f_code
        _rt.locate(boundary, code.co_filename, tx.lineno or 0, getattr(code, "co_qualname", code.co_name))


def _operate(function, method, tx, args, kwargs):
    """A chain, `0 < og(id, x) < y`, has a stand-in on the right as well: it is the operand then, as in src/runtime/probe."""
    first, *others = args
    others = [dv.real(other) for other in others]
    others = [other.real if isinstance(other, OperandVariable) else other for other in others]
    if isinstance(first, OperandVariable):
        return first.apply(tx, method, others)
    return BuiltinVariable(function).call_function(tx, [first, *others], kwargs)


def _make_handler(original, function, types, has_kwargs):
    """dynamo asks which function handles an operator on variables of these types: ours where one is an operand."""
    method = stand_ins.OPERATORS.get(function)
    if method is not None and any(issubclass(kind, OperandVariable) for kind in types):
        return functools.partial(_operate, function, method)
    return original(function, types, has_kwargs)


def _dispatch(kind):
    def dispatch(builder, value):
        builder.install_guards(GuardBuilder.ID_MATCH)
        return kind(value, source=builder.source)

    return dispatch


def _wrap_waiting(builder, value):
    """A probe proper that a graph break left on the stack: the function that resumes behind the break is given it.

    `torch.sin(x) + y.item()`: the left operand waits while the graph ends at `.item()`."""
    real, silent, boundary, mark = _waiting(builder, value)
    return OperandVariable(_OPERAND, boundary, real, silent=silent, maker=_MAKERS[mark])


def _wrap_waiting_place(builder, value):
    real, silent, boundary, _ = _waiting(builder, value)
    return PlaceVariable(_PLACE, boundary, real, silent=silent, maker=_rt.aug)


def _wrap_waiting_iterator(builder, value):
    """What is left of its items goes unrecorded: dynamo has no variable for most iterators that come from outside."""
    unprobed.count("an iterator behind a graph break")
    return _waiting(builder, value)[0]


def _waiting(builder, value):
    """-> (variable of the operand, whether it is silent, boundary, mark), guarded: all but the operand are constants of the
    graph."""
    install_guard(builder.source.make_guard(GuardBuilder.TYPE_MATCH))
    fields = {}
    for name in ("_opguard_id", "_opguard_mark"):
        install_guard(AttrSource(builder.source, name).make_guard(GuardBuilder.EQUALS_MATCH))
        fields[name] = getattr(value, name)
    real = VariableTracker.build(builder.tx, value._opguard_real, AttrSource(builder.source, "_opguard_real"))
    boundary = fields["_opguard_id"]
    return dv.real(real), _is_silent(builder.tx, boundary), boundary, fields["_opguard_mark"]


def install(probes, any_torch):
    """probes: functions of _rt that make a probe of (id, operand) -> the flag of their events. any_torch: whatever release
    it is."""
    if not any_torch:
        # Of 2.13. What came with it is needed for all that is promised: on 2.12 Inductor's bits are not kept. And what comes
        # after it may hold other private classes under the names that are met here.
        from torch._dynamo.variables.object_protocol import generic_richcompare  # noqa: F401

        if torch.__version__ >= UNKNOWN:
            raise RuntimeError(f"torch {torch.__version__} is newer than all that are known")
    _flags.update((id(function), flag) for function, flag in probes.items())
    words = {
        stand_ins.enter: EnterWord,
        stand_ins.leave: LeaveWord,
        stand_ins.items: ItemsWord,
        stand_ins.again: AgainWord,
        **dict.fromkeys(probes, ProbeWord),
        _rt.aug: PlaceWord,
    }
    waiting = {_rt.Probe: _wrap_waiting, _rt.Place: _wrap_waiting_place, _rt.Items: _wrap_waiting_iterator}
    # All that may be missing is asked for before anything is changed.
    by_id = VariableBuilder._id_dispatch()
    by_type = [VariableBuilder._type_dispatch_impl(trace_numpy) for trace_numpy in (True, False)]  # dynamo's setting
    original = BuiltinVariable._make_handler
    by_id.update((id(function), _dispatch(kind)) for function, kind in words.items())
    for table in by_type:
        table.update(waiting)
    BuiltinVariable._make_handler = staticmethod(functools.partial(_make_handler, original))
