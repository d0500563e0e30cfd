"""transformers' Qwen3 (grouped queries, norms of queries and keys), cut by parallelize_module; the norms of a head are
whole on each rank, but see its own heads only, so their gradients are added up by hand."""
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from transformers import Qwen3Config, Qwen3ForCausalLM

WORLD = 2
DIMS = dict(batch=2, seq=3, vocab=6, hidden=4, heads=4, kv=2, head=4, inner=4, layers=2)


def model(d):
    return Qwen3ForCausalLM(Qwen3Config(
        vocab_size=d["vocab"], hidden_size=d["hidden"], intermediate_size=d["inner"], num_hidden_layers=d["layers"],
        num_attention_heads=d["heads"], num_key_value_heads=d["kv"], head_dim=d["head"], max_position_embeddings=16,
        tie_word_embeddings=False, use_cache=False, attn_implementation="eager"))


def laid_out(p):
    return p.grad.redistribute(placements=p.placements) if isinstance(p, DTensor) else p.grad


def build(net, d, finish):
    params = dict(net.named_parameters())
    ids = torch.zeros(d["batch"], d["seq"], dtype=torch.long)
    labels = torch.zeros(d["batch"], d["seq"], dtype=torch.long)

    def step():
        logits = net(input_ids=ids).logits
        loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        loss.backward()
        finish(params)
        return {"loss": loss, "logits": logits, **{"grad:" + n: laid_out(p) for n, p in params.items()}}
    return dict(state=params, tokens={"ids": ids, "labels": labels}, step=step)


def logical(d):
    return build(model(d), d, lambda params: None)


def plan(rank, d):
    net = model(d)
    mesh = init_device_mesh("cpu", (WORLD,))
    parallelize_module(net, mesh, {
        "model.embed_tokens": RowwiseParallel(input_layouts=Replicate()),
        "lm_head": ColwiseParallel(output_layouts=Replicate()),
    })
    for layer in net.model.layers:
        parallelize_module(layer, mesh, {
            "self_attn.q_proj": ColwiseParallel(), "self_attn.k_proj": ColwiseParallel(),
            "self_attn.v_proj": ColwiseParallel(), "self_attn.o_proj": RowwiseParallel(),
            "mlp.gate_proj": ColwiseParallel(), "mlp.up_proj": ColwiseParallel(), "mlp.down_proj": RowwiseParallel(),
        })

    def finish(params):
        for n, p in params.items():
            if n.endswith(("q_norm.weight", "k_norm.weight")):
                dist.all_reduce(p.grad)
    return build(net, d, finish)
