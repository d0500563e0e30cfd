"""fully_shard: an event for every group of parameters that is gathered or whose gradients are reduced. It is told by
the parameters themselves and not by the flat buffers they travel in.

    "<fsdp.all_gather layers.0>"      in param:layers.0.wq (this rank's shard), out param:layers.0.wq (the whole)
    "<fsdp.reduce layers.0>"          in grad:layers.0.wq (the whole, of this rank), out grad:layers.0.wq (the shard)

The collective inside comes to collectives.py, which asks take() whether it belongs to a group, and gives it its number.
A gather lands when the module waits for its parameters, a reduction as its function returns. Counterexample: FSDP1 is
not told here; its collectives are, as any others."""

import functools
import threading

from opguard import _rt
from opguard.load import importing
from opguard.ranks import flights

_MODEL_VALUE = 2  # record.h

_running = threading.local()  # .flight: of the group whose collective is called next in this thread
_gathering = {}  # id(list of parameters) -> flight


def install():
    importing.when_imported("torch.distributed.fsdp._fully_shard._fsdp_param_group", _on_groups)


def take():
    """The flight of the group that the collective called now belongs to, once. Per thread: a backward pass may have its
    own."""
    flight = getattr(_running, "flight", None)
    _running.flight = None
    return flight


def _on_groups(module):
    owner = getattr(module, "FSDPParamGroup", None)
    if not _rt.recording() or not hasattr(owner, "wait_for_unshard"):
        return
    for name, wrap in (("foreach_all_gather", _gather), ("foreach_reduce", _reduce)):
        if hasattr(module, name):
            setattr(module, name, wrap(getattr(module, name)))
    owner.wait_for_unshard = _wait(owner.wait_for_unshard)


def _names(parameters, prefix):
    """param:layers.0.wq.weight of each; its index where torch does not know the name."""
    return [prefix + (getattr(p, "_param_fqn", None) or str(i)) for i, p in enumerate(parameters)]


def _label(parameters):
    """"layers.0": what the names of the parameters have in common."""
    names = [(getattr(p, "_param_fqn", None) or "").split(".") for p in parameters]
    common = []
    for parts in zip(*names):
        if len(set(parts)) > 1:
            break
        common.append(parts[0])
    return ".".join(common) or "root"


@flights.guarded
def _launch(what, parameters, group, prefix, values):
    """The event's beginning, with the group's name and without a number: the collective inside takes that."""
    inputs = tuple(zip(_names(parameters, prefix), values, [0] * len(values)))
    return flights.launch(
        "<fsdp.%s %s>" % (what, _label(parameters)), flights.group_name(group), inputs, numbered=False
    )


@flights.guarded
def _land(flight, parameters, prefix, flags, read):
    """read(parameter): what is there now, None for nothing. flags: those of the slots (record.h)."""
    values = [read(p) for p in parameters]
    named = zip(_names(parameters, prefix), values)
    flight.give(tuple((name, value, flags) for name, value in named if value is not None))
    flight.land(False)


def _call(flight, function, args, kwargs):
    """The call with `flight` in reach of take(). One that raises is cancelled."""
    _running.flight = flight
    try:
        return function(*args, **kwargs)
    except BaseException:
        if flight is not None:
            flight.cancel()
        raise
    finally:
        _running.flight = None


def _gather(original):
    @functools.wraps(original)
    def foreach_all_gather(fsdp_params, group, *args, **kwargs):
        if not _rt.recording() or flights.tracing():
            return original(fsdp_params, group, *args, **kwargs)
        shards = [getattr(p, "sharded_param", ()) for p in fsdp_params]
        flight = _launch("all_gather", fsdp_params, group, "param:", shards)
        result = _call(flight, original, (fsdp_params, group, *args), kwargs)
        if flight is not None:
            _gathering[id(fsdp_params)] = flight
        return result

    return foreach_all_gather


def _wait(original):
    @functools.wraps(original)
    def wait_for_unshard(self, *args, **kwargs):
        result = original(self, *args, **kwargs)
        flight = _gathering.pop(id(self.fsdp_params), None)
        if flight is not None:
            _land(flight, self.fsdp_params, "param:", 0, lambda p: getattr(p, "_unsharded_param", None))
        return result

    return wait_for_unshard


def _reduce(original):
    @functools.wraps(original)
    def foreach_reduce(fsdp_params, unsharded_grads, reduce_scatter_group, *args, **kwargs):
        rest = (fsdp_params, unsharded_grads, reduce_scatter_group, *args)
        if not _rt.recording() or flights.tracing() or reduce_scatter_group is None:
            return original(*rest, **kwargs)
        parameters = list(fsdp_params)
        flight = _launch("reduce", parameters, reduce_scatter_group, "grad:", list(unsharded_grads))
        result = _call(flight, original, rest, kwargs)
        if flight is not None:
            _land(flight, parameters, "grad:", _MODEL_VALUE, _gradient)
        return result

    return foreach_reduce


def _gradient(parameter):
    sharded = getattr(parameter, "sharded_param", None)
    return getattr(sharded, "grad", None)
