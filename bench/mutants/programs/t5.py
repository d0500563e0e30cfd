"""transformers' T5: an encoder, a decoder, relative positions."""
import torch
from training import token_batches, train
from transformers import T5Config, T5ForConditionalGeneration

torch.manual_seed(5)
config = T5Config(vocab_size=96, d_model=32, d_kv=8, d_ff=48, num_layers=1, num_decoder_layers=1, num_heads=4, relative_attention_num_buckets=8,
                  decoder_start_token_id=0, feed_forward_proj="gated-gelu", use_cache=False)  # fmt: skip
model = T5ForConditionalGeneration(config)
optimizer = train(model, token_batches(15, 96), lambda model, batch: model(**batch).loss)
