"""Processes that work together: groups, replicas and their buckets, meshes. Facts alone; nothing is set.

    groups      {"backend": "gloo", "world": 2, "rank": 1, "place": train.py:14}
    replicas    {"given": ["bucket_cap_mb"], "bucket_cap_mb": "10", "static_graph": "False", ...}
    layout      {"WORLD_SIZE": "2", "fsdp": "1"}

The order in which gradients are added over ranks depends on these. Counterexample: that torch.distributed.fsdp was
imported tells nothing, as libraries do so too. A module of the program's must have taken something of it."""

import functools
import inspect
import os
import sys
import weakref

from opguard.load import importing
from opguard.observe import facts, places

_replicas = []  # weak references to DistributedDataParallel
_BUCKETS = ("bucket_cap_mb", "find_unused_parameters", "static_graph", "broadcast_buffers", "gradient_as_bucket_view")


def install(torch):
    importing.when_imported("torch.distributed.distributed_c10d", _groups)
    importing.when_imported("torch.nn.parallel.distributed", _replicated)
    importing.when_imported("torch.distributed.device_mesh", _meshes)


def _groups(module):
    """init_process_group is one function under two names; both are wrapped. A group that fails to be made is the
    program's error."""
    original = module.init_process_group

    @functools.wraps(original)
    def init_process_group(*args, **kwargs):
        result = original(*args, **kwargs)
        try:
            facts.add(
                "groups",
                {
                    "place": places.caller(),
                    "backend": str(module.get_backend()),
                    "world": module.get_world_size(),
                    "rank": module.get_rank(),
                },
            )
        except Exception:
            pass  # a group of another kind
        return result

    for owner in (module, sys.modules.get("torch.distributed")):
        if getattr(owner, "init_process_group", None) is original:
            owner.init_process_group = init_process_group


def _replicated(module):
    """Arguments by name with torch's defaults; `given` are those that the program named. Replicas are held weakly."""
    kind = module.DistributedDataParallel
    original = kind.__init__
    signature = inspect.signature(original)

    @functools.wraps(original)
    def __init__(self, *args, **kwargs):
        original(self, *args, **kwargs)
        try:
            bound = signature.bind(self, *args, **kwargs)
            bound.apply_defaults()
            facts.add("replicas", {
                "place": places.caller(), "given": sorted(set(kwargs) & set(_BUCKETS)),
                **{name: str(bound.arguments.get(name)) for name in _BUCKETS},
            })  # fmt: skip
            _replicas.append(weakref.ref(self))
        except Exception:
            pass

    kind.__init__ = __init__


def _meshes(module):
    original = module.DeviceMesh.__init__

    @functools.wraps(original)
    def __init__(self, *args, **kwargs):
        original(self, *args, **kwargs)
        try:
            facts.add(
                "meshes",
                {"place": places.caller(), "shape": list(self.shape), "names": list(self.mesh_dim_names or ())},
            )
        except Exception:
            pass

    module.DeviceMesh.__init__ = __init__


def gather():
    """Buckets are asked for at each write, as DDP logs them: it may make them anew after its first backward pass.

    Sizes of megatron-core's groups are asked by either of two names."""
    buckets = []
    for replica in _replicas:
        held = replica()
        if held is not None:
            told = held._get_ddp_logging_data()
            buckets.append(
                {
                    name: str(told.get(name, ""))
                    for name in ("bucket_sizes", "rebuilt_bucket_sizes", "has_rebuilt_buckets")
                }
            )
    facts.put("buckets", buckets)
    layout = {name: os.environ[name] for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE") if name in os.environ}
    megatron = sys.modules.get("megatron.core.parallel_state")
    for kind in ("tensor", "pipeline", "context", "expert"):
        ask = getattr(megatron, "get_%s_model_parallel_world_size" % kind, None) or getattr(
            megatron, "get_%s_parallel_world_size" % kind, None
        )
        try:
            layout[kind] = str(ask())
        except Exception:
            continue  # not this library, or not set up
    for name, what in (
        ("torch.distributed.fsdp", "fsdp"),
        ("torch.distributed.tensor.parallel", "tensor_parallel"),
        ("torch.distributed.pipelining", "pipelining"),
        ("deepspeed", "deepspeed"),
    ):
        if name in sys.modules and any(
            getattr(m, "__file__", None) and places.is_users_file(m.__file__) and _uses(m, name)
            for m in list(sys.modules.values())
        ):
            layout[what] = "1"
    facts.put("layout", layout)


def _uses(module, name):
    """Has a module of the program's taken something of that package?"""
    return any(
        str(getattr(value, "__module__", None) or getattr(value, "__name__", "")).startswith(name)
        for value in list(vars(module).values())
    )
