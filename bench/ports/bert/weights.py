"""The checkpoint in the reference's names, drawn by name, and the batches."""
import zlib

import torch

VOCAB, DIM, HEADS, HIDDEN, LAYERS, LENGTH = 96, 48, 4, 96, 2, 16


def shapes():
    found = {f"bert.embeddings.{n}_embeddings.weight": (size, DIM) for n, size in (("word", VOCAB), ("position", 32), ("token_type", 2))}
    dense = [("cls.predictions.transform.dense", DIM, DIM)]
    norms = ["bert.embeddings.LayerNorm", "cls.predictions.transform.LayerNorm"]
    for i in range(LAYERS):
        layer = f"bert.encoder.layer.{i}."
        dense += [(f"{layer}attention.self.{n}", DIM, DIM) for n in ("query", "key", "value")]
        dense += [(f"{layer}attention.output.dense", DIM, DIM), (f"{layer}intermediate.dense", HIDDEN, DIM), (f"{layer}output.dense", DIM, HIDDEN)]
        norms += [f"{layer}attention.output.LayerNorm", f"{layer}output.LayerNorm"]
    for name, rows, columns in dense:
        found[f"{name}.weight"], found[f"{name}.bias"] = (rows, columns), (rows,)
    for name in norms:
        found[f"{name}.weight"] = found[f"{name}.bias"] = (DIM,)
    found["cls.predictions.bias"] = (VOCAB,)
    return found


def state():
    made = {}
    for name, shape in shapes().items():
        value = torch.randn(shape, generator=torch.Generator().manual_seed(zlib.crc32(name.encode()))) * 0.15
        made[name] = value + 1 if "Norm.weight" in name else value
    made["cls.predictions.decoder.weight"] = made["bert.embeddings.word_embeddings.weight"]
    made["cls.predictions.decoder.bias"] = made["cls.predictions.bias"]
    return made


def batch(step):
    """tokens, which of them are no padding, segments, labels (-100: not masked)"""
    g = torch.Generator().manual_seed(60 + step)
    tokens = torch.randint(1, VOCAB, (3, LENGTH), generator=g)
    real = torch.arange(LENGTH) < torch.tensor([[LENGTH], [LENGTH - 5], [LENGTH - 2]])
    segments = (torch.arange(LENGTH) >= 7).long().expand(3, -1).contiguous()
    labels = torch.where((torch.rand(3, LENGTH, generator=g) < 0.3) & real, tokens, -100)
    return torch.where(labels != -100, 3, tokens) * real, real.long(), segments, labels
