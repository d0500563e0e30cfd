"""Collectives: every call of torch.distributed is announced to the recording (src/runtime/collective.h) with its
group's name and its number in it, and its outputs are read when the program itself has waited for them.

Hooked are the methods of ProcessGroup, Work and Future that Python reaches and the operators under the functional
collectives, not the functions of torch.distributed: torch.compile tells those by identity. What only C++ sees, the
buckets of DistributedDataParallel, passes through a process group of our own (ddp.py). Nothing is added to what
is sent, and nothing is waited for."""

import functools
import sys
import threading
import weakref

from opguard import _rt, importing

C10D = "torch.distributed.distributed_c10d"
# Frames between a collective's method and the function of torch.distributed that the program called.
_INNER = (C10D, "torch.distributed.c10d_logger", "contextlib", __name__)
_OBJECTS = {
    "all_gather_object", "broadcast_object_list", "gather_object", "scatter_object_list", "send_object_list",
    "recv_object_list",
}  # fmt: skip
_UNSPECIFIED = 4  # record.h, kUninitialised: a reduction leaves anything where its result does not go
_MANY = 256  # works nobody has waited for, before the ended ones are looked for

_world = None  # torch.distributed.distributed_c10d
_names = weakref.WeakKeyDictionary()  # process group -> its name
_made = {}  # members -> groups made of them
_count = {}  # group's name -> collectives launched
_works = {}  # id(work) -> (work, flights), until somebody waits for it
_futures = weakref.WeakKeyDictionary()  # future -> id(work)
_storages = {}  # of a functional collective's result -> flights
_coalescing = {}  # id(process group) -> flights
_inside = threading.local()  # .operator: a functional collective's own call is running
_unknown = 0  # collectives whose end nobody in Python waited for


def install():
    importing.when_imported("torch", _on_torch)


def settings():
    return {"collectives_not_waited": str(_unknown)} if _unknown else {}


def guarded(function):
    """What we do beside the program's call must not fail it."""

    @functools.wraps(function)
    def safe(*args):
        try:
            return function(*args)
        except Exception as error:
            from opguard import startup

            if not getattr(guarded, "told", False):
                guarded.told = True
                startup.complain("warning: a collective is not recorded: %s: %s" % (type(error).__name__, error))
            return None

    return safe


def tracing():
    compiler = getattr(sys.modules["torch"], "compiler", None)
    return bool(compiler and getattr(compiler, "is_compiling", bool)())


# --- names and numbers ---


def ranges(ranks):
    """[0, 1, 2, 5] -> "0-2,5"."""
    runs = []
    for rank in sorted(ranks):
        if runs and runs[-1][1] == rank - 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    return ",".join("%d-%d" % tuple(run) if run[0] < run[1] else str(run[0]) for run in runs)


def group_name(group):
    """The same on every member, since groups of the same ranks are made in the same order on all of them."""
    name = _names.get(group)
    if name is None:
        # All that exist, in order of creation: first use may differ between ranks.
        for known, members in list(getattr(_world, "_world", _world).pg_group_ranks.items()):
            if isinstance(known, _world.ProcessGroup) and known not in _names:  # not a group without this rank
                members = ranges(members)
                number = _made[members] = _made.get(members, -1) + 1
                _names[known] = members + ("#%d" % number if number else "")
        name = _names.get(group)
    if name is None:
        name = _names[group] = str(getattr(group, "group_name", "") or "?")
    return name


def _next(group):
    _count[group] = _count.get(group, 0) + 1
    return _count[group]


def launch(boundary, group, inputs=(), outputs=(), scalars="", structure=False, numbered=True):
    """The flight of a collective that is called next; None where nothing is recorded. Names and values of
    inputs and outputs: ((name, tensors, flags), ...)."""
    number = _next(group) if numbered else 0
    return _rt.collective(boundary, group, number, tuple(inputs), tuple(outputs), scalars, structure)


def _caller(default):
    """Name of torch.distributed's function that the program called."""
    frame, name = sys._getframe(2), default
    while frame is not None and frame.f_globals.get("__name__") in _INNER:
        function = frame.f_code.co_name
        if frame.f_globals["__name__"] == C10D and not function.startswith(("_", "<")):
            name = function
        frame = frame.f_back
    return name


