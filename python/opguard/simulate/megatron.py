"""Seams of megatron-core: the library's layers see groups of one rank, the program those that it has asked for.

    mpu.initialize_model_parallel(tensor_model_parallel_size=2)
    mpu.get_tensor_model_parallel_rank()     called by train.py: 1; called by megatron.core: 0
    TransformerConfig(..., sequence_parallel=True)   its sequence_parallel is False once it is made

Who calls is told by the module of the calling frame. Tensor and data parallel ranks stay the program's: it reads its
data by them, and seeds by them. Pipeline, expert and context parallel ranks are 0 of 1 for all, as they cut the model
and the sequence alone. Data parallel groups are real: gradients are averaged as in a reference of as many data ranks.

Counterexample: the chunks of an interleaved schedule are made by the program, so they are refused.
The cost: a process group of its own for each rank.
"""

import copy
import functools
import sys
import types

from opguard.simulate import seams

_STATE = "megatron.core.parallel_state"
# Groups by which the library cuts: each becomes this rank alone.
_SOLO = (
    "_TENSOR_MODEL_PARALLEL_GROUP", "_PIPELINE_MODEL_PARALLEL_GROUP", "_MODEL_PARALLEL_GROUP", "_EMBEDDING_GROUP",
    "_POSITION_EMBEDDING_GROUP", "_CONTEXT_PARALLEL_GROUP", "_TENSOR_AND_CONTEXT_PARALLEL_GROUP",
    "_EXPERT_MODEL_PARALLEL_GROUP", "_EXPERT_TENSOR_PARALLEL_GROUP", "_EXPERT_TENSOR_AND_MODEL_PARALLEL_GROUP",
    "_EXPERT_TENSOR_MODEL_PIPELINE_PARALLEL_GROUP", "_INTRA_DISTRIBUTED_OPTIMIZER_INSTANCE_GROUP",
)  # fmt: skip
# Groups over which gradients are averaged: with nothing cut, all are the data parallel group.
_OF_DATA = (
    "_DATA_PARALLEL_GROUP_WITH_CP", "_TENSOR_AND_DATA_PARALLEL_GROUP", "_TENSOR_AND_DATA_PARALLEL_GROUP_WITH_CP",
    "_EXPERT_DATA_PARALLEL_GROUP", "_INTRA_PARTIAL_EXPERT_DATA_PARALLEL_GROUP",
    "_INTRA_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP",
)  # fmt: skip
_OF_DATA_GLOO = (
    "_DATA_PARALLEL_GROUP_WITH_CP_GLOO", "_EXPERT_DATA_PARALLEL_GROUP_GLOO",
    "_INTRA_PARTIAL_EXPERT_DATA_PARALLEL_GROUP_GLOO", "_INTRA_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP_GLOO",
)  # fmt: skip
_RANKS = (
    "_TENSOR_MODEL_PARALLEL_GLOBAL_RANKS", "_PIPELINE_GLOBAL_RANKS", "_MODEL_PARALLEL_GLOBAL_RANKS",
    "_EMBEDDING_GLOBAL_RANKS", "_POSITION_EMBEDDING_GLOBAL_RANKS", "_CONTEXT_PARALLEL_GLOBAL_RANKS",
    "_EXPERT_MODEL_PARALLEL_RANKS",
)  # fmt: skip
# What the program is told of its tensor parallel place.
_LOGICAL = (
    "get_tensor_model_parallel_group", "get_tensor_model_parallel_world_size", "get_tensor_model_parallel_rank",
    "get_tensor_model_parallel_src_rank", "get_tensor_and_data_parallel_group",
)  # fmt: skip
# Sizes as the library's layers are to see them, each 1.
_SIZES = (
    "tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size", "expert_model_parallel_size",
    "expert_tensor_parallel_size",
)  # fmt: skip
_NO_STAGES = (
    "forward_backward_pipelining_with_interleaving", "forward_backward_pipelining_without_interleaving",
)  # fmt: skip


_view = {}  # function of parallel_state -> the same over the groups that the program has asked for


def _logical_view(state):
    """The functions of parallel_state over its globals as they are now."""
    view = dict(vars(state))
    for name, value in list(view.items()):
        if isinstance(value, types.FunctionType) and value.__module__ == _STATE:
            plain = getattr(value, "__wrapped__", value)
            view[name] = types.FunctionType(plain.__code__, view, name, plain.__defaults__, plain.__closure__)
    return view


