"""transformers' Llama, two layers, activation checkpoints."""
import torch
from loop import train
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(1)
config = LlamaConfig(vocab_size=256, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                     num_key_value_heads=2, max_position_embeddings=64)  # fmt: skip
model = LlamaForCausalLM(config)
model.activation_checkpointing_enable()
batches = []
for _ in range(2):
    tokens = torch.randint(0, config.vocab_size, (2, 16))
    batches.append({"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "labels": tokens})
train(model, batches)
