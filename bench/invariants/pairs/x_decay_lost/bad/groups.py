from torch import nn


def param_groups(model, weight_decay):
    """No decay for biases and for what norms hold."""
    decay, no_decay = [], []
    for name, module in model.named_modules():
        for key, p in module.named_parameters(recurse=False):
            plain = key.endswith("bias") or "norm" in name
            (no_decay if plain else decay).append(p)
    return [{"params": decay, "weight_decay": weight_decay}, {"params": no_decay, "weight_decay": 0.0}]
