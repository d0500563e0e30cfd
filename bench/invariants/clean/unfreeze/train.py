import os

import torch
import torch.nn as nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Encoder(nn.Module):
    def __init__(self, d=16, layers=3):
        super().__init__()
        self.embed = nn.Embedding(30, d)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(d, 2, 32, dropout=0.1, batch_first=True, norm_first=True) for _ in range(layers)
        )
        self.head = nn.Linear(d, 2)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(1))


def set_trainable(module, value):
    for p in module.parameters():
        p.requires_grad = value


torch.manual_seed(SEED)
model = Encoder()
set_trainable(model, False)
set_trainable(model.head, True)
lr = 1e-2
optimizer = torch.optim.AdamW(model.head.parameters(), lr=lr)
waiting = list(model.layers)  # the last one is released first
model.train()
for step in range(STEPS):
    if step and step % 2 == 0 and waiting:
        layer = waiting.pop()
        set_trainable(layer, True)
        lr /= 2.6
        optimizer.add_param_group({"params": layer.parameters(), "lr": lr})
        print("released", sum(p.requires_grad for p in model.parameters()), "parameters train")
    ids = torch.randint(0, 30, (8, 10))
    loss = nn.functional.cross_entropy(model(ids), (ids[:, 0] > 14).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