def _asks_for(sizes):
    """Refuses layouts whose seams are not known. `sizes`: the arguments of initialize_model_parallel."""
    known = {
        "hierarchical_context_parallel_sizes": None,
        "hybrid_context_parallel": False,
        "num_distributed_optimizer_instances": 1,
    }
    if sizes.get("virtual_pipeline_model_parallel_size") is not None:
        seams.refuse_call(
            "initialize_model_parallel with virtual pipeline stages", "has no seam: the program makes the chunks itself"
        )
    for name, value in known.items():
        if sizes.get(name, value) != value:
            seams.refuse_call("initialize_model_parallel with " + name, "has no seam")


def _initialize(state, original):
    import inspect

    signature = inspect.signature(original)

    @functools.wraps(original)
    def initialize_model_parallel(*args, **kwargs):
        _asks_for(signature.bind(*args, **kwargs).arguments)
        original(*args, **kwargs)
        seams.used("initialize_model_parallel")
        _unshard(state)

    return initialize_model_parallel


def _unshard(state):
    """After the real initialize_model_parallel: its groups are there, and are noted as who holds the same. A view of
    the state as the program asked for it is kept. Then the library's globals are set to groups of one."""
    torch = sys.modules["torch"]
    distributed = torch.distributed
    for group in ("_MODEL_PARALLEL_GROUP", "_CONTEXT_PARALLEL_GROUP", "_TENSOR_AND_CONTEXT_PARALLEL_GROUP"):
        seams.replicate(distributed.get_process_group_ranks(getattr(state, group)))
    view = _logical_view(state)
    here = distributed.get_rank()
    solo = distributed.new_group([here], use_local_synchronization=True)
    for name in _SOLO:
        setattr(state, name, solo)
    for name in _OF_DATA:
        setattr(state, name, state._DATA_PARALLEL_GROUP)
    for name in _OF_DATA_GLOO:
        setattr(state, name, state._DATA_PARALLEL_GROUP_GLOO)
    state._DATA_PARALLEL_GLOBAL_RANKS_WITH_CP = state._DATA_PARALLEL_GLOBAL_RANKS
    for name in _RANKS:
        setattr(state, name, [here])
    _view.update((name, view[name]) for name in _LOGICAL)


def _by_caller(state, name):
    """The program gets the answer of the layout it has asked for, and the library the state's."""
    plain = getattr(state, name)

    @functools.wraps(plain)
    def by_caller(*args, **kwargs):
        library = seams.is_library(seams.module_of(sys._getframe(1)))
        return (plain if library else _view.get(name, plain))(*args, **kwargs)

    setattr(state, name, by_caller)


def _on_state(state):
    from importlib import import_module

    seams.check_version("megatron-core", import_module("megatron.core.package_info").__version__)
    # At once: the library and the program import these functions by name.
    for name in _LOGICAL:
        _by_caller(state, name)
    state.initialize_model_parallel = _initialize(state, state.initialize_model_parallel)


# --- sizes that layers read from their configuration ---


def _unsharded(config):
    """A configuration is whole once it is made. What the program passed to it stays in the program's own variables."""
    if getattr(config, "virtual_pipeline_model_parallel_size", None) is not None:
        seams.refuse_call(
            "a configuration with virtual pipeline stages", "has no seam: the program makes the chunks itself"
        )
    for name in _SIZES:
        if getattr(config, name, None) is not None:
            setattr(config, name, 1)
    for name in ("sequence_parallel", "tp_comm_overlap", "cp_comm_type", "defer_embedding_wgrad_compute"):
        if getattr(config, name, None):
            setattr(config, name, None if name == "cp_comm_type" else False)
    seams.used("configuration")


def _after_init(owner):
    """TransformerConfig inherits ModelParallelConfig's: only the outermost __post_init__ sets the sizes, once all have
    been checked."""
    original = owner.__post_init__

    @functools.wraps(original)
    def __post_init__(self, *args, **kwargs):
        original(self, *args, **kwargs)
        if type(self).__post_init__ is __post_init__ or owner.__name__ != "ModelParallelConfig":
            _unsharded(self)

    owner.__post_init__ = __post_init__


def _on_config(name):
    return lambda module: _after_init(getattr(module, name))


# --- layers, random streams, schedules, optimizer ---


def _on_layers(layers):
    original = layers.set_tensor_model_parallel_attributes

    @functools.wraps(original)
    def set_tensor_model_parallel_attributes(tensor, is_parallel, dim, stride):
        # A program that cuts weights by this mark finds each of them whole.
        original(tensor, False, dim, stride)

    layers.set_tensor_model_parallel_attributes = set_tensor_model_parallel_attributes


