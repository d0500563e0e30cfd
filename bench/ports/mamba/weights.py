"""The checkpoint in the reference's names, drawn by name, and the batches."""
import zlib

import torch

VOCAB, DIM, INNER, STATE, RANK, KERNEL, LAYERS, LENGTH = 96, 32, 64, 8, 2, 4, 2, 12


def shapes():
    found = {"backbone.embeddings.weight": (VOCAB, DIM), "backbone.norm_f.weight": (DIM,)}
    for i in range(LAYERS):
        layer = f"backbone.layers.{i}."
        found[f"{layer}norm.weight"] = (DIM,)
        for name, shape in (("A_log", (INNER, STATE)), ("D", (INNER,)), ("conv1d.weight", (INNER, 1, KERNEL)), ("conv1d.bias", (INNER,)), ("in_proj.weight", (2 * INNER, DIM)),
                            ("x_proj.weight", (RANK + 2 * STATE, INNER)), ("dt_proj.weight", (INNER, RANK)), ("dt_proj.bias", (INNER,)), ("out_proj.weight", (DIM, INNER))):
            found[f"{layer}mixer.{name}"] = shape
    return found


def state():
    made = {}
    for name, shape in shapes().items():
        value = torch.randn(shape, generator=torch.Generator().manual_seed(zlib.crc32(name.encode())))
        if name.endswith("A_log"):
            value = torch.log(torch.arange(1, STATE + 1).float()) + 0.1 * value
        elif "norm" in name or name.endswith(".D"):
            value = 1 + 0.1 * value
        elif name.endswith("dt_proj.bias"):
            value = -1 + 0.3 * value
        else:
            value = value * (0.3 if "conv1d" in name or "dt_proj" in name else 0.15)
        made[name] = value
    made["lm_head.weight"] = made["backbone.embeddings.weight"]
    return made


def batch(step):
    tokens = torch.randint(0, VOCAB, (2, LENGTH + 1), generator=torch.Generator().manual_seed(90 + step))
    return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
