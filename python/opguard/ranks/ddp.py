"""DistributedDataParallel: its gradient buckets, which C++ reduces.

    "<ddp.bucket>" of group "0-1"      in and out: grad:fc.weight, grad:fc.bias; "bucket=0, parameters='...', ..."
    "<ddp.unused>"                     which parameters were used, an int32 each: bookkeeping, without values

The reducer gets a process group that passes every call on to the real one. A communication hook would see the
buckets too, but takes the division by the number of ranks upon itself. The reducer does it as `* (1 / n)` or
`/ n` depending on where a gradient lies. Nothing seen from outside the reducer tells which.

Gradients are read by parameter and not as the flat bucket, so that two runs with other buckets can be compared.
Counterexample: a bucket that does not fit what is known of the order is told without its parameters."""

import functools
import sys
import weakref

from opguard import _rt
from opguard.ranks import flights

_MODEL_VALUE = 2  # record.h

_buckets = weakref.WeakKeyDictionary()  # reducer -> Buckets
_loggers = weakref.WeakKeyDictionary()  # reducer -> its logger
_failed = ""  # why buckets are not seen


# Two settings of the log come from here: how buckets are cut, and why none is seen.
_made = {}  # how buckets are cut, as the last reducer was told


def settings():
    return dict(_made, **({"ddp_buckets": "not recorded: " + _failed} if _failed else {}))


def install(torch):
    c10d = sys.modules["torch._C._distributed_c10d"]
    reducer = getattr(c10d, "Reducer", None)
    if reducer is None or hasattr(reducer.__init__, "_opguard"):
        return
    watched = _make_watched(c10d)
    _wrap_reducer(reducer, watched)
    if hasattr(c10d, "Logger"):
        _wrap_logger(c10d.Logger)
    _wrap_hooks(torch.distributed)
    _wrap_broadcast(torch.distributed)


class Buckets:
    """What one reducer sends, in the order in which it does.

        order    a list of parameters' indices a bucket; None: not known since the reducer made them anew
        names    {index: name}
        views    gradients are views of the bucket
        next     the bucket whose sum comes next in this pass"""

    def __init__(self, group, parameters, order, names, views):
        self.group, self.order, self.names, self.views = group, order, names, views
        self.parameters = [weakref.ref(p) for p in parameters]
        self.next = 0
        self.flying = []  # (flight, parameters, those it got at launch)
        self.hooked = False  # the program's own communication hook sends them

    def start(self):
        self.next = 0

    def gradients(self, index):
        """((name, gradient), ...) of a bucket."""
        found = []
        for i in self.order[index] if self.order and index < len(self.order) else ():
            parameter = self.parameters[i]()
            if parameter is not None and parameter.grad is not None:
                found.append(("grad:" + self.names.get(i, str(i)), parameter.grad, 0))
        return tuple(found)

    def text(self, index):
        """The event's scalars. Without an order the bucket's number is all that is known."""
        if not self.order:
            return "bucket=%d" % index
        names = " ".join(self.names.get(i, str(i)) for i in self.order[index])
        return "bucket=%d, parameters='%s', is_last=%s" % (index, names, index == len(self.order) - 1)

    def fits(self, index, tensors):
        """Has the bucket as many elements as its parameters? Else the order is not the one that the reducer uses. Of
        sparse gradients the number of elements says nothing."""
        if not self.order or index >= len(self.order):
            return False
        held = [self.parameters[i]() for i in self.order[index]]
        sparse = any(t.layout is not sys.modules["torch"].strided for t in tensors)
        return all(p is not None for p in held) and (
            sparse or sum(p.numel() for p in held) == sum(t.numel() for t in tensors)
        )

    def launch(self, index, numbered):
        """A bucket is about to be sent. numbered: it is a collective of its own; a hook's call is none, as the hook
        makes some.

        The flight lands after the backward pass: only then has the reducer put the sums into the gradients."""
        if not self.flying and not self.land_after_backward():
            return _bookkeeping("<ddp.bucket>", self.group) if numbered else None
        gradients = self.gradients(index)
        # Where gradients are views of the bucket they are being overwritten from now on.
        outputs = tuple((n, g, _MODEL_VALUE) for n, g, _ in gradients) if self.views else ()
        name = flights.group_name(self.group)
        flight = flights.launch("<ddp.bucket>", name, gradients, outputs, self.text(index), False, numbered)
        if flight is not None:
            self.flying.append((flight, index, {n for n, _, _ in outputs}))

    def land_after_backward(self):
        """Once the reducer has waited for its buckets and handed the gradients out; its own callback is queued
        after this one, so ours queues another."""
        engine = sys.modules["torch"].autograd.Variable._execution_engine
        try:
            engine.queue_callback(lambda: engine.queue_callback(self.land))
        except RuntimeError:
            return False  # not in a backward pass: a rank that has joined early sends zeros
        return True

    @flights.guarded
    def land(self):
        """What each flight leaves: the gradients that it did not get as outputs at its launch."""
        flying, self.flying = self.flying, []
        for flight, index, given in flying:
            flight.give(tuple((n, g, _MODEL_VALUE) for n, g, _ in self.gradients(index) if n not in given))
            flight.land(False)

    def rebuilt(self, reducer):
        """The reducer has put the parameters into other buckets, in order of arrival."""
        self.order = None
        if all(p() is not None and p().device.type == "cpu" for p in self.parameters):
            index_of = {id(p()): i for i, p in enumerate(self.parameters)}
            buckets = reducer._get_zeros_like_grad_buckets()
            self.order = [[index_of[id(p)] for p in b.parameters()] for b in buckets]

    def learn(self, reducer):
        """Elsewhere zeros of the size of the model are no small thing: the reducer's log tells, a step later."""
        logger = _loggers.get(reducer)
        data = logger._get_ddp_logging_data().strs_map if logger is not None else {}
        text = data.get("rebuilt_per_bucket_param_indices", "")
        if text:
            self.order = [[int(i) for i in bucket.split()] for bucket in text.split(",")]

    @flights.guarded
    def reduce(self, tensors):
        """The reducer is about to sum this over all ranks."""
        torch = sys.modules["torch"]
        if len(tensors) == 1 and tensors[0].dtype is torch.int32 and tensors[0].numel() == len(self.parameters):
            return _bookkeeping("<ddp.unused>", self.group)
        index, self.next = self.next, self.next + 1
        if not self.hooked:
            if self.order is not None and not self.fits(index, tensors):
                self.order = None
            self.launch(index, True)
        else:
            _bookkeeping("<ddp.bucket>", self.group)  # a built-in hook's sum: the hook's event has its values


