"""transformers' Llama with grouped queries and eager attention."""
import torch
from training import token_batches, train
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(1)
config = LlamaConfig(vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                     max_position_embeddings=32, attn_implementation="eager", use_cache=False)  # fmt: skip
model = LlamaForCausalLM(config)
optimizer = train(model, token_batches(11, 96), lambda model, batch: model(**batch).loss)
