"""HF Trainer on a small model of our own whose norms are not nn.LayerNorm."""
import tempfile
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from torch import nn
from transformers import Trainer, TrainingArguments


class Norm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.input_rmsnorm, self.up, self.down = Norm(dim), nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        return x + self.down(torch.nn.functional.silu(self.up(self.input_rmsnorm(x))))


class Model(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.embed, self.blocks = nn.Embedding(64, dim), nn.ModuleList(Block(dim) for _ in range(2))
        self.final_rmsnorm, self.head = Norm(dim), nn.Linear(dim, 64)

    def forward(self, input_ids, labels=None):
        x = self.embed(input_ids)
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.final_rmsnorm(x))
        return {"loss": torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten()), "logits": logits}


p = argparse.ArgumentParser(); p.add_argument("--dump"); o = p.parse_args()
oracle.setup(0)
model = Model()
oracle.reinit(model)
g = torch.Generator().manual_seed(7)
rows = []
for _ in range(16):
    ids = torch.randint(0, 64, (12,), generator=g)
    rows.append(dict(input_ids=ids, labels=ids.roll(-1)))
args = TrainingArguments(tempfile.mkdtemp(), per_device_train_batch_size=4, max_steps=3, learning_rate=1e-2, weight_decay=0.1, logging_steps=1,
                         report_to=[], use_cpu=True, save_strategy="no", disable_tqdm=True, seed=3, lr_scheduler_type="constant")
trainer = Trainer(model=model, args=args, train_dataset=rows)
with oracle.record(o.dump):
    trainer.train()
print("losses", [repr(h["loss"]) for h in trainer.state.log_history if "loss" in h])
