"""transformers' Mixtral: a router, four experts, the auxiliary loss."""
import torch
from loop import train
from transformers import MixtralConfig, MixtralForCausalLM

torch.manual_seed(2)
config = MixtralConfig(vocab_size=256, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
                       num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2, max_position_embeddings=64,
                       output_router_logits=True)  # fmt: skip
model = MixtralForCausalLM(config)
batches = []
for _ in range(2):
    tokens = torch.randint(0, config.vocab_size, (2, 16))
    batches.append({"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "labels": tokens})
train(model, batches)
