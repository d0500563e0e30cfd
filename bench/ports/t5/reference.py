"""transformers' T5, encoder and decoder."""
import torch
from transformers import T5Config, T5ForConditionalGeneration
from weights import BUCKETS, DIM, FARTHEST, HEADS, HIDDEN, LAYERS, VOCAB, batch, state

torch.set_num_threads(1)
config = T5Config(vocab_size=VOCAB, d_model=DIM, d_kv=DIM // HEADS, d_ff=HIDDEN, num_layers=LAYERS, num_heads=HEADS, relative_attention_num_buckets=BUCKETS,
                  relative_attention_max_distance=FARTHEST, dropout_rate=0.0, decoder_start_token_id=0, use_cache=False, attn_implementation="eager")  # fmt: skip
model = T5ForConditionalGeneration(config)
model.load_state_dict(state())
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, eps=1e-3, foreach=False)
for step in range(2):
    source, target = batch(step)
    loss = model(input_ids=source, labels=target).loss
    loss.backward()
    norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step} loss {loss.item():.9f} norm {norm.item():.9f}", flush=True)