# --- the methods of a process group ---


def _operand(args, kwargs, index, prefix):
    found = args[index] if len(args) > index else next((v for k, v in kwargs.items() if k.startswith(prefix)), ())
    while isinstance(found, (list, tuple)) and len(found) == 1:
        found = found[0]  # the one tensor of most calls, in the list that C++ wants
    return found


def _operation(args, kwargs):
    for value in (*args, *kwargs.values()):
        found = getattr(value, "reduceOp", value)
        if type(found).__name__ in ("ReduceOp", "RedOpType"):
            for name in ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM"):
                if found == getattr(_world.ReduceOp, name, None):  # in this order
                    return "op=" + name
    return ""


def _root(args, kwargs):
    for value in (*args, *kwargs.values()):
        if hasattr(value, "rootRank"):
            return value.rootRank
    return next((v for v in (*args[1:], *kwargs.values()) if type(v) is int), 0)


def _in_place(group, args, kwargs):
    tensors = _operand(args, kwargs, 0, "tensor")
    return (("tensor", tensors, 0),), (("tensor", tensors, 0),), _operation(args, kwargs)


def _broadcast(group, args, kwargs):
    tensors, root = _operand(args, kwargs, 0, "tensor"), _root(args, kwargs)
    given = (("tensor", tensors, 0),) if group.rank() == root else ()
    return given, (("tensor", tensors, 0),), "root=%d" % root


def _reduce(group, args, kwargs):
    tensors, root = _operand(args, kwargs, 0, "tensor"), _root(args, kwargs)
    left = (("tensor", tensors, 0 if group.rank() == root else _UNSPECIFIED),)
    return (("tensor", tensors, 0),), left, ", ".join(filter(None, (_operation(args, kwargs), "root=%d" % root)))


def _two_sided(group, args, kwargs):
    outputs, inputs = _operand(args, kwargs, 0, "output"), _operand(args, kwargs, 1, "input")
    return (("input", inputs, 0),), (("output", outputs, 0),), _operation(args, kwargs)


def _nothing(group, args, kwargs):
    return (), (), ""


_METHODS = {
    "allreduce": ("all_reduce", _in_place),
    "allreduce_coalesced": ("all_reduce_coalesced", _in_place),
    "broadcast": ("broadcast", _broadcast),
    "reduce": ("reduce", _reduce),
    "allgather": ("all_gather", _two_sided),
    "_allgather_base": ("all_gather_into_tensor", _two_sided),
    "all_gather_single": ("all_gather_into_tensor", _two_sided),
    "allgather_coalesced": ("all_gather_coalesced", _two_sided),
    "allgather_into_tensor_coalesced": ("all_gather_into_tensor_coalesced", _two_sided),
    "all_gather_single_coalesced": ("all_gather_into_tensor_coalesced", _two_sided),
    "gather": ("gather", _two_sided),
    "scatter": ("scatter", _two_sided),
    "reduce_scatter": ("reduce_scatter", _two_sided),
    "_reduce_scatter_base": ("reduce_scatter_tensor", _two_sided),
    "reduce_scatter_single": ("reduce_scatter_tensor", _two_sided),
    "reduce_scatter_tensor_coalesced": ("reduce_scatter_tensor_coalesced", _two_sided),
    "reduce_scatter_single_coalesced": ("reduce_scatter_tensor_coalesced", _two_sided),
    "alltoall_base": ("all_to_all_single", _two_sided),
    "all_to_all_single": ("all_to_all_single", _two_sided),
    "alltoall": ("all_to_all", _two_sided),
    "barrier": ("barrier", _nothing),
    "monitored_barrier": ("monitored_barrier", _nothing),
}
_SENDS = {"send": "send", "recv": "recv", "recv_anysource": "recv"}


@guarded
def _begin(method, group, args, kwargs):
    part = fsdp.take()
    if part is not None:
        part.number(_next(group_name(group)))
        return None
    default, describe = _METHODS[method]
    api = _caller(default)
    inputs, outputs, scalars = describe(group, args, kwargs)
    return launch("<dist." + api, group_name(group), inputs, outputs, scalars, api in _OBJECTS)


