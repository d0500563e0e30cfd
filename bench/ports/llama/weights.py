"""The checkpoint in the reference's names, drawn by name, and the batches."""
import zlib

import torch

VOCAB, DIM, HEADS, KV_HEADS, HIDDEN, LAYERS, LENGTH = 96, 64, 4, 2, 96, 2, 16


def shapes():
    kv = DIM // HEADS * KV_HEADS
    found = {"model.embed_tokens.weight": (VOCAB, DIM), "model.norm.weight": (DIM,), "lm_head.weight": (VOCAB, DIM)}
    for i in range(LAYERS):
        block = f"model.layers.{i}."
        for name, rows, columns in (("self_attn.q_proj", DIM, DIM), ("self_attn.k_proj", kv, DIM), ("self_attn.v_proj", kv, DIM), ("self_attn.o_proj", DIM, DIM),
                                    ("mlp.gate_proj", HIDDEN, DIM), ("mlp.up_proj", HIDDEN, DIM), ("mlp.down_proj", DIM, HIDDEN)):
            found[f"{block}{name}.weight"] = (rows, columns)
        found[f"{block}input_layernorm.weight"] = found[f"{block}post_attention_layernorm.weight"] = (DIM,)
    return found


def state():
    made = {}
    for name, shape in shapes().items():
        value = torch.randn(shape, generator=torch.Generator().manual_seed(zlib.crc32(name.encode()))) * 0.1
        made[name] = value + 1 if "norm" in name else value
    return made


def batch(step):
    tokens = torch.randint(0, VOCAB, (2, LENGTH + 1), generator=torch.Generator().manual_seed(20 + step))
    return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
