"""Collectives: every call of torch.distributed is announced to the recording (src/runtime/entries/collective.h) with
its group's name and its number in it. Its outputs are read when the program itself has waited for them.

    dist.all_reduce(g)                       "<dist.all_reduce ...>", group "0-3", number 7, in and out: tensor
    dist.broadcast(x, src=0) on rank 1       no input: only the root gives something
    dist.reduce(x, dst=0) on rank 1          the output counts as uninitialised: a reduction leaves anything there
    dist.send(x, dst=1, tag=5) on rank 0     channel "0-3:0>1/5", numbered by itself: others do not see it

Hooked are the methods of ProcessGroup, Work and Future that Python reaches and the operators under the functional
collectives, not the functions of torch.distributed: torch.compile tells those by identity. What only C++ sees, the
buckets of DistributedDataParallel, passes through a process group of our own (ddp.py). Nothing is added to what
is sent, and nothing is waited for. The cost: a few frames up the stack for each call."""

import functools
import sys
import weakref

from opguard import _rt
from opguard.load import importing
from opguard.ranks import ddp, flights, fsdp, functional
from opguard.ranks.flights import channel_name, group_name, guarded, launch, next_number, tracing, track
from opguard.record import hook_numbers

C10D = "torch.distributed.distributed_c10d"
# Frames between a collective's method and the function of torch.distributed that the program called.
_INNER = (C10D, "torch.distributed.c10d_logger", "contextlib", __name__, "opguard.ranks.flights", "opguard.ranks.functional")
_OBJECTS = {
    "all_gather_object", "broadcast_object_list", "gather_object", "scatter_object_list", "send_object_list",
    "recv_object_list",
}  # fmt: skip
_UNSPECIFIED = 4  # record.h, kUninitialised: a reduction leaves anything where its result does not go

_futures = weakref.WeakKeyDictionary()  # future -> id(work)


def install():
    importing.when_imported("torch", _on_torch)


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
    """A call's argument by position, or by the beginning of its name: the methods do not agree on the rest of it."""
    found = args[index] if len(args) > index else next((v for k, v in kwargs.items() if k.startswith(prefix)), ())
    while isinstance(found, (list, tuple)) and len(found) == 1:
        found = found[0]  # the one tensor of most calls, in the list that C++ wants
    return found


def _operation(args, kwargs):
    """"op=SUM"; "" for a call without a reduction. Of a class of options it is what they hold."""
    for value in (*args, *kwargs.values()):
        found = getattr(value, "reduceOp", value)
        if type(found).__name__ in ("ReduceOp", "RedOpType"):
            for name in ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM"):
                if found == getattr(flights.world().ReduceOp, name, None):  # in this order
                    return "op=" + name
    return ""


def _root(args, kwargs):
    """The rank that sends or gets all, in the group's own numbers: an option's rootRank, else the first integer after
    the tensors."""
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


# method of ProcessGroup -> (what torch.distributed calls it, what goes in and out).
# The first is a default: which function the program called, its frame says (_caller).
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
# Messages: they have a channel of two ranks, not the group.
_SENDS = {"send": "send", "recv": "recv", "recv_anysource": "recv"}


@guarded
def _begin(method, group, args, kwargs):
    """The flight of a collective, None where nothing is recorded. fully_shard's are announced by fsdp.py before they
    come here. Those get this call's number, and no event of their own."""
    part = fsdp.take()
    if part is not None:
        part.number(next_number(group_name(group)))
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
        flight = launch("<dist." + api, group_name(group), inputs, outputs, scalars, structure, False)
        return None if flight is None else flights.FromAnySource(flight, group, tag)
    channel = channel_name(group, method == "send", peer, tag)
    flight = launch("<dist." + api, channel, inputs, outputs, scalars, structure)
    if flights.observers:
        return flights.observers["message"](flight, api, group, method == "send", peer, tag, operand, flights.last_number(channel))
    return flight


