"""transformers' Trainer over an in-memory data set: accumulation, clipping, a schedule, its own loss scaling."""
import tempfile

import torch
from loop import steps
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

torch.manual_seed(5)
config = LlamaConfig(vocab_size=128, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
                     num_key_value_heads=1, max_position_embeddings=32)  # fmt: skip
samples = [{"input_ids": t, "labels": t} for t in torch.randint(0, config.vocab_size, (16, 12))]
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=folder, max_steps=steps(), per_device_train_batch_size=2, gradient_accumulation_steps=2,
        learning_rate=1e-3, weight_decay=0.1, warmup_steps=1, max_grad_norm=1.0, logging_steps=1, save_strategy="no",
        report_to=[], use_cpu=True, disable_tqdm=True, seed=5, dataloader_num_workers=0,
    )  # fmt: skip
    Trainer(model=LlamaForCausalLM(config), args=arguments, train_dataset=samples).train()