def _bookkeeping(boundary, group):
    """A collective that has a number and no values: it is counted, so that later ones have the numbers of other
    ranks'."""
    flight = flights.launch(boundary, flights.group_name(group), (), (), "", True)
    flights.track(flight, None)


def _make_watched(c10d):
    class Watched(c10d.ProcessGroup):
        """The reducer's process group: the real one, and the buckets are told of what passes."""

        def __init__(self, real, buckets):
            super().__init__(real.rank(), real.size())
            self._real, self._buckets = real, buckets
            self._set_group_name(real.group_name)  # before it has backends, which it would rename
            # What we do not override goes to the same backends.
            kinds = c10d.ProcessGroup.BackendType
            for device in real._device_types:
                backend = real._get_backend(device)
                kind = getattr(kinds, backend.name().upper(), kinds.CUSTOM)
                self._register_backend(device, kind, backend)
                self._set_default_backend(kind)

        def getBackendName(self):
            return self._real.name()

        def allreduce(self, tensors, *options):
            if _rt.recording():
                self._buckets.reduce(tensors)
            return _plain(self._real, "allreduce")(tensors, *options)

    def passed_on(method):
        def call(self, *args):
            if _rt.recording():
                _guarded_bookkeeping("<ddp.%s>" % method, self._real)
            return _plain(self._real, method)(*args)

        return call

    for method in ("broadcast", "allgather", "barrier"):
        setattr(Watched, method, passed_on(method))
    return Watched


_guarded_bookkeeping = flights.guarded(_bookkeeping)


def _plain(group, method):
    """The method as it was before we announced its calls."""
    function = getattr(type(group), method)
    return functools.partial(getattr(function, "_opguard", function), group)