def _wrap_method(owner, method, begin):
    """owner.method announces its calls. A call that raises is cancelled; its number stays used."""
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
    """Collectives between the two end together: the one work that comes back at the end stands for all."""
    start, end = getattr(owner, "_start_coalescing", None), getattr(owner, "_end_coalescing", None)
    if start is None or end is None or hasattr(start, "_opguard"):
        return

    @functools.wraps(start)
    def _start_coalescing(self, *args, **kwargs):
        result = start(self, *args, **kwargs)
        if _rt.recording() and not tracing():
            flights.coalesce(self)
        return result

    @functools.wraps(end)
    def _end_coalescing(self, *args, **kwargs):
        work = end(self, *args, **kwargs)
        for flight in flights.coalesced(self):
            track(flight, work)
        return work

    _start_coalescing._opguard, _end_coalescing._opguard = start, end
    owner._start_coalescing, owner._end_coalescing = _start_coalescing, _end_coalescing


# --- how the program learns that one has ended ---


def _wrap_wait(owner, method, key, only_if_true=False):
    """owner.method lands what it has waited for; key(self): the id of the work. only_if_true: it asks, and may be told
    no."""
    original = getattr(owner, method, None)
    if original is None or hasattr(original, "_opguard"):
        return

    @functools.wraps(original)
    def wait(self, *args, **kwargs):
        result = original(self, *args, **kwargs)
        if (flights.waiting() or _futures) and (not only_if_true or result is True) and not tracing():
            flights.landed(key(self))
        return result

    wait._opguard = original
    setattr(owner, method, wait)


def _wrap_get_future(work):
    """A work may be waited for by its future: of such a future it is known whose it is, as long as it lives."""
    original = work.get_future

    @functools.wraps(original)
    def get_future(self, *args, **kwargs):
        future = original(self, *args, **kwargs)
        if flights.tracked(self) and not tracing():
            _futures[future] = id(self)
        return future

    get_future._opguard = original
    work.get_future = get_future


def _wrap_then(future, method):
    """A callback of a future runs once the work has ended, so what it waits for may be read as it begins."""
    original = getattr(future, method)

    @functools.wraps(original)
    def then(self, callback):
        key = _futures.get(self)
        if key is None or tracing():
            return original(self, callback)

        @functools.wraps(callback)
        def landed(value):
            flights.landed(key)
            return callback(value)

        return original(self, landed)

    then._opguard = original
    setattr(future, method, then)


def _wrap_default_group(module):
    """Once there is a default process group, the log says this process's rank: a program that starts its ranks by itself may
    have told nobody before."""
    original = getattr(module, "_update_default_pg", None)
    if original is None or hasattr(original, "_opguard"):
        return

    @functools.wraps(original)
    def _update_default_pg(*args, **kwargs):
        result = original(*args, **kwargs)
        _tell_place()
        return result

    _update_default_pg._opguard = original
    module._update_default_pg = _update_default_pg


@guarded
def _tell_place():
    found = flights.place()
    if found and _rt.recording():
        _rt.tell(found)


def _step_ended(optimizer, args, kwargs):
    """Flights that nobody in Python waits for: those that have ended are looked for once a step."""
    if flights.waiting():
        flights.sweep()


def _on_torch(torch):
    # Only now: much of it is imported while torch itself still is.
    importing.when_imported(C10D, _on_c10d)
    importing.when_imported("torch.distributed._functional_collectives", functional.install)
    importing.when_imported("torch.optim.optimizer", _on_optimizer)


def _on_c10d(module):
    group, work = getattr(module, "ProcessGroup", None), getattr(module, "Work", None)
    if not _rt.recording() or group is None or work is None:
        return
    torch = sys.modules["torch"]
    flights.set_world(module)
    for method in _METHODS:
        _wrap_method(group, method, _begin)
    for method in _SENDS:
        _wrap_method(group, method, _begin_message)
    _wrap_coalescing(group)
    _wrap_default_group(module)
    _tell_place()  # it may be there already
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
        with hook_numbers.apart():
            optim.register_optimizer_step_post_hook(_step_ended)
