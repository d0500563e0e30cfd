"""transformers' Mixtral, with its window and its loss for the experts' balance."""
import torch
from transformers import MixtralConfig, MixtralForCausalLM
from weights import BALANCE, CHOSEN, DIM, EXPERTS, HEADS, HIDDEN, KV_HEADS, LAYERS, VOCAB, WINDOW, batch, state

torch.set_num_threads(1)
config = MixtralConfig(vocab_size=VOCAB, hidden_size=DIM, intermediate_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS, num_key_value_heads=KV_HEADS,
                       num_local_experts=EXPERTS, num_experts_per_tok=CHOSEN, router_aux_loss_coef=BALANCE, output_router_logits=True, sliding_window=WINDOW,
                       max_position_embeddings=64, use_cache=False, attn_implementation="eager", experts_implementation="eager")  # fmt: skip
model = MixtralForCausalLM(config)
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