def _on_data(data):
    def get_tensor_model_parallel_group_if_none(tp_group=None, *args, **kwargs):
        # One rank reads a batch for all: the ranks are those that the program has asked for.
        return _view["get_tensor_model_parallel_group"]() if tp_group is None else tp_group

    data.get_tensor_model_parallel_group_if_none = get_tensor_model_parallel_group_if_none


def _on_random(random):
    """Streams differ by tensor and expert rank where these hold different pieces. Here they hold the same."""
    original = random.model_parallel_cuda_manual_seed

    @functools.wraps(original)
    def model_parallel_cuda_manual_seed(seed, *args, **kwargs):
        for position, name in ((3, "tp_rank"), (4, "ep_rank"), (5, "etp_rank")):
            if len(args) > position:
                args = args[:position] + (0,) + args[position + 1 :]
            else:
                kwargs[name] = 0
        seams.used("random streams")
        return original(seed, *args, **kwargs)

    random.model_parallel_cuda_manual_seed = model_parallel_cuda_manual_seed


def _on_schedules(schedules):
    schedules.get_forward_backward_func = _whole_model(schedules.get_forward_backward_func, schedules)
    for name in _NO_STAGES:
        setattr(
            schedules,
            name,
            seams.refusing("megatron.core.pipeline_parallel.schedules." + name, "is given stages by the program"),
        )


def _whole_model(original, schedules):
    @functools.wraps(original)
    def get_forward_backward_func(*args, **kwargs):
        seams.used("schedule")
        return schedules.forward_backward_no_pipelining

    return get_forward_backward_func


def _on_ddp(module):
    original = module.DistributedDataParallel.__init__

    @functools.wraps(original)
    def __init__(self, config, ddp_config, *args, **kwargs):
        # Sharded, an optimizer's norm is a sum over shards.
        ddp_config.use_distributed_optimizer = False
        ddp_config.overlap_param_gather = False
        original(self, config, ddp_config, *args, **kwargs)

    module.DistributedDataParallel.__init__ = __init__


def _on_optimizer(module):
    original = module.get_megatron_optimizer

    @functools.wraps(original)
    def get_megatron_optimizer(config, *args, **kwargs):
        config.use_distributed_optimizer = False
        config.overlap_param_gather = False
        seams.used("optimizer")
        return original(config, *args, **kwargs)

    module.get_megatron_optimizer = get_megatron_optimizer


def _on_tokenizer(module):
    original = module._vocab_size_with_padding

    @functools.wraps(original)
    def _vocab_size_with_padding(orig_vocab_size, args, *more, **options):
        whole = copy.copy(args)
        whole.tensor_model_parallel_size = 1
        seams.used("padded vocabulary")
        return original(orig_vocab_size, whole, *more, **options)

    module._vocab_size_with_padding = _vocab_size_with_padding


def _on_extension(module):
    for name, value in list(vars(module).items()):
        if isinstance(value, type) and name.startswith("TE") and value.__module__ == module.__name__:
            value.__init__ = seams.refusing("transformer_engine's " + name, "has no known seam")


def _refuse_class(name):
    def on_import(module):
        getattr(module, name).__init__ = seams.refusing("megatron.core's " + name, "has no seam")

    return on_import


def install():
    for name, callback in (
        (_STATE, _on_state),
        ("megatron.core.model_parallel_config", _on_config("ModelParallelConfig")),
        ("megatron.core.transformer.transformer_config", _on_config("TransformerConfig")),
        ("megatron.core.tensor_parallel.layers", _on_layers),
        ("megatron.core.tensor_parallel.data", _on_data),
        ("megatron.core.tensor_parallel.random", _on_random),
        ("megatron.core.pipeline_parallel.schedules", _on_schedules),
        ("megatron.core.distributed.distributed_data_parallel", _on_ddp),
        ("megatron.core.optimizer", _on_optimizer),
        ("megatron.training.tokenizer.tokenizer", _on_tokenizer),
        ("megatron.core.extensions.transformer_engine", _on_extension),
        ("megatron.core.distributed.torch_fully_sharded_data_parallel", _refuse_class("TorchFullyShardedDataParallel")),
        ("megatron.core.distributed.fsdp.mcore_fsdp_adapter", _refuse_class("FullyShardedDataParallel")),
    ):
        seams.on_import(name, callback)
