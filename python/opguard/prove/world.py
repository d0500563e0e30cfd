"""A world of one process: torch's "fake" process group, made usable for whole training steps.

Collectives return at once and move nothing. What they mean is the checker's business; here they only have to go by.
All patches are made in a rank's own process, which ends with the rank.
"""

import os

import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

from . import placement


def start(rank, world):
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(world), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(world))
    dist.init_process_group("fake", rank=rank, world_size=world, store=FakeStore())
    _let_ddp_reduce()


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

    ddp.__init__, ddp.register_comm_hook, ddp._register_builtin_comm_hook = made, register_comm_hook, register_builtin


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
