"""LoRA on a tiny Llama with one scaling rule or the other."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--rs", type=int, default=0); o = p.parse_args()
oracle.setup(0)
cfg = LlamaConfig(vocab_size=96, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, max_position_embeddings=64)
cfg._attn_implementation = "eager"
model = LlamaForCausalLM(cfg)
oracle.reinit(model)
model = get_peft_model(model, LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"], use_rslora=bool(o.rs), lora_dropout=0.1))
model.train()
opt = torch.optim.AdamW([q for q in model.parameters() if q.requires_grad], lr=1e-2)
torch.manual_seed(5)
ids = torch.randint(0, 96, (2, 20))
with oracle.record(o.dump):
    for step in range(3):
        loss = model(input_ids=ids, labels=ids, use_cache=False).loss
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
