"""The checkpoint in the reference's names, drawn by name, and the batches."""
import math
import zlib

import torch

VOCAB, DIM, HEADS, HIDDEN, LAYERS, BANDS, FRAMES, WORDS = 96, 48, 4, 96, 2, 8, 48, 12
PAD, START, IGNORED = 0, 3, -100


def shapes():
    found = {"encoder.conv1.weight": (DIM, BANDS, 3), "encoder.conv1.bias": (DIM,), "encoder.conv2.weight": (DIM, DIM, 3), "encoder.conv2.bias": (DIM,)}
    found["decoder.embed_tokens.weight"], found["decoder.embed_positions.weight"] = (VOCAB, DIM), (WORDS, DIM)
    for side in ("encoder", "decoder"):
        for i in range(LAYERS):
            layer = f"{side}.layers.{i}."
            for part in ("self_attn", "encoder_attn") if side == "decoder" else ("self_attn",):
                for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    found[f"{layer}{part}.{name}.weight"] = (DIM, DIM)
                    if name != "k_proj":
                        found[f"{layer}{part}.{name}.bias"] = (DIM,)
                found[f"{layer}{part}_layer_norm.weight"] = found[f"{layer}{part}_layer_norm.bias"] = (DIM,)
            found[f"{layer}fc1.weight"], found[f"{layer}fc1.bias"] = (HIDDEN, DIM), (HIDDEN,)
            found[f"{layer}fc2.weight"], found[f"{layer}fc2.bias"] = (DIM, HIDDEN), (DIM,)
            found[f"{layer}final_layer_norm.weight"] = found[f"{layer}final_layer_norm.bias"] = (DIM,)
        found[f"{side}.layer_norm.weight"] = found[f"{side}.layer_norm.bias"] = (DIM,)
    return found


def waves():
    """A row for each frame: sines of it, from fast to slow, and then their cosines. It is in the checkpoint and not trained."""
    speeds = torch.exp(-math.log(10000) / (DIM // 2 - 1) * torch.arange(DIM // 2))
    angles = torch.arange(FRAMES // 2)[:, None] * speeds
    return torch.cat((angles.sin(), angles.cos()), dim=1)


def state():
    made = {"model.encoder.embed_positions.weight": waves()}
    for name, shape in shapes().items():
        value = torch.randn(shape, generator=torch.Generator().manual_seed(zlib.crc32(name.encode())))
        size = 0.3 if "q_proj" in name or "k_proj" in name else 0.15
        made[f"model.{name}"] = 1 + 0.1 * value if "norm" in name and name.endswith("weight") else value * size
    made["proj_out.weight"] = made["model.decoder.embed_tokens.weight"]
    return made


def batch(step):
    """Sound as bands over frames, and the words that are said in it: the second example has fewer."""
    g = torch.Generator().manual_seed(160 + step)
    sound, words = torch.randn(2, BANDS, FRAMES, generator=g), torch.randint(4, VOCAB, (2, WORDS), generator=g)
    words[1, WORDS - 4 :] = IGNORED
    return sound, words