@guarded
def _begin_message(method, group, args, kwargs):
    """A message between two ranks has a number of its own: the others do not see it."""
    api = _caller(_SENDS[method])
    tensors = _operand(args, kwargs, 0, "tensor")
    numbers = [v for v in (*args[1:], *kwargs.values()) if type(v) is int]
    peer, tag = (numbers + [0, 0])[:2] if method != "recv_anysource" else (None, (numbers + [0])[0])
    operand = (("tensor", tensors, 0),)
    inputs, outputs = (operand, ()) if method == "send" else ((), operand)
    scalars, structure = "peer=%s, tag=%d" % (peer, tag), api in _OBJECTS
    if peer is None:
        return launch("<dist." + api, group_name(group), inputs, outputs, scalars, structure, False)
    return launch("<dist." + api, _channel(group, method == "send", peer, tag), inputs, outputs, scalars, structure)


def _channel(group, sending, peer, tag):
    ends = (group.rank(), peer) if sending else (peer, group.rank())
    return "%s:%d>%d%s" % (group_name(group), *ends, "/%d" % tag if tag else "")


@guarded
def track(flight, work, group=None):
    """work: what the launch returned; None where it had ended by then."""
    if flight is None:
        return
    together = _coalescing.get(id(group))
    if together is not None:
        together.append(flight)
    elif work is None or not hasattr(work, "wait"):
        flight.land(False)
    else:
        if len(_works) >= _MANY:
            sweep()
        _works.setdefault(id(work), (work, []))[1].append(flight)


def _wrap_method(owner, method, begin):
    original = getattr(owner, method, None)
    if original is None or hasattr(original, "_opguard"):
        return

    @functools.wraps(original)
    def call(self, *args, **kwargs):
        if not _rt.recording() or tracing():
            return original(self, *args, **kwargs)
        flight = begin(method, self, args, kwargs)
        try:
            work = original(self, *args, **kwargs)
        except BaseException:
            if flight is not None:
                flight.cancel()
            raise
        track(flight, work, self)
        return work

    call._opguard = original
    setattr(owner, method, call)


def _wrap_coalescing(owner):
    start, end = getattr(owner, "_start_coalescing", None), getattr(owner, "_end_coalescing", None)
    if start is None or end is None or hasattr(start, "_opguard"):
        return

    @functools.wraps(start)
    def _start_coalescing(self, *args, **kwargs):
        result = start(self, *args, **kwargs)
        if _rt.recording() and not tracing():
            _coalescing[id(self)] = []
        return result

    @functools.wraps(end)
    def _end_coalescing(self, *args, **kwargs):
        work = end(self, *args, **kwargs)
        for flight in _coalescing.pop(id(self), ()):
            track(flight, work)
        return work

    _start_coalescing._opguard, _end_coalescing._opguard = start, end
    owner._start_coalescing, owner._end_coalescing = _start_coalescing, _end_coalescing


# --- how the program learns that one has ended ---


@guarded
def _landed(key):
    for flight in _works.pop(key, (None, ()))[1]:
        flight.land(False)


def _wrap_wait(owner, method, key, only_if_true=False):
    original = getattr(owner, method, None)
    if original is None or hasattr(original, "_opguard"):
        return

    @functools.wraps(original)
    def wait(self, *args, **kwargs):
        result = original(self, *args, **kwargs)
        if (_works or _futures) and (not only_if_true or result is True) and not tracing():
            _landed(key(self))
        return result

    wait._opguard = original
    setattr(owner, method, wait)


def _wrap_get_future(work):
    original = work.get_future

    @functools.wraps(original)
    def get_future(self, *args, **kwargs):
        future = original(self, *args, **kwargs)
        if id(self) in _works and not tracing():
            _futures[future] = id(self)
        return future

    get_future._opguard = original
    work.get_future = get_future


def _wrap_then(future, method):
    original = getattr(future, method)

    @functools.wraps(original)
    def then(self, callback):
        key = _futures.get(self)
        if key is None or tracing():
            return original(self, callback)

        @functools.wraps(callback)
        def landed(value):
            _landed(key)
            return callback(value)

        return original(self, landed)

    then._opguard = original
    setattr(future, method, then)


