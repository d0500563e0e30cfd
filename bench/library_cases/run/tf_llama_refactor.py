"""A tiny grouped-query Llama, padded batch, with one attention implementation or another."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from transformers import LlamaConfig, LlamaForCausalLM

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--attn", default="eager"); o = p.parse_args()
oracle.setup(0)
cfg = LlamaConfig(vocab_size=96, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                  max_position_embeddings=64, attn_implementation=o.attn)
model = LlamaForCausalLM(cfg)
oracle.reinit(model, std=0.2)
model.train()
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
ids = torch.randint(0, 96, (2, 20)); mask = torch.ones_like(ids); mask[1, 13:] = 0
labels = ids.masked_fill(mask == 0, -100)
with oracle.record(o.dump):
    for step in range(2):
        loss = model(input_ids=ids, attention_mask=mask, labels=labels, use_cache=False).loss
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
