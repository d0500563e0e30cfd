"""transformers' GPT-2."""
import torch
from transformers import GPT2Config, GPT2LMHeadModel
from weights import DIM, HEADS, LAYERS, VOCAB, batch, state

torch.set_num_threads(1)
config = GPT2Config(vocab_size=VOCAB, n_positions=32, n_embd=DIM, n_layer=LAYERS, n_head=HEADS, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
                    use_cache=False, attn_implementation="eager")  # fmt: skip
model = GPT2LMHeadModel(config)
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
