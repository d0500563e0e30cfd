"""transformers' Llama, with grouped queries."""
import torch
from transformers import LlamaConfig, LlamaForCausalLM
from weights import DIM, HEADS, HIDDEN, KV_HEADS, LAYERS, VOCAB, batch, state

torch.set_num_threads(1)
config = LlamaConfig(vocab_size=VOCAB, hidden_size=DIM, intermediate_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS, num_key_value_heads=KV_HEADS,
                     max_position_embeddings=64, rms_norm_eps=1e-5, use_cache=False, attn_implementation="eager")  # fmt: skip
model = LlamaForCausalLM(config)
model.load_state_dict(state())
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, eps=1e-3, foreach=False)
for step in range(2):
    tokens, targets = batch(step)
    loss = model(input_ids=tokens, labels=targets, shift_labels=targets).loss
    loss.backward()
    norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step} loss {loss.item():.9f} norm {norm.item():.9f}", flush=True)
