"""transformers' GPT-2 with dropout and its own Adafactor."""
import torch
from training import token_batches, train
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.optimization import Adafactor

torch.manual_seed(2)
config = GPT2Config(vocab_size=96, n_positions=32, n_embd=32, n_layer=2, n_head=2, attn_implementation="eager", use_cache=False, bos_token_id=1, eos_token_id=2)
model = GPT2LMHeadModel(config)
optimizer = Adafactor(model.parameters(), lr=1e-2, relative_step=False, scale_parameter=True, weight_decay=0.01)
train(model, token_batches(12, 96), lambda model, batch: model(**batch).loss, optimizer)
