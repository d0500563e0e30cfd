"""The checkpoint in the reference's names, drawn by name, and the pictures."""
import zlib

import torch

DEPTHS, DIMS, CLASSES, SIZE, PATCH, KERNEL = (1, 1, 2, 1), (12, 16, 24, 32), 10, 64, 4, 7
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of red, green and blue


def shapes():
    found = {"stem.0.weight": (DIMS[0], 3, PATCH, PATCH), "stem.0.bias": (DIMS[0],), "stem.1.weight": (DIMS[0],), "stem.1.bias": (DIMS[0],)}
    for i, (depth, dim) in enumerate(zip(DEPTHS, DIMS)):
        if i:
            before = DIMS[i - 1]
            found[f"stages.{i}.downsample.0.weight"] = found[f"stages.{i}.downsample.0.bias"] = (before,)
            found[f"stages.{i}.downsample.1.weight"], found[f"stages.{i}.downsample.1.bias"] = (dim, before, 2, 2), (dim,)
        for j in range(depth):
            block = f"stages.{i}.blocks.{j}."
            found[f"{block}gamma"] = found[f"{block}conv_dw.bias"] = found[f"{block}norm.weight"] = found[f"{block}norm.bias"] = (dim,)
            found[f"{block}conv_dw.weight"] = (dim, 1, KERNEL, KERNEL)
            found[f"{block}mlp.fc1.weight"], found[f"{block}mlp.fc1.bias"] = (4 * dim, dim), (4 * dim,)
            found[f"{block}mlp.grn.weight"] = found[f"{block}mlp.grn.bias"] = (4 * dim,)
            found[f"{block}mlp.fc2.weight"], found[f"{block}mlp.fc2.bias"] = (dim, 4 * dim), (dim,)
    found["head.norm.weight"] = found["head.norm.bias"] = (DIMS[-1],)
    found["head.fc.weight"], found["head.fc.bias"] = (CLASSES, DIMS[-1]), (CLASSES,)
    return found


def state():
    made = {}
    for name, shape in shapes().items():
        value = torch.randn(shape, generator=torch.Generator().manual_seed(zlib.crc32(name.encode())))
        norm = "norm" in name or "stem.1" in name or "downsample.0" in name
        wide = 1.0 if "grn" in name else 0.2
        made[name] = 0.5 + 0.1 * value if "gamma" in name else 1 + 0.1 * value if norm and name.endswith("weight") else wide * value
    return made


def batch(step):
    """Pictures as a file has them, bytes in rows of pixels; the classes."""
    g = torch.Generator().manual_seed(140 + step)
    coarse = torch.randint(0, 200, (4, SIZE // 8, SIZE // 8, 3), generator=g)
    pictures = coarse.repeat_interleave(8, 1).repeat_interleave(8, 2) + torch.randint(0, 56, (4, SIZE, SIZE, 3), generator=g)
    return pictures.to(torch.uint8), torch.randint(0, CLASSES, (4,), generator=g)
