"""megatron-core's GPT in one process over gloo."""
import contextlib

import torch
from training import train

torch.cuda.current_device = lambda: torch.device("cpu")
from megatron.core import parallel_state
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.models.gpt.gpt_model import GPTModel
from megatron.core.tensor_parallel import random as parallel_random
from megatron.core.transformer.transformer_config import TransformerConfig

# Its generators live on a GPU; nothing is drawn from them here, as no dropout is on.
parallel_random.CudaRNGStatesTracker.fork = lambda self, name="": contextlib.nullcontext()
torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
parallel_state.initialize_model_parallel()
torch.manual_seed(16)
config = TransformerConfig(num_layers=2, hidden_size=32, num_attention_heads=4, num_query_groups=2, ffn_hidden_size=48, use_cpu_initialization=True,
                           pipeline_dtype=torch.float32, gated_linear_unit=True, activation_func=torch.nn.functional.silu, add_bias_linear=False,
                           attention_dropout=0.0, hidden_dropout=0.0, bias_dropout_fusion=False, masked_softmax_fusion=False,
                           bias_activation_fusion=False, apply_rope_fusion=False, gradient_accumulation_fusion=False)  # fmt: skip
model = GPTModel(config, get_gpt_layer_local_spec(), vocab_size=96, max_sequence_length=16, position_embedding_type="rope",
                 share_embeddings_and_output_weights=False)  # fmt: skip
future = torch.ones(8, 8).triu(1).bool()[None, None]
batches = [torch.randint(0, 96, (2, 9)) for _ in range(2)]
optimizer = train(model, batches, lambda model, tokens: model(tokens[:, :-1], torch.arange(8)[None], future, labels=tokens[:, 1:]).mean())