@guarded
def sweep():
    """At a step boundary: what nobody in Python has waited for, but has ended; never waits."""
    global _unknown
    for key, (work, _) in list(_works.items()):
        completed = getattr(type(work).is_completed, "_opguard", type(work).is_completed)
        if not completed(work):
            continue
        for flight in _works.pop(key, (None, ()))[1]:
            _unknown += 1
            flight.land(True)


def close():
    global _unknown
    sweep()
    _unknown += sum(len(flights) for _, flights in _works.values()) + sum(map(len, _storages.values()))


def _step_ended(optimizer, args, kwargs):
    if _works:
        sweep()


def _on_torch(torch):
    global ddp, fsdp
    from opguard import ddp, fsdp  # they use this module

    # Only now: much of it is imported while torch itself still is.
    importing.when_imported(C10D, _on_c10d)
    importing.when_imported("torch.distributed._functional_collectives", _on_functional)
    importing.when_imported("torch.optim.optimizer", _on_optimizer)


def _on_c10d(module):
    global _world
    group, work = getattr(module, "ProcessGroup", None), getattr(module, "Work", None)
    if not _rt.recording() or group is None or work is None:
        return
    torch, _world = sys.modules["torch"], module
    for method in _METHODS:
        _wrap_method(group, method, _begin)
    for method in _SENDS:
        _wrap_method(group, method, _begin_message)
    _wrap_coalescing(group)
    for method in ("wait", "synchronize"):
        _wrap_wait(work, method, id)
    _wrap_wait(work, "is_completed", id, only_if_true=True)
    if not hasattr(work.get_future, "_opguard"):
        _wrap_get_future(work)
        future = torch._C.Future
        for method in ("wait", "value"):
            _wrap_wait(future, method, _futures.get)
        _wrap_wait(future, "done", _futures.get, only_if_true=True)
        for method in ("then", "add_done_callback"):
            _wrap_then(future, method)
    _rt.collectives_watched()
    ddp.install(torch)
    fsdp.install()


def _on_optimizer(optim):
    if hasattr(optim, "register_optimizer_step_post_hook"):
        optim.register_optimizer_step_post_hook(_step_ended)


# --- functional collectives ---

# Arguments that are tensors, and whether the collective has ended when the operator returns.
_FUNCTIONAL = (
    "all_reduce", "all_reduce_", "all_reduce_coalesced", "all_reduce_coalesced_", "broadcast", "broadcast_",
    "all_gather_into_tensor", "all_gather_into_tensor_out", "all_gather_into_tensor_coalesced",
    "reduce_scatter_tensor", "reduce_scatter_tensor_out", "reduce_scatter_tensor_coalesced", "all_to_all_single",
    "isend", "irecv",
)  # fmt: skip


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
    return tensor.untyped_storage()._cdata


@guarded
def _begin_functional(name, args, kwargs):
    group = next((v for v in reversed((*args, *kwargs.values())) if isinstance(v, (str, _world.ProcessGroup))), None)
    if isinstance(group, str):
        group = _world._resolve_process_group(group)
    tensors = args[0] if args else kwargs.get("input", kwargs.get("inputs", ()))
    operand = (("input", tensors, 0),)
    scalars = ", ".join(str(a) for a in args[1:] if isinstance(a, (str, int)) and a is not args[-1])
    if name in ("isend", "irecv"):
        peer, tag = args[1], args[2] if len(args) > 3 else 0
        channel = _channel(group, name == "isend", peer, tag)
        return launch("<funcol." + name, channel, *((operand, ()) if name == "isend" else ((), operand)), scalars)
    return launch("<funcol." + name.rstrip("_"), group_name(group), operand, (), scalars)


@guarded
def _give_result(flight, result, name):
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
    result = original(*args, **kwargs)
    if _storages and args:
        _waited(args[0])
    return result


@guarded
def _replace(namespace, name, around):
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


def _on_functional(module):
    ops = sys.modules["torch"].ops
    if not _rt.recording() or _world is None:
        return
    for name in _FUNCTIONAL:
        _replace(ops._c10d_functional, name, _around_collective)
    _replace(ops._dtensor, "shard_dim_alltoall", _around_collective)
    _replace(ops._c10d_functional, "wait_tensor", _around_wait)
