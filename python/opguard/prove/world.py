"""A world of one process: torch's "fake" process group, made usable for whole training steps.

Collectives return at once and move nothing. What they mean is the checker's business; here they only have to go by.
All patches are made in the capture's own processes, which end with it. Those of `before_plan` come before the plan is
loaded: it may take a function by its name.
Counterexample: an object that another rank sends cannot be had, since each rank is captured alone. That is told.
"""

import copy
import functools
import inspect
import os
import sys

import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

from . import placement
from .problem import NotCaptured

_OBJECTS = ("all_gather_object", "gather_object", "broadcast_object_list", "scatter_object_list", "send_object_list", "recv_object_list")


def start(rank, world):
    """A rank of so many, by the variables that torchrun would have set and a process group that moves nothing."""
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(world), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(world))
    dist.init_process_group("fake", rank=rank, world_size=world, store=FakeStore())
    _let_ddp_reduce()


def before_plan():
    """Each group is a fake one, whatever backend is asked for: gloo is part of many a GPU's plan. Objects do not travel."""
    c10d = dist.distributed_c10d
    grouped = c10d._new_group_with_tag

    @functools.wraps(grouped)
    def new_group(ranks=None, timeout=None, backend=None, backend_options=None, *args, **kwargs):
        for one in str(backend).lower().split(",") if backend else ():
            if one.rpartition(":")[2] not in c10d.Backend.backend_list:
                raise ValueError("no such backend: %s" % backend)
        return grouped(ranks, timeout, None, None, *args, **kwargs)

    c10d._new_group_with_tag = new_group
    for name in _OBJECTS:
        alone = _alone(name, getattr(c10d, name))
        setattr(c10d, name, alone)
        setattr(dist, name, alone)


def _alone(name, plain):
    """Object collectives of a group of one. In a larger one the objects of other ranks are not there, and a copy of the own would be a guess."""
    signature = inspect.signature(plain)

    @functools.wraps(plain)
    def moved(*args, **kwargs):
        given = signature.bind(*args, **kwargs).arguments
        group = given.get("group") or dist.group.WORLD
        if group is dist.GroupMember.NON_GROUP_MEMBER:
            return
        if dist.get_world_size(group) > 1 or name in _OBJECTS[4:]:
            raise NotCaptured("%s: ranks are captured one by one, so objects of other ranks are not there; give each rank its objects in plan()" % name)
        if name == "all_gather_object":
            given["object_list"][0] = copy.deepcopy(given["obj"])
        elif name == "gather_object":
            given["object_gather_list"][0] = copy.deepcopy(given["obj"])
        elif name == "scatter_object_list":
            given["scatter_object_output_list"][0] = copy.deepcopy(given["scatter_object_input_list"][0])

    return moved


def let_pipelines_start():
    """A schedule's ranks vote whether all know their shapes, by messages whose values a rank cannot have here.

    A rank that knows its own votes yes, and takes it that the others do: one that does not is told, and no plan comes of it.
    """
    schedules = sys.modules.get("torch.distributed.pipelining.schedules")
    base = getattr(schedules, "_PipelineSchedule", None)
    if not hasattr(base, "_warmup_p2p"):
        return
    plain = base._warmup_p2p

    def warm_up(self, stages, has_backward, p2p_done):
        if not all(isinstance(stage, schedules.PipelineStage) for stage in stages):
            return plain(self, stages, has_backward, p2p_done)
        for stage in stages:
            if schedules.InferenceMode.needs_dynamic(stage._user_meta, has_backward):
                lacks = "input_args and output_args"
                if stage._user_meta.has_dtensors():
                    lacks += ", of DTensors input_grads and output_grads too"
                text = "stage %d of the pipeline would ask other ranks for shapes, and ranks are captured one by one; give its PipelineStage %s"
                raise NotCaptured(text % (stage.stage_index, lacks))
            stage._inference_mode = schedules.InferenceMode.STATIC

    base._warmup_p2p = warm_up


def _reduce_bucket(model, bucket):
    """What DDP does with a bucket unless told otherwise, said in Python: divide, then add up over the ranks."""
    gradients = bucket.buffer()
    gradients.div_(dist.get_world_size(model.process_group))
    dist.all_reduce(gradients, group=model.process_group)
    done = torch.futures.Future()
    done.set_result(gradients)
    return done


def _let_ddp_reduce():
    """A fake collective's future holds None, which DDP's own reduction refuses. A hook of the user's stays."""
    from torch.nn.parallel import DistributedDataParallel as ddp

    make, hook, builtin = ddp.__init__, ddp.register_comm_hook, ddp._register_builtin_comm_hook
    hooked = set()  # ids of models; they live as long as the process

    def made(self, *args, **kwargs):
        make(self, *args, **kwargs)
        self.register_forward_pre_hook(before_forward)

    def before_forward(self, _):
        # Not in the constructor: the user may register a hook after it, and DDP takes one only.
        if id(self) not in hooked:
            self.register_comm_hook(self, _reduce_bucket)

    def register_comm_hook(self, *args, **kwargs):
        hooked.add(id(self))
        return hook(self, *args, **kwargs)

    def register_builtin(self, *args, **kwargs):
        hooked.add(id(self))
        return builtin(self, *args, **kwargs)

    # New buckets after the first backward pass only order gradients anew. Ranks agree on them by memory that C++ fills, unseen.
    dist.Reducer._rebuild_buckets = lambda self: False
    ddp.__init__, ddp.register_comm_hook, ddp._register_builtin_comm_hook = made, register_comm_hook, register_builtin


def watch_backwards(recorder):
    """A torch.autograd.Function's backward that only returns what it was given, `return g`, runs no operator that could be seen."""
    plain = getattr(torch.autograd.function.BackwardCFunction, "_get_user_fn", None)
    if plain is None:
        return

    def watched(self):
        function = plain(self)

        @functools.wraps(function)
        def backward(ctx, *given):
            returned = function(ctx, *given)
            recorder.passed(inspect.unwrap(function), given, returned)
            return returned

        return backward

    torch.autograd.function.BackwardCFunction._get_user_fn = watched


def watch_reads(recorder):
    """tolist() and numpy() read values without an operator; printing reads them to no effect on the step."""
    def watched(name):
        plain = getattr(torch._C.TensorBase, name)

        def read(self, *args, **kwargs):
            recorder.read(placement.local(self))
            return plain(self, *args, **kwargs)

        return read

    def printed(plain):
        def shown(self, *args, **kwargs):
            before, recorder.paused = recorder.paused, True
            try:
                return plain(self, *args, **kwargs)
            finally:
                recorder.paused = before

        return shown

    torch.Tensor.tolist, torch.Tensor.numpy = watched("tolist"), watched("numpy")
    torch.Tensor.__repr__, torch.Tensor.__format__ = printed(torch.Tensor.__repr__), printed(torch.Tensor.__format__)
