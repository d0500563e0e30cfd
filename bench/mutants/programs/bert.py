"""transformers' BERT as a masked language model, tokens masked at random."""
import torch
from training import token_batches, train
from transformers import BertConfig, BertForMaskedLM

torch.manual_seed(4)
config = BertConfig(vocab_size=96, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, max_position_embeddings=32,
                    attn_implementation="eager")  # fmt: skip
model = BertForMaskedLM(config)
masking = torch.Generator().manual_seed(44)


def loss_of(model, batch):
    chosen = torch.rand(batch["input_ids"].shape, generator=masking) < 0.3
    labels = batch["labels"].masked_fill(~chosen, -100)
    return model(input_ids=batch["input_ids"].masked_fill(chosen, 2), attention_mask=batch["attention_mask"], labels=labels).loss


optimizer = train(model, token_batches(14, 96), loss_of)
