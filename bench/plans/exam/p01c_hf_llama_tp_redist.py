"""transformers' Llama (GQA, rotary), cut by transformers' own tensor-parallel plan; AdamW."""
import torch
from torch.distributed.device_mesh import init_device_mesh
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.distributed.tensor_parallel import apply_tensor_parallelism
from transformers.distributed import DistributedConfig

WORLD = 2
DIMS = dict(batch=2, seq=4, hidden=16, heads=4, kv=2, ffn=12, vocab=8, layers=2)
ATTN = "eager"

def make(d):
    c = LlamaConfig(vocab_size=d["vocab"], hidden_size=d["hidden"], intermediate_size=d["ffn"],
                    num_hidden_layers=d["layers"], num_attention_heads=d["heads"], num_key_value_heads=d["kv"],
                    max_position_embeddings=32, attn_implementation=ATTN, use_cache=False)
    return LlamaForCausalLM(c)

def train(model, d):
    ids = torch.randint(0, d["vocab"], (d["batch"], d["seq"]))
    labels = torch.randint(0, d["vocab"], (d["batch"], d["seq"]))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1, foreach=False)
    params = dict(model.named_parameters())
    def step():
        loss = model(input_ids=ids, labels=labels).loss
        loss.backward()
        r = {"loss": loss.detach()}
        for n, p in params.items():
            g = p.grad
            if hasattr(g, "placements") and g.placements != p.placements: g = g.redistribute(p.device_mesh, p.placements)
            r["grad:" + n] = g
        opt.step()
        for n, p in params.items():
            r["new:" + n] = p
        return r
    return dict(state=params, tokens=dict(ids=ids, labels=labels), step=step)

def logical(d):
    return train(make(d), d)

def plan(rank, d):
    model = make(d)
    mesh = init_device_mesh("cpu", (WORLD,), mesh_dim_names=("tp",))
    tp_plan, _, _ = model._resolve_parallel_plans(DistributedConfig(tp_size=WORLD))
    apply_tensor_parallelism(model, mesh, tp_plan)
    return train(model, d)
