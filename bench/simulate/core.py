"""A small GPT of megatron-core: tensor, sequence, pipeline and expert parallel, with dropout and a padded vocabulary.

python train.py
python -m torch.distributed.run --standalone --nproc-per-node 2 train.py --tp 2 --sp
"""

import argparse
import math
import os

import cpu  # noqa: F401  before megatron
import torch
import torch.distributed as dist
from megatron.core import parallel_state as mpu
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig, finalize_model_grads
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
from megatron.core.pipeline_parallel import get_forward_backward_func
from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed
from megatron.core.transformer.moe import moe_utils
from megatron.core.transformer.transformer_block import TransformerBlockSubmodules, get_num_layers_to_build
from megatron.core.transformer.transformer_config import TransformerConfig

TOKENS, LENGTH, BATCH = 100, 16, 2
moe_utils.te_general_gemm = None


def arguments():
    parser = argparse.ArgumentParser()
    for name in ("tp", "pp", "ep", "data"):
        parser.add_argument("--" + name, type=int, default=1)
    for name in ("sp", "moe", "zero"):
        parser.add_argument("--" + name, action="store_true")
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=2)
    return parser.parse_args()


def padded(tokens, multiple):
    return math.ceil(tokens / multiple) * multiple


class Norm(torch.nn.LayerNorm):
    """As the fused one: its parameters say that their gradients are parts where the sequence is cut."""

    def __init__(self, config, hidden_size, eps=1e-5, **unused):
        super().__init__(hidden_size, eps=eps)
        for parameter in self.parameters():
            parameter.sequence_parallel = config.sequence_parallel


def vocabulary(o):
    return padded(TOKENS, 8)


def batches(step, count):
    for number in range(count):
        generator = torch.Generator().manual_seed(1000 + 100 * step + number)
        tokens = torch.randint(0, TOKENS, (BATCH, LENGTH + 1), generator=generator)
        positions = torch.arange(LENGTH).unsqueeze(0).expand(BATCH, -1)
        yield tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous(), positions


def build(o):
    config = TransformerConfig(
        num_layers=2,
        hidden_size=32,
        num_attention_heads=4,
        ffn_hidden_size=64,
        add_bias_linear=False,
        hidden_dropout=o.dropout,
        attention_dropout=o.dropout,
        use_cpu_initialization=True,
        tensor_model_parallel_size=o.tp,
        pipeline_model_parallel_size=o.pp,
        pipeline_dtype=torch.float32,
        sequence_parallel=o.sp,
        expert_model_parallel_size=o.ep,
        expert_tensor_parallel_size=1 if o.moe else None,
        num_moe_experts=4 if o.moe else None,
        moe_router_topk=2,
        moe_token_dispatcher_type="alltoall",
        moe_router_load_balancing_type="none",
        bias_activation_fusion=False,
        masked_softmax_fusion=False,
        bias_dropout_fusion=False,
        persist_layer_norm=False,
        gradient_accumulation_fusion=False,
    )
    spec = get_gpt_layer_local_spec(num_experts=4 if o.moe else None, moe_grouped_gemm=False)
    spec.submodules.input_layernorm = spec.submodules.pre_mlp_layernorm = Norm
    layers = TransformerBlockSubmodules(layer_specs=[spec] * get_num_layers_to_build(config), layer_norm=Norm)
    return GPTModel(
        config,
        layers,
        vocabulary(o),
        LENGTH,
        pre_process=mpu.is_pipeline_first_stage(),
        post_process=mpu.is_pipeline_last_stage(),
        share_embeddings_and_output_weights=False,
        position_embedding_type="rope",
        parallel_output=True,
    )


def forward_step(iterator, model):
    tokens, labels, positions = next(iterator)
    future = torch.ones(LENGTH, LENGTH).triu(1).bool()[None, None]
    losses = model(tokens, positions, future, labels=labels)

    def loss_of(output):
        loss = output.float().mean()
        return loss, {"loss": loss.detach().clone()}

    return losses, loss_of


def main():
    o = arguments()
    torch.set_num_threads(1)
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", str(20000 + os.getpid() % 20000))
    dist.init_process_group(
        "gloo", rank=int(os.environ.get("RANK", 0)), world_size=int(os.environ.get("WORLD_SIZE", 1))
    )
    mpu.initialize_model_parallel(
        o.tp, o.pp, expert_model_parallel_size=o.ep, expert_tensor_parallel_size=1 if o.moe else None
    )
    torch.manual_seed(o.seed)
    model_parallel_cuda_manual_seed(o.seed + 7)
    torch.manual_seed(o.seed + 1)
    model = build(o)
    torch.manual_seed(o.seed + 2)
    ddp_config = DistributedDataParallelConfig(use_distributed_optimizer=o.zero, overlap_grad_reduce=False)
    model = DistributedDataParallel(config=model.config, ddp_config=ddp_config, module=model)
    model.config.finalize_model_grads_func = finalize_model_grads
    model.config.no_sync_func = model.no_sync
    settings = OptimizerConfig(
        optimizer="adam", lr=1e-2, weight_decay=0.1, clip_grad=1.0, use_distributed_optimizer=o.zero
    )
    optimizer = get_megatron_optimizer(settings, [model])
    data_rank, data_size = mpu.get_data_parallel_rank(), mpu.get_data_parallel_world_size()
    run = get_forward_backward_func()
    for step in range(o.steps):
        mine = list(batches(step, 4))[data_rank::data_size]
        model.zero_grad_buffer()
        optimizer.zero_grad()
        losses = run(
            forward_step_func=forward_step,
            data_iterator=iter(mine),
            model=model,
            num_microbatches=len(mine),
            seq_length=LENGTH,
            micro_batch_size=BATCH,
            forward_only=False,
        )
        ok, norm, zeros = optimizer.step()
        if losses and dist.get_rank() == dist.get_world_size() - 1:
            print(
                f"step {step} loss {torch.stack([one['loss'] for one in losses]).mean().item():.9f} norm {norm:.9f}",
                flush=True,
            )
    dist.barrier()
    dist.destroy_process_group()


main()
