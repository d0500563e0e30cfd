"""The checkpoint in the reference's names, drawn by name, and the batches."""
import zlib

import torch

DIM, HEADS, LAYERS, CLASSES, SIZE, PATCH = 48, 4, 2, 10, 32, 8


def shapes():
    found = {"cls_token": (1, 1, DIM), "pos_embed": (1, (SIZE // PATCH) ** 2 + 1, DIM)}
    found["patch_embed.proj.weight"], found["patch_embed.proj.bias"] = (DIM, 3, PATCH, PATCH), (DIM,)
    for i in range(LAYERS):
        block = f"blocks.{i}."
        for name, rows, columns in (("attn.qkv", 3 * DIM, DIM), ("attn.proj", DIM, DIM), ("mlp.fc1", 2 * DIM, DIM), ("mlp.fc2", DIM, 2 * DIM)):
            found[f"{block}{name}.weight"], found[f"{block}{name}.bias"] = (rows, columns), (rows,)
        for name in ("norm1", "norm2"):
            found[f"{block}{name}.weight"] = found[f"{block}{name}.bias"] = (DIM,)
    found["norm.weight"] = found["norm.bias"] = (DIM,)
    found["head.weight"], found["head.bias"] = (CLASSES, DIM), (CLASSES,)
    return found


def state():
    made = {}
    for name, shape in shapes().items():
        value = torch.randn(shape, generator=torch.Generator().manual_seed(zlib.crc32(name.encode()))) * 0.1
        made[name] = value + 1 if "norm" in name and name.endswith("weight") else value
    return made


def batch(step):
    g = torch.Generator().manual_seed(40 + step)
    return torch.randn(4, 3, SIZE, SIZE, generator=g) * 0.5, torch.randint(0, CLASSES, (4,), generator=g)
