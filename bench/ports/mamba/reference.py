"""transformers' Mamba, without kernels."""
import torch
from transformers import MambaConfig, MambaForCausalLM
from weights import DIM, KERNEL, LAYERS, RANK, STATE, VOCAB, batch, state

torch.set_num_threads(1)
config = MambaConfig(vocab_size=VOCAB, hidden_size=DIM, state_size=STATE, num_hidden_layers=LAYERS, conv_kernel=KERNEL, time_step_rank=RANK, use_cache=False,
                     layer_norm_epsilon=1e-5)  # fmt: skip
model = MambaForCausalLM(config)
model.load_state_dict(state())
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, eps=1e-3, foreach=False)
for step in range(2):
    tokens, targets = batch(step)
    logits = model(input_ids=tokens).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
    loss.backward()
    norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step} loss {loss.item():.9f} norm {norm.item():.9f}", flush=True)
