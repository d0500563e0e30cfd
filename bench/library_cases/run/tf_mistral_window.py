"""Two SGD steps of a tiny Mistral whose sequences are longer than its sliding window."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from transformers import MistralConfig, MistralForCausalLM

p = argparse.ArgumentParser(); p.add_argument("--dump"); o = p.parse_args()
oracle.setup(0)
cfg = MistralConfig(vocab_size=128, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
                    max_position_embeddings=128, sliding_window=8)
model = MistralForCausalLM(cfg)
oracle.reinit(model)
opt = torch.optim.SGD(model.parameters(), lr=1e-2)
ids = torch.randint(3, 128, (2, 24))
with oracle.record(o.dump):
    for step in range(2):
        loss = model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=ids, use_cache=False).loss
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
