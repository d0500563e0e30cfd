"""Two SGD steps of one tiny language model."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch
torch.library.define("torchvision::nms", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
import transformers as T

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--model"); p.add_argument("--dtype"); o = p.parse_args()
oracle.setup(0)
sizes = dict(vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=64)
old = dict(n_embd=32, n_layer=2, n_head=4, n_positions=64, rotary_dim=4)
more = {"Mistral": dict(num_key_value_heads=2, sliding_window=8), "Qwen2": dict(num_key_value_heads=2), "Llama": dict(num_key_value_heads=2), "Cohere": dict(num_key_value_heads=2),
        "CodeGen": old, "GPT2": old, "Mamba": dict(state_size=4), "Bloom": dict(n_layer=2, n_head=4), "Gemma2": dict(num_key_value_heads=2, head_dim=8),
        "Mixtral": dict(num_key_value_heads=2, num_local_experts=4), "Olmo": dict(num_key_value_heads=2), "StableLm": dict(num_key_value_heads=2),
        "OPT": dict(ffn_dim=48, word_embed_proj_dim=32), "XGLM": dict(d_model=32, ffn_dim=48, num_layers=2, attention_heads=4),
        "Qwen2Moe": dict(num_key_value_heads=2, num_experts=4, moe_intermediate_size=16, shared_expert_intermediate_size=16, decoder_sparse_step=1)}.get(o.model, {})
config = getattr(T, o.model + "Config")(**{**sizes, **more}); config._attn_implementation = "eager"
model = getattr(T, {"GPT2": "GPT2LMHeadModel"}.get(o.model, o.model + "ForCausalLM"))(config)
oracle.reinit(model, std=0.1)
model = model.to(getattr(torch, o.dtype)); model.train()
for module in model.modules():
    if isinstance(module, torch.nn.Dropout):
        module.p = 0.0
torch.manual_seed(1)
ids = torch.randint(3, 96, (2, 20)); mask = torch.ones_like(ids); mask[1, 14:] = 0
opt = torch.optim.SGD(model.parameters(), lr=0.1)
with oracle.record(o.dump):
    for step in range(2):
        loss = model(input_ids=ids, attention_mask=mask, labels=ids).loss
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
