"""transformers' ALBERT in a pipeline (GPipe by hand): all layers share their weights, so both stages hold them and add up
their gradients; a masked-word head whose decoder is the factorised embedding of the first stage."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from transformers import AlbertConfig, AlbertForMaskedLM

WORLD = 2
DIMS = dict(micros=2, rows=2, seq=3, vocab=5, emb=4, hidden=4, heads=2, inner=4, layers=4)
LR = 0.1


def model(d):
    return AlbertForMaskedLM(AlbertConfig(
        vocab_size=d["vocab"], embedding_size=d["emb"], hidden_size=d["hidden"], num_hidden_layers=d["layers"],
        num_hidden_groups=1, num_attention_heads=d["heads"], intermediate_size=d["inner"], max_position_embeddings=4,
        type_vocab_size=2, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, classifier_dropout_prob=0.0,
        pad_token_id=None, attn_implementation="eager"))


def run_layers(net, x, count):
    layer = net.albert.encoder.albert_layer_groups[0].albert_layers[0]
    for _ in range(count):
        x = layer(x)
        x = x[0] if isinstance(x, tuple) else x
    return x


def embed(net, ids):
    return net.albert.encoder.embedding_hidden_mapping_in(net.albert.embeddings(input_ids=ids))


def word_loss(net, x, labels):
    logits = net.predictions(x)
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def used(net):
    return {n: p for n, p in net.named_parameters() if "pooler" not in n}


def tokens(d):
    shape = (d["micros"], d["rows"], d["seq"])
    return {"ids": torch.zeros(shape, dtype=torch.long), "labels": torch.zeros(shape, dtype=torch.long)}


def update(params):
    out = {"grad:" + n: p.grad.clone() for n, p in params.items()}
    with torch.no_grad():
        for p in params.values():
            p -= LR * p.grad
    return {**out, **{"new:" + n: p for n, p in params.items()}}


def logical(d):
    net = model(d)
    params, t = used(net), tokens(d)

    def step():
        loss = 0
        for i in range(d["micros"]):
            loss = loss + word_loss(net, run_layers(net, embed(net, t["ids"][i]), d["layers"]), t["labels"][i]) / d["micros"]
        loss.backward()
        return {"loss": loss, **update(params)}
    return dict(state=params, tokens=t, step=step)


def plan(rank, d):
    net = model(d)
    t = tokens(d)
    shared = ("albert_layer_groups", "word_embeddings")
    ends = (("embeddings", "embedding_hidden_mapping_in"), ("predictions",))[rank]
    params = {n: p for n, p in used(net).items() if any(s in n for s in shared + ends)}
    half = d["layers"] // WORLD
    shape = (d["rows"], d["seq"], d["hidden"])

    def step():
        saved, loss = [], torch.zeros(())
        for i in range(d["micros"]):
            if rank == 0:
                x = embed(net, t["ids"][i])
                y = run_layers(net, x, half)
                dist.send(y.detach().contiguous(), 1, tag=i)
            else:
                x = torch.empty(shape)
                dist.recv(x, 0, tag=i)
                x.requires_grad_()
                y = word_loss(net, run_layers(net, x, half), t["labels"][i]) / d["micros"]
                loss = loss + y.detach()
            saved.append((x, y))
        for i in reversed(range(d["micros"])):
            x, y = saved.pop()
            if rank == 1:
                y.backward()
                dist.send(x.grad.contiguous(), 0, tag=i)
            else:
                g = torch.empty(shape)
                dist.recv(g, 1, tag=i)
                y.backward(g)
        for n in sorted(params):
            if any(s in n for s in shared):
                dist.all_reduce(params[n].grad)
        out = update(params)
        if rank == 1:
            out["loss"] = loss
        return out
    return dict(state=params, tokens={"ids": t["ids"]} if rank == 0 else {"labels": t["labels"]}, step=step)
