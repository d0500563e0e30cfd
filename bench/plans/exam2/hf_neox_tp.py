"""transformers' GPT-NeoX, tensor parallel by hand: fused qkv by head, parallel residual, vocabulary-cut head whose logits
are gathered; SGD."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

WORLD = 2
DIMS = dict(batch=2, seq=3, vocab=6, hidden=8, heads=4, inner=4, layers=2)


class Copy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        g = g.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(g)
        return g


class Reduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g


class GatherLast(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, rank):
        ctx.rank = rank
        parts = [torch.empty_like(x) for _ in range(WORLD)]
        dist.all_gather(parts, x.contiguous())
        return torch.cat(parts, -1)

    @staticmethod
    def backward(ctx, g):
        return g.chunk(WORLD, -1)[ctx.rank].contiguous(), None


class Column(nn.Linear):
    def forward(self, x):
        return super().forward(Copy.apply(x))


class Row(nn.Linear):
    def forward(self, x):
        return Reduce.apply(F.linear(x, self.weight)) + self.bias


class Head(nn.Linear):
    rank = 0

    def forward(self, x):
        return GatherLast.apply(F.linear(Copy.apply(x), self.weight), self.rank)


def model(d):
    return GPTNeoXForCausalLM(GPTNeoXConfig(
        vocab_size=d["vocab"], hidden_size=d["hidden"], num_hidden_layers=d["layers"], num_attention_heads=d["heads"],
        intermediate_size=d["inner"], max_position_embeddings=16, rotary_pct=1.0, use_parallel_residual=True,
        hidden_dropout=0.0, attention_dropout=0.0, tie_word_embeddings=False, use_cache=False,
        attn_implementation="eager"))


def build(net, d):
    params = dict(net.named_parameters())
    ids = torch.zeros(d["batch"], d["seq"], dtype=torch.long)
    labels = torch.zeros(d["batch"], d["seq"], dtype=torch.long)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.0, weight_decay=0.05, foreach=False)

    def step():
        logits = net(input_ids=ids).logits
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        loss.backward()
        grads = {"grad:" + n: p.grad.clone() for n, p in params.items()}
        optimizer.step()
        return {"loss": loss, "logits": logits, **grads, **{"new:" + n: p for n, p in params.items()}}
    return dict(state=params, tokens={"ids": ids, "labels": labels}, step=step)


def logical(d):
    return build(model(d), d)


def plan(rank, d):
    net = model(d)
    h = d["hidden"]
    for layer in net.gpt_neox.layers:
        layer.attention.query_key_value = Column(h, 3 * h // WORLD)
        layer.attention.dense = Row(h // WORLD, h)
        layer.mlp.dense_h_to_4h = Column(h, d["inner"] // WORLD)
        layer.mlp.dense_4h_to_h = Row(d["inner"] // WORLD, h)
    name = "embed_out" if hasattr(net, "embed_out") else "lm_head"
    head = Head(h, d["vocab"] // WORLD, bias=False)
    head.rank = rank
    setattr(net, name, head)

    def place(name, full):
        if "query_key_value" in name or "dense_h_to_4h" in name or name.startswith(("embed_out", "lm_head")):
            return full.chunk(WORLD, 0)[rank]
        if name.endswith(("dense.weight", "dense_4h_to_h.weight")):
            return full.chunk(WORLD, 1)[rank]
        return full
    return dict(build(net, d), place=place)
