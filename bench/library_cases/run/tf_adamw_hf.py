"""HF Trainer, tiny Llama, with one AdamW or another; --ckpt 1: recomputed activations."""
import tempfile
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--optim", default="adamw_torch"); p.add_argument("--ckpt", type=int, default=0)
o = p.parse_args()
oracle.setup(0)
cfg = LlamaConfig(vocab_size=128, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, max_position_embeddings=128)
cfg._attn_implementation = "eager"
model = LlamaForCausalLM(cfg)
oracle.reinit(model)
g = torch.Generator().manual_seed(7)
rows = []
for _ in range(12):
    ids = torch.randint(3, 128, (24,), generator=g)
    rows.append(dict(input_ids=ids, labels=ids.clone()))
args = TrainingArguments(tempfile.mkdtemp(), per_device_train_batch_size=4, max_steps=3, learning_rate=1e-2, logging_steps=1, report_to=[], use_cpu=True,
                         save_strategy="no", disable_tqdm=True, seed=3, optim=o.optim, weight_decay=0.01, gradient_checkpointing=bool(o.ckpt),
                         gradient_checkpointing_kwargs={"use_reentrant": False})
tr = Trainer(model=model, args=args, train_dataset=rows)
with oracle.record(o.dump):
    tr.train()
print("losses", [repr(h["loss"]) for h in tr.state.log_history if "loss" in h], "grad_norm", [h.get("grad_norm") for h in tr.state.log_history if "loss" in h])
