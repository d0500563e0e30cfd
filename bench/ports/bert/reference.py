"""transformers' BERT, masked language model."""
import torch
from transformers import BertConfig, BertForMaskedLM
from weights import DIM, HEADS, HIDDEN, LAYERS, VOCAB, batch, state

torch.set_num_threads(1)
config = BertConfig(vocab_size=VOCAB, hidden_size=DIM, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=HIDDEN, max_position_embeddings=32,
                    hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, attn_implementation="eager")  # fmt: skip
model = BertForMaskedLM(config)
model.load_state_dict(state())
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, eps=1e-3, foreach=False)
for step in range(2):
    tokens, real, segments, labels = batch(step)
    loss = model(input_ids=tokens, attention_mask=real, token_type_ids=segments, labels=labels).loss
    loss.backward()
    norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters() if p.grad is not None])
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step} loss {loss.item():.9f} norm {norm.item():.9f}", flush=True)
