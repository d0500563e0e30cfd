"""operator_collectives.py C10D FUNCTIONAL OPERATORS: which of these functions, separated by commas, communicate.

    all_reduce sends        its call reaches a method of the process group; "get_rank nothing" does not

The group is torch's own fake one, of two ranks, which sends nothing."""

import sys

import torch
import torch.distributed as dist
from torch.distributed import _functional_collectives as funcol
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode

dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
GROUP, X, TWO, LONG = dist.group.WORLD, torch.zeros(4), [torch.zeros(4), torch.zeros(4)], torch.zeros(8)
SENDING = ("all", "broadcast", "reduce", "gather", "scatter", "send", "recv", "barrier", "monitored")
C10D = {
    "all_gather": lambda: dist.all_gather(TWO, X),
    "all_gather_coalesced": lambda: dist.all_gather_coalesced([TWO], [X]),
    "all_gather_into_tensor": lambda: dist.all_gather_into_tensor(LONG, X),
    "all_gather_object": lambda: dist.all_gather_object([None, None], 1),
    "all_reduce": lambda: dist.all_reduce(X),
    "all_reduce_coalesced": lambda: dist.all_reduce_coalesced([X]),
    "all_to_all": lambda: dist.all_to_all([X, X], TWO),
    "all_to_all_single": lambda: dist.all_to_all_single(X, X.clone()),
    "barrier": dist.barrier,
    "batch_isend_irecv": lambda: dist.batch_isend_irecv([dist.P2POp(dist.isend, X, 1)]),
    "broadcast": lambda: dist.broadcast(X, 0),
    "broadcast_object_list": lambda: dist.broadcast_object_list([1], 0),
    "gather": lambda: dist.gather(X, TWO, 0),
    "gather_object": lambda: dist.gather_object(1, [None, None], 0),
    "irecv": lambda: dist.irecv(X, 1),
    "isend": lambda: dist.isend(X, 1),
    "recv": lambda: dist.recv(X, 1),
    "recv_object_list": lambda: dist.recv_object_list([None], 1),
    "reduce": lambda: dist.reduce(X, 0),
    "reduce_scatter": lambda: dist.reduce_scatter(X, TWO),
    "reduce_scatter_tensor": lambda: dist.reduce_scatter_tensor(X, LONG),
    "scatter": lambda: dist.scatter(X, TWO, 0),
    "scatter_object_list": lambda: dist.scatter_object_list([None], [1, 2], 0),
    "send": lambda: dist.send(X, 1),
    "send_object_list": lambda: dist.send_object_list([1], 1),
    "get_rank": dist.get_rank,
    "get_world_size": dist.get_world_size,
    "is_initialized": dist.is_initialized,
    "get_backend": dist.get_backend,
}
FUNCTIONAL = {
    "all_gather_tensor": (X, 0, GROUP),
    "all_gather_tensor_autograd": (X, 0, GROUP),
    "all_reduce": (X, "sum", GROUP),
    "all_reduce_coalesced": ([X], "sum", GROUP),
    "all_to_all_single": (X, None, None, GROUP),
    "all_to_all_single_autograd": (X, [2, 2], [2, 2], GROUP),
    "all_gather_into_tensor_coalesced": ([X], GROUP),
    "broadcast": (X, 0, GROUP),
    "permute_tensor": (X, [1, 0], GROUP),
    "reduce_scatter_tensor": (X, "sum", 0, GROUP),
    "reduce_scatter_tensor_autograd": (X, "sum", 0, GROUP),
    "reduce_scatter_tensor_coalesced": ([X], "sum", [0], GROUP),
}
seen = []


class Sent(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if "c10d" in function._schema.name and "wait" not in function._schema.name:
            seen.append(function._schema.name)
        return function(*args, **(kwargs or {}))


def counted(original, name):
    return lambda *args, **kwargs: seen.append(name) or original(*args, **kwargs)


def report(name, call):
    seen.clear()
    try:
        call()
    except Exception as error:  # what a fake group hands back is no pickle
        if not seen:
            print(f"{name}: {error!r}")
    print(name, "sends" if seen else "nothing")


def main(c10d, functional, operators):
    for name in functional.split(","):
        with Sent():
            report("functional " + name, lambda: getattr(funcol, name)(*FUNCTIONAL[name]))
    for name in operators.split(","):
        print("operator", name, "sends" if hasattr(torch.ops._c10d_functional, name) else "nothing")
    for name in dir(dist.ProcessGroup):
        method = getattr(dist.ProcessGroup, name)
        if callable(method) and not name.startswith("__") and name.lstrip("_").startswith(SENDING):
            setattr(dist.ProcessGroup, name, counted(method, name))
    for name in c10d.split(","):
        report(name, C10D[name])


if __name__ == "__main__":
    main(*sys.argv[1:])
