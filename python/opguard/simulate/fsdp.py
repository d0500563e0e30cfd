"""Seams of data parallelism: fully_shard leaves parameters whole, and its ranks average gradients one after the other.

    fully_shard(model, mesh=dp)     an FSDPModule whose parameters are the reference's; no all-gather
    loss.backward()                 p.grad is (g0 + g1) / 2 as soon as it returns, of whole gradients

DistributedDataParallel needs no seam: its parameters are whole, and its sums are the reference's of as many ranks.

Counterexample: fully_shard's own mixed precision casts parameters before they are gathered, which is refused.
The cost: a whole gradient from every rank, gathered at the end of a backward pass.
"""

import functools
import sys

from opguard.simulate import dtensor, exchange, seams

# Methods of FSDPModule that do nothing here: they say when memory is freed, and what is sent when.
_QUIET = (
    "reshard", "reset_iter_state", "set_is_last_backward", "set_requires_all_reduce", "set_reshard_after_forward",
    "set_reshard_after_backward", "set_modules_to_forward_prefetch", "set_modules_to_backward_prefetch",
    "set_post_optim_event", "set_force_sum_reduction_for_comms", "set_reduce_scatter_unused_params",
    "set_reduce_scatter_max_input_buffers", "set_separate_reduce_scatter_group", "set_unshard_in_backward",
    "set_allocate_memory_from_process_group_for_comm", "set_symm_mem_for_comm", "_set_unshard_async_op",
)  # fmt: skip
# Methods that put something of the program's own into a collective.
_REFUSED = ("set_custom_all_gather", "set_custom_reduce_scatter", "set_all_reduce_hook")
_POLICY = ("param_dtype", "reduce_dtype", "output_dtype")


class _Managed:
    """The parameters of one call of fully_shard; their reduction is made when the first forward begins."""

    def __init__(self, places, mesh):
        self.places, self.mesh = places, mesh  # (module, name): a meta tensor is another one by its first forward
        self.reduction, self.divisor, self.begun = None, mesh.size(), False
        self.synchronises = True

    def begin(self):
        """Before the first forward: what the program sets after fully_shard, as a divisor, has been set by then."""
        if self.begun:
            return
        self.begun = True
        mesh = self.mesh
        group = dtensor.group_of(mesh)
        representatives = _representatives(group, mesh.device_type)
        if len(representatives) > 1 or self.divisor != 1:
            parameters = [module._parameters[name] for module, name in self.places]
            self.reduction = exchange.Reduction(parameters, group, representatives, self.divisor)
            self.reduction.synchronises = self.synchronises


def _representatives(group, device):
    """One rank of the group for each that the data are divided among, as numbers in the group."""
    ranks = sys.modules["torch"].distributed.get_process_group_ranks(group)
    # Each rank knows who has its data; in one group all must know it of all.
    first = min(
        [ranks[group.rank()]]
        + [r for same in seams.replicas() for r in same if r in ranks and ranks[group.rank()] in same]
    )
    torch = sys.modules["torch"]
    known = [int(tensor) for tensor in exchange.gather(torch.tensor([first], device=device), group)]
    return [at for at, rank in enumerate(ranks) if known[at] == rank]


def _whole_module(module):
    """FSDPModule without what it does: what programs call on it, and isinstance, still work."""

    class SimulatedFSDPModule(module.FSDPModule):
        _orig_cls_mro_index = 3

        def unshard(self, async_op=False):
            return module._UnshardHandleImpl(None) if async_op else None

        def set_requires_gradient_sync(self, requires_gradient_sync, *, recurse=True):
            for child in self.modules() if recurse else (self,):
                managed = getattr(child, "_opguard_managed", None)
                if managed is not None:
                    managed.synchronises = requires_gradient_sync
                    if managed.reduction is not None:
                        managed.reduction.synchronises = requires_gradient_sync

        def set_gradient_divide_factor(self, factor):
            self._opguard_managed.divisor = factor
            if self._opguard_managed.reduction is not None:
                self._opguard_managed.reduction.divisor = factor

        set_reduce_scatter_divide_factor = set_gradient_divide_factor

        def _apply(self, *args, **kwargs):
            return super(module.FSDPModule, self)._apply(*args, **kwargs)

    for name in _QUIET:
        setattr(SimulatedFSDPModule, name, lambda self, *args, **kwargs: None)
    for name in _REFUSED:
        setattr(SimulatedFSDPModule, name, seams.refusing("FSDPModule." + name, "has no seam"))
    return SimulatedFSDPModule


def _parameters(module):
    for part in module.modules():
        for name, parameter in part._parameters.items():
            if parameter is not None:
                yield part, name, parameter


def _fully_shard(original, module):
    whole, classes, managed_already = _whole_module(module), {}, seams.ByIdentity()

    @functools.wraps(original)
    def fully_shard(modules, *, mesh=None, mp_policy=None, ignored_params=None, dp_mesh_dims=None, **options):
        policy = [name for name in _POLICY if getattr(mp_policy, name, None) is not None]
        if policy or dp_mesh_dims is not None:
            seams.refuse_call("fully_shard with " + (", ".join(policy) or "dp_mesh_dims"), "has no seam")
        if mesh is None:
            mesh = module._init_default_mesh()
        seams.used("fully_shard")
        each = list(modules) if isinstance(modules, (list, tuple)) else [modules]
        ignored = {id(p) for p in ignored_params or ()}
        found = []
        for child in each:
            for part, name, parameter in _parameters(child):
                if id(parameter) not in ignored and not managed_already.get(parameter):
                    managed_already.put(parameter, True)
                    dtensor.remember(parameter, mesh)
                    found.append((part, name))
        managed = _Managed(found, mesh)
        for child in each:
            dtensor.move(child, mesh)
            kind = type(child)
            if kind not in classes:
                classes[kind] = type("FSDP" + kind.__name__, (whole, kind), {})
            child.__class__ = classes[kind]
            child._opguard_managed = managed
            child.register_forward_pre_hook(lambda *unused: managed.begin())
        return modules

    fully_shard.state = getattr(original, "state", None)
    return fully_shard


def _on_fully_shard(module):
    module.fully_shard = _fully_shard(module.fully_shard, module)


def _refuse_class(name, what, why):
    def on_import(module):
        owner = getattr(module, name, None)
        if owner is not None:
            owner.__init__ = seams.refusing(what, why)

    return on_import


def _on_ddp(module):
    owner = module.DistributedDataParallel
    original = owner.__init__

    @functools.wraps(original)
    def __init__(self, *args, **kwargs):
        original(self, *args, **kwargs)
        # Nothing stands in for it: what it does is what the reference of as many data ranks does.
        seams.used("DistributedDataParallel, left as it is")

    owner.__init__ = __init__


def install():
    seams.on_import("torch.distributed.fsdp._fully_shard._fully_shard", _on_fully_shard)
    seams.on_import("torch.nn.parallel.distributed", _on_ddp)
    seams.on_import(
        "torch.distributed.fsdp.fully_sharded_data_parallel",
        _refuse_class(
            "FullyShardedDataParallel", "FullyShardedDataParallel", "has no seam: fully_shard (FSDP2) has one"
        ),
    )
    for place in ("torch.distributed.pipelining.stage", "torch.distributed.pipelining._IR"):
        for name in ("_PipelineStageBase", "Pipe"):
            seams.on_import(place, _refuse_class(name, "torch.distributed.pipelining", "has no seam"))
