"""transformers' Mixtral: a router, four experts, the auxiliary loss."""
import torch
from training import token_batches, train
from transformers import MixtralConfig, MixtralForCausalLM

torch.manual_seed(3)
config = MixtralConfig(vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2,
                       num_local_experts=4, num_experts_per_tok=2, max_position_embeddings=32, output_router_logits=True,
                       attn_implementation="eager", use_cache=False)  # fmt: skip
model = MixtralForCausalLM(config)
optimizer = train(model, token_batches(13, 96), lambda model, batch: model(**batch).loss)
