"""transformers' GPT-NeoX: parallel residuals, partial rotary embedding, dropout, SGD with momentum."""
import torch
from loop import train
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

torch.manual_seed(3)
config = GPTNeoXConfig(vocab_size=256, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                       max_position_embeddings=64, hidden_dropout=0.1, attention_dropout=0.1)  # fmt: skip
model = GPTNeoXForCausalLM(config)
batches = []
for _ in range(2):
    tokens = torch.randint(0, config.vocab_size, (2, 16))
    mask = torch.ones_like(tokens)
    mask[1, 12:] = 0
    batches.append({"input_ids": tokens, "attention_mask": mask, "labels": tokens.masked_fill(mask == 0, -100)})
train(model, batches, torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, foreach=True))
