"""The checkpoint in the reference's names, drawn by name, and the batches."""
import zlib

import torch

VOCAB, DIM, HEADS, HIDDEN, LAYERS, LENGTH, BUCKETS, FARTHEST = 96, 48, 4, 96, 2, 20, 8, 16


def shapes():
    found = {"shared.weight": (VOCAB, DIM)}
    for side, parts in (("encoder", ("SelfAttention", "DenseReluDense")), ("decoder", ("SelfAttention", "EncDecAttention", "DenseReluDense"))):
        for i in range(LAYERS):
            for j, part in enumerate(parts):
                layer = f"{side}.block.{i}.layer.{j}."
                found[f"{layer}layer_norm.weight"] = (DIM,)
                if part == "DenseReluDense":
                    found[f"{layer}{part}.wi.weight"], found[f"{layer}{part}.wo.weight"] = (HIDDEN, DIM), (DIM, HIDDEN)
                else:
                    found.update({f"{layer}{part}.{n}.weight": (DIM, DIM) for n in "qkvo"})
        found[f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"] = (BUCKETS, HEADS)
        found[f"{side}.final_layer_norm.weight"] = (DIM,)
    return found


def state():
    made = {}
    for name, shape in shapes().items():
        value = torch.randn(shape, generator=torch.Generator().manual_seed(zlib.crc32(name.encode())))
        made[name] = 1 + 0.1 * value if "norm" in name else value * (1.0 if "shared" in name or "bias" in name else 0.12)
    for name in ("encoder.embed_tokens", "decoder.embed_tokens", "lm_head"):
        made[f"{name}.weight"] = made["shared.weight"]
    return made


def batch(step):
    """what is read, what is to be written"""
    g = torch.Generator().manual_seed(80 + step)
    return torch.randint(2, VOCAB, (2, LENGTH), generator=g), torch.randint(2, VOCAB, (2, LENGTH - 8), generator=g)
