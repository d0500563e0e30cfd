import math

import torch
from torch import nn


class LoraLinear(nn.Module):
    """A frozen layer with a trained product of two thin matrices beside it."""

    def __init__(self, base, r, alpha):
        super().__init__()
        self.base = base
        self.scale = alpha / r
        self.lora_A = nn.Parameter(torch.empty(r, base.in_features))
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, r))
        nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.lora_A.T @ self.lora_B.T)


def add_lora(model, targets, r=2, alpha=4):
    model.encoder.requires_grad_(False)
    for block in model.encoder.blocks:
        for name in targets:
            setattr(block, name, LoraLinear(getattr(block, name), r, alpha))
    return model


def save_adapter(model, path):
    state = {name: tensor for name, tensor in model.state_dict().items() if "lora_" in name}
    torch.save(state, path)


def load_adapter(model, path):
    found = model.load_state_dict(torch.load(path), strict=False)
    if found.unexpected_keys:
        raise KeyError(f"not in the model: {found.unexpected_keys}")
    return model
