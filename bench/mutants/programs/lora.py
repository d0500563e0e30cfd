"""peft's LoRA (rank-stabilised, with dropout) on transformers' Llama."""
import torch
from peft import LoraConfig, get_peft_model
from training import token_batches, train
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(12)
config = LlamaConfig(vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2,
                     max_position_embeddings=32, attn_implementation="eager", use_cache=False)  # fmt: skip
lora = LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj", "up_proj"], lora_dropout=0.1, use_rslora=True, init_lora_weights="gaussian")
model = get_peft_model(LlamaForCausalLM(config), lora)
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
train(model, token_batches(17, 96, steps=3), lambda model, batch: model(**batch).loss, optimizer)
