"""The checkpoint in the reference's names, drawn by name, and the batches."""
import zlib

import torch

VOCAB, DIM, HEADS, KV_HEADS, HIDDEN, EXPERTS, CHOSEN, LAYERS, LENGTH = 96, 48, 4, 2, 64, 4, 2, 2, 20
WINDOW, BALANCE = 6, 0.1  # a query sees itself and five tokens before it; what an uneven use of experts costs


def shapes():
    kv = DIM // HEADS * KV_HEADS
    found = {"model.embed_tokens.weight": (VOCAB, DIM), "model.norm.weight": (DIM,), "lm_head.weight": (VOCAB, DIM)}
    for i in range(LAYERS):
        layer = f"model.layers.{i}."
        for name, rows in (("q_proj", DIM), ("k_proj", kv), ("v_proj", kv), ("o_proj", DIM)):
            found[f"{layer}self_attn.{name}.weight"] = (rows, DIM)
        found[f"{layer}mlp.gate.weight"] = (EXPERTS, DIM)
        found[f"{layer}mlp.experts.gate_up_proj"], found[f"{layer}mlp.experts.down_proj"] = (EXPERTS, 2 * HIDDEN, DIM), (EXPERTS, DIM, HIDDEN)
        found[f"{layer}input_layernorm.weight"] = found[f"{layer}post_attention_layernorm.weight"] = (DIM,)
    return found


def state():
    made = {}
    for name, shape in shapes().items():
        value = torch.randn(shape, generator=torch.Generator().manual_seed(zlib.crc32(name.encode())))
        made[name] = 1 + 0.1 * value if "norm" in name else value * (0.3 if "mlp.gate." in name else 0.15)
    return made


def batch(step):
    tokens = torch.randint(0, VOCAB, (2, LENGTH + 1), generator=torch.Generator().manual_seed(110 + step))
    return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
