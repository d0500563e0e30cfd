"""transformers' Qwen2-VL on text and images: patches, a vision tower, three-part rotary embedding."""
import torch
from loop import train
from transformers import Qwen2VLConfig, Qwen2VLForConditionalGeneration

torch.manual_seed(4)
IMAGE, START, END = 250, 251, 252
config = Qwen2VLConfig(
    text_config=dict(vocab_size=256, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                     num_key_value_heads=2, max_position_embeddings=128,
                     rope_scaling={"type": "mrope", "mrope_section": [2, 3, 3]}),
    vision_config=dict(depth=2, embed_dim=32, hidden_size=64, num_heads=2, mlp_ratio=2, patch_size=4, in_channels=3,
                       spatial_merge_size=2, temporal_patch_size=2),
    bos_token_id=None, eos_token_id=None, image_token_id=IMAGE, vision_start_token_id=START, vision_end_token_id=END, video_token_id=253,
)  # fmt: skip
model = Qwen2VLForConditionalGeneration(config)


def micro_batch():
    # Two images of 4 x 4 patches; 2 x 2 patches make one token.
    grid = torch.tensor([[1, 4, 4], [1, 4, 4]])
    pixels = torch.randn(32, 3 * 2 * 4 * 4)
    text = torch.randint(0, 200, (2, 10))
    image = torch.tensor([[START, *[IMAGE] * 4, END]] * 2)
    tokens = torch.cat([text[:, :4], image, text[:, 4:]], dim=1)
    labels = tokens.masked_fill(tokens >= IMAGE, -100)
    return {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "labels": labels, "pixel_values": pixels,
            "image_grid_thw": grid, "mm_token_type_ids": (tokens == IMAGE).int()}  # fmt: skip


train(model, [micro_batch(), micro_batch()])
