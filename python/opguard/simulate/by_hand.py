"""What a program sends by itself, while it is simulated.

    dist.all_reduce(loss_for_the_log)               goes on: ranks that hold the same send the same
    dist.all_gather(parts, x), in a forward         refused: x is whole already, and would be put together twice
    dist.all_reduce(p.grad, group=tp)               refused: the gradient is whole on each of them
    dist.all_reduce(p.grad, group=dp)               goes on: data parallelism by hand, as in the reference

A collective is the program's if the frame is that calls torch.distributed's function. It is part of the model's
arithmetic inside a module's forward or an autograd function.

Counterexample: barriers, objects and broadcasts outside of a forward move no partial sum, and are left alone.
The cost: a walk up the stack for each collective that Python launches.
"""

import functools
import sys

from opguard.simulate import exchange, seams

_REDUCTIONS = (
    "allreduce", "allreduce_coalesced", "reduce", "reduce_scatter", "_reduce_scatter_base", "reduce_scatter_single",
    "reduce_scatter_tensor_coalesced",
)  # fmt: skip
_OTHERS = (
    "broadcast", "allgather", "_allgather_base", "all_gather_single", "allgather_coalesced",
    "allgather_into_tensor_coalesced", "gather", "scatter", "alltoall_base", "all_to_all_single", "alltoall",
)  # fmt: skip
_MESSAGES = ("send", "recv", "recv_anysource")
_FUNCTIONAL = (
    "all_reduce", "all_gather_tensor", "all_gather_single", "reduce_scatter_tensor", "reduce_scatter_single",
    "all_to_all_single", "all_to_all_single_autograd", "permute_tensor", "broadcast", "all_gather_tensor_autograd",
    "reduce_scatter_tensor_autograd", "all_reduce_coalesced",
)  # fmt: skip
# What lies between a collective and who asks for it; any other part of torch asks on its own account.
_API = (
    "opguard", "contextlib", "torch.distributed.distributed_c10d", "torch.distributed.c10d_logger",
    "torch.distributed.nn.functional", "torch.autograd.function", "torch._dynamo",
)  # fmt: skip
_HINT = "is sharded arithmetic by hand: no seam stands for it (docs/design/simulate.md)"


def _asking_frame(frame):
    """The frame that asks for this collective, of the program's or of a library's."""
    while frame is not None and seams.is_library(seams.module_of(frame), _API):
        frame = frame.f_back
    return frame


def _program_frame(frame):
    """That frame where it is the program's; None where a library asks on its own account."""
    frame = _asking_frame(frame)
    return None if frame is None or seams.is_library(seams.module_of(frame)) else frame


def _in_arithmetic(frame):
    """Does a module's forward or an autograd function run here?"""
    call = sys.modules["torch"].nn.Module._call_impl.__code__
    while frame is not None:
        name = frame.f_code.co_name
        if frame.f_code is call or (name == "apply" and seams.module_of(frame) == "torch.autograd.function"):
            return True
        frame = frame.f_back
    return False


def _tensors(value):
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
    elif hasattr(value, "data_ptr"):
        yield value


def _is_gradient(tensors):
    """Is one of them a parameter of a living module, or its gradient? By address, so that a view of the first element
    counts. It walks over all objects, and only where a reduction over ranks with the same data was called."""
    import gc

    torch = sys.modules["torch"]
    wanted = {tensor.data_ptr() for tensor in tensors if tensor.numel()}
    for found in gc.get_objects():
        if isinstance(found, torch.nn.Module):
            for parameter in found._parameters.values():
                for tensor in (parameter, getattr(parameter, "grad", None)):
                    if tensor is not None and tensor.numel() and tensor.data_ptr() in wanted:
                        return True
    return False


def _shares_replicas(group):
    """Do two ranks of the group hold the same?"""
    ranks = set(sys.modules["torch"].distributed.get_process_group_ranks(group))
    return any(len(ranks.intersection(replicas)) > 1 for replicas in seams.replicas())


def _check(name, group, args):
    """Before a collective of the process group: refuses what would compute sharded. Groups of one rank, our own
    exchange and what torch asks on its own account go on."""
    frame = None if exchange.is_running() or group.size() < 2 else _asking_frame(sys._getframe(2))
    if frame is None:
        return
    if seams.is_library(seams.module_of(frame)):
        # At its seams megatron.core has groups of one rank. Here the program has handed it one of its own.
        if (
            seams.is_library(seams.module_of(frame), ("megatron.core",))
            and _shares_replicas(group)
            and _in_arithmetic(sys._getframe(2))
        ):
            seams.refuse("the collective (%s) at %s is of a layer that was given %d ranks: no seam stands for a group "
                         "that the program hands over" % (name, seams.place(frame), group.size()))  # fmt: skip
        return
    if name in _MESSAGES:
        seams.refuse("the message (%s) at %s %s" % (name, seams.place(frame), _HINT))
    if _in_arithmetic(sys._getframe(2)):
        seams.refuse("the collective (%s) at %s, in a forward or backward pass, %s" % (name, seams.place(frame), _HINT))
    if name in _REDUCTIONS and _shares_replicas(group) and _is_gradient(list(_tensors(args))):
        seams.refuse(
            "the collective (%s) at %s adds up gradients or parameters of ranks that each have them whole; this %s"
            % (name, seams.place(frame), _HINT)
        )


def _watch(owner, name):
    original = getattr(owner, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def call(self, *args, **kwargs):
        _check(name, self, args)
        return original(self, *args, **kwargs)

    setattr(owner, name, call)


def _on_c10d(module):
    group = getattr(module, "ProcessGroup", None)
    for name in _REDUCTIONS + _OTHERS + _MESSAGES:
        if group is not None:
            _watch(group, name)


def _on_functional(module):
    for name in _FUNCTIONAL:
        original = getattr(module, name, None)
        if original is not None:
            setattr(module, name, _functional(original, name))


def _functional(original, name):
    """Any functional collective that the program itself calls is refused where there are several ranks."""

    @functools.wraps(original)
    def call(*args, **kwargs):
        frame = _program_frame(sys._getframe(1))
        if frame is not None and seams.world()[1] > 1:
            seams.refuse("the functional collective (%s) at %s %s" % (name, seams.place(frame), _HINT))
        return original(*args, **kwargs)

    return call


def install():
    # Of torch's own, before any other's: the recording wraps what stands there then.
    seams.on_import("torch.distributed.distributed_c10d", _on_c10d)
    seams.on_import("torch.distributed._functional_collectives", _on_functional)