def _wrap_reducer(reducer, watched):
    """Where the reducer does not take our group, it gets the program's, and the log says why (ddp_buckets)."""
    original, rebuild, prepare = reducer.__init__, reducer._rebuild_buckets, reducer.prepare_for_backward

    @functools.wraps(original)
    def __init__(self, params, bucket_indices, per_bucket_size_limits, process_group, *args, **kwargs):
        rest = (params, bucket_indices, per_bucket_size_limits)
        made = None
        if _rt.recording() and type(process_group).__name__ == "ProcessGroup":
            made = _make_buckets(watched, params, bucket_indices, process_group, args, kwargs)
        if made is None:
            return original(self, *rest, process_group, *args, **kwargs)
        try:
            original(self, *rest, made, *args, **kwargs)
        except Exception as error:
            _fail(error)
            return original(self, *rest, process_group, *args, **kwargs)
        _buckets[self] = made._buckets
        # C++ finds our methods through the Python object: it lives as long as the reducer.
        weakref.finalize(self, _forget, made)

    @functools.wraps(rebuild)
    def _rebuild_buckets(self, *args, **kwargs):
        done = rebuild(self, *args, **kwargs)
        if done and self in _buckets:
            _tell_rebuilt(self)
        return done

    @functools.wraps(prepare)
    def prepare_for_backward(self, *args, **kwargs):
        if self in _buckets:
            _tell_start(self)
        return prepare(self, *args, **kwargs)

    __init__._opguard = original
    reducer.__init__, reducer._rebuild_buckets = __init__, _rebuild_buckets
    reducer.prepare_for_backward = prepare_for_backward


# Does nothing: as weakref.finalize's callback it holds `group` until the reducer is gone.
def _forget(group):
    pass


def _fail(error):
    global _failed
    _failed = "%s: %s" % (type(error).__name__, str(error).partition("\n")[0])


def _make_buckets(watched, params, indices, group, args, kwargs):
    """The watched group for one reducer, None where something failed. args are torch's Reducer's behind its first
    four."""

    def argument(position, name, default):
        return args[position] if len(args) > position else kwargs.get(name, default)

    try:
        names = dict(argument(4, "param_to_name_mapping", {}) or {})
        views = bool(argument(3, "gradient_as_bucket_view", False))
        _made["ddp.bucket_bytes"] = str(argument(1, "bucket_bytes_cap", "default"))
        _made["ddp.find_unused_parameters"] = str(argument(2, "find_unused_parameters", False))
        _made["ddp.first_buckets"] = " ".join(str(len(bucket)) for bucket in indices)
        return watched(group, Buckets(group, list(params), [list(b) for b in indices], names, views))
    except Exception as error:
        _fail(error)
        return None


@flights.guarded
def _tell_rebuilt(reducer):
    _buckets[reducer].rebuilt(reducer)


@flights.guarded
def _tell_start(reducer):
    """A backward pass is prepared: buckets count from 0 again, and an order that was lost is asked for."""
    buckets = _buckets[reducer]
    if buckets.order is None:
        buckets.learn(reducer)
    buckets.start()


def _wrap_logger(logger):
    original = logger.__init__

    @functools.wraps(original)
    def __init__(self, reducer, *args, **kwargs):
        original(self, reducer, *args, **kwargs)
        if reducer in _buckets:
            _loggers[reducer] = self

    logger.__init__ = __init__


def _wrap_hooks(distributed):
    """The program's own communication hook: a bucket as it gets it, and what it makes of it."""
    original = getattr(distributed, "_register_comm_hook", None)
    if original is None:
        return

    @functools.wraps(original)
    def _register_comm_hook(reducer, state, hook):
        buckets = _buckets.get(reducer)
        if buckets is None:
            return original(reducer, state, hook)

        @functools.wraps(hook)
        def announced(state, bucket):
            if _rt.recording():
                _tell_hook(buckets, bucket)
            return hook(state, bucket)

        original(reducer, state, announced)
        buckets.hooked = True

    distributed._register_comm_hook = _register_comm_hook


@flights.guarded
def _tell_hook(buckets, bucket):
    buckets.launch(bucket.index(), False)


def _wrap_broadcast(distributed):
    """Parameters and buffers that DDP sends from its first rank: one event a call, of all tensors."""
    original = getattr(distributed, "_broadcast_coalesced", None)
    if original is None:
        return

    @functools.wraps(original)
    def _broadcast_coalesced(process_group, tensors, *args, **kwargs):
        if not _rt.recording() or flights.tracing():
            return original(process_group, tensors, *args, **kwargs)
        flight = _begin_broadcast(process_group, tensors, args, kwargs)
        try:
            result = original(process_group, tensors, *args, **kwargs)
        except BaseException:
            if flight is not None:
                flight.cancel()
            raise
        flights.track(flight, None)
        return result

    distributed._broadcast_coalesced = _broadcast_coalesced


@flights.guarded
def _begin_broadcast(group, tensors, args, kwargs):
    root = kwargs.get("src", args[1] if len(args) > 1 else 0)
    values = (("tensor", list(tensors), 0),)
    given = values if group.rank() == root else ()
    return flights.launch("<dist.broadcast_coalesced", flights.group_name(group), given, values, "root=%d" % root)
