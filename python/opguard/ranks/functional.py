"""Functional collectives (torch.distributed._functional_collectives): the operators below them are wrapped. A result is
read when the program has waited for its tensor (collectives.py tells of all the others).

    y = funcol.all_reduce(x, "sum", group)      "<funcol.all_reduce", in x, a flight under y's storage
    y * 2                                       torch waits for y: wait_tensor, the flight lands with out y

The operator's Python function is replaced in torch.ops, for the operator and each overload. Counterexample:
while a graph is traced nothing is sent, and nothing announced; a subclass's call comes again with its own tensors."""

import sys
import threading

from opguard import _rt, operators
from opguard.ranks.flights import channel_name, group_name, guarded, launch, tracing, world

_storages = {}  # of a result -> flights
_inside = threading.local()  # .operator: a functional collective's own call is running


class _Operator:
    """In place of the function in a torch.ops operator: what it does, its hash and its attributes are the same."""

    def __init__(self, name, original, around):
        self._name, self._original, self._around = name, original, around

    def __call__(self, *args, **kwargs):
        # Below autograd and dispatch modes written in Python the same call comes again.
        again = getattr(_inside, "operator", False)
        if again or not _rt.recording() or _symbolic(args):
            return self._original(*args, **kwargs)
        _inside.operator = True
        try:
            return self._around(self._name, self._original, args, kwargs)
        finally:
            _inside.operator = False

    def __hash__(self):
        return hash(self._original)

    def __eq__(self, other):
        return other is self or other is self._original

    def __getattr__(self, name):
        return getattr(self._original, name)


def _symbolic(args):
    """Nothing is sent: the call is being traced, or a subclass of Tensor will make it again with its own tensors."""
    torch = sys.modules["torch"]
    modes = getattr(torch._C, "_TorchDispatchModeKey", None)
    keys = [getattr(modes, name) for name in ("FAKE", "PROXY", "FUNCTIONAL") if hasattr(modes, name)]
    if tracing() or any(torch._C._get_dispatch_mode(key) is not None for key in keys):
        return True
    plain = torch.Tensor.__torch_dispatch__
    for arg in args:
        for tensor in arg if isinstance(arg, (list, tuple)) else (arg,):
            if isinstance(tensor, torch.Tensor) and type(tensor).__torch_dispatch__ is not plain:
                return True
    return False


def _storage(tensor):
    """What a result is known by until it is waited for."""
    return tensor.untyped_storage()._cdata


@guarded
def _begin_functional(name, args, kwargs):
    """The group is the last argument that can be one: a name or a ProcessGroup. The others that are texts or numbers
    are told as scalars."""
    group = next((v for v in reversed((*args, *kwargs.values())) if isinstance(v, (str, world().ProcessGroup))), None)
    if isinstance(group, str):
        group = world()._resolve_process_group(group)
    tensors = args[0] if args else kwargs.get("input", kwargs.get("inputs", ()))
    operand = (("input", tensors, 0),)
    scalars = ", ".join(str(a) for a in args[1:] if isinstance(a, (str, int)) and a is not args[-1])
    if name in ("isend", "irecv"):
        peer, tag = args[1], args[2] if len(args) > 3 else 0
        channel = channel_name(group, name == "isend", peer, tag)
        return launch("<funcol." + name, channel, *((operand, ()) if name == "isend" else ((), operand)), scalars)
    return launch("<funcol." + name.rstrip("_"), group_name(group), operand, (), scalars)


@guarded
def _give_result(flight, result, name):
    """The outputs, and where they are waited for. shard_dim_alltoall lands at once."""
    if flight is None:
        return
    torch = sys.modules["torch"]
    results = [t for t in (result if isinstance(result, (list, tuple)) else [result]) if isinstance(t, torch.Tensor)]
    flight.give((("out", results[0] if len(results) == 1 else results, 0),) if name != "isend" else ())
    if not results or name == "shard_dim_alltoall":
        flight.land(False)
    for tensor in results if name != "shard_dim_alltoall" else ():
        _storages.setdefault(_storage(tensor), []).append(flight)


def _around_collective(name, original, args, kwargs):
    flight = _begin_functional(name, args, kwargs)
    try:
        result = original(*args, **kwargs)
    except BaseException:
        if flight is not None:
            flight.cancel()
        raise
    _give_result(flight, result, name)
    return result


@guarded
def _waited(tensor):
    for flight in _storages.pop(_storage(tensor), ()):
        # Of several results the last one to be waited for.
        if not any(flight in flights for flights in _storages.values()):
            flight.land(False)


def _around_wait(name, original, args, kwargs):
    """wait_tensor. It is called for tensors of no collective too, so the table is looked into first."""
    result = original(*args, **kwargs)
    if _storages and args:
        _waited(args[0])
    return result


@guarded
def _replace(namespace, name, around):
    """The operator and all its overloads. Each keeps its hash and attributes: torch's tables find them as before."""
    packet = getattr(namespace, name, None)
    if packet is None:
        return
    builtins = getattr(sys.modules["torch"].jit, "_builtins", None)
    for holder in (packet, *(getattr(packet, overload) for overload in packet.overloads())):
        if isinstance(holder._op, _Operator):
            continue
        wrapped = _Operator(name, holder._op, around)
        # TorchScript knows an operator by its function's address.
        known = builtins and builtins._find_builtin(holder._op)
        if known:
            builtins._register_builtin(wrapped, known)
        holder._op = wrapped


def pending():
    """Collectives whose result nobody has waited for."""
    return sum(map(len, _storages.values()))


def install(module):
    ops = sys.modules["torch"].ops
    if not _rt.recording() or world() is None:
        return
    for name in operators.with_value("communicates", "operator"):
        _replace(ops._c10d_functional, name, _around_collective)
    _replace(ops._dtensor, "shard_dim_alltoall", _around_collective)
    _replace(ops._c10d_functional, "wait_tensor", _around_wait)
