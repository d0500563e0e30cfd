"""Two AdamW steps of a tiny BERT classifier, padded batch."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from transformers import BertConfig, BertForSequenceClassification

p = argparse.ArgumentParser(); p.add_argument("--dump"); o = p.parse_args()
oracle.setup(0)
cfg = BertConfig(vocab_size=128, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, max_position_embeddings=64,
                 hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
model = BertForSequenceClassification(cfg)
oracle.reinit(model, std=0.3)
model.train()
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
ids = torch.randint(3, 128, (4, 24)); y = torch.tensor([0, 1, 1, 0])
mask = torch.ones_like(ids); mask[1, 15:] = 0; mask[3, 9:] = 0
with oracle.record(o.dump):
    for step in range(2):
        loss = model(input_ids=ids, attention_mask=mask, labels=y).loss
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
