"""Two SGD steps of a tiny Gemma in float32."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from transformers import GemmaConfig, GemmaForCausalLM

p = argparse.ArgumentParser(); p.add_argument("--dump"); o = p.parse_args()
oracle.setup(0)
cfg = GemmaConfig(vocab_size=128, hidden_size=64, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
                  head_dim=16, max_position_embeddings=64, hidden_act="gelu")
cfg._attn_implementation = "eager"
model = GemmaForCausalLM(cfg)
oracle.reinit(model)
model = model.to(torch.float32)
opt = torch.optim.SGD(model.parameters(), lr=1e-2)
ids = torch.randint(3, 128, (2, 24))
with oracle.record(o.dump):
    for step in range(2):
        loss = model(input_ids=ids, labels=ids, use_cache=False).loss
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
