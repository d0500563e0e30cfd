"""DoRA on a tiny GPT-NeoX whose linear layers have biases (or, --bias 0, a Llama without)."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from peft import LoraConfig, get_peft_model
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM, LlamaConfig, LlamaForCausalLM

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--bias", type=int, default=1); o = p.parse_args()
oracle.setup(0)
sizes = dict(vocab_size=96, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, max_position_embeddings=64)
if o.bias:
    cfg = GPTNeoXConfig(**sizes); cfg._attn_implementation = "eager"
    model, targets = GPTNeoXForCausalLM(cfg), ["query_key_value", "dense"]
else:
    cfg = LlamaConfig(**sizes); cfg._attn_implementation = "eager"
    model, targets = LlamaForCausalLM(cfg), ["q_proj", "v_proj"]
oracle.reinit(model, std=0.3)
model = get_peft_model(model, LoraConfig(r=4, lora_alpha=8, target_modules=targets, use_dora=True, lora_dropout=0.0))
with torch.no_grad():
    for name, q in sorted(model.named_parameters()):
        if "lora_A" in name or "lora_B" in name:
            q.copy_(torch.randn(q.shape, generator=torch.Generator().manual_seed(len(name))) * 0.1)
model.train()
opt = torch.optim.AdamW([q for q in model.parameters() if q.requires_grad], lr=1e-3)
torch.manual_seed(5)
ids = torch.randint(0, 96, (2, 20))
with oracle.record(o.dump):
    for step in range(2):
        loss = model(input_ids=ids, labels=ids, use_cache=False).loss
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
