"""BERT of plain functions over a dictionary of tensors, as ports to other frameworks are written."""
import math

import torch
import torch.nn.functional as F
from weights import DIM, HEADS, LAYERS, VOCAB, batch, state


def load():
    """The checkpoint without "bert.encoder.", query, key and value in one."""
    theirs, p = state(), {}
    for name, value in theirs.items():
        if ".self." not in name and "decoder" not in name:
            p[name.replace("bert.encoder.layer.", "l").replace("bert.embeddings.", "emb.").replace("cls.predictions.", "mlm.")] = value.clone()
    for i in range(LAYERS):
        for what in ("weight", "bias"):
            p[f"l{i}.qkv.{what}"] = torch.cat([theirs[f"bert.encoder.layer.{i}.attention.self.{n}.{what}"] for n in ("query", "key", "value")])
    return {name: value.requires_grad_() for name, value in p.items()}


def dense(p, name, x):
    return x @ p[f"{name}.weight"].T + p[f"{name}.bias"]


def norm(p, name, x):
    mean = x.mean(-1, keepdim=True)
    var = x.var(-1, unbiased=False, keepdim=True)
    return (x - mean) / torch.sqrt(var + 1e-12) * p[f"{name}.weight"] + p[f"{name}.bias"]


def embed(p, tokens, segments):
    x = p["emb.word_embeddings.weight"][tokens]
    x = x + p["emb.position_embeddings.weight"][: tokens.shape[1]]
    x = x + p["emb.token_type_embeddings.weight"][segments]
    return norm(p, "emb.LayerNorm", x)


def attend(p, layer, x, real):
    b, t, _ = x.shape
    q, k, v = dense(p, f"{layer}.qkv", x).view(b, t, 3, HEADS, DIM // HEADS).permute(2, 0, 3, 1, 4)
    scores = q @ k.transpose(-1, -2) / math.sqrt(DIM // HEADS)
    scores = scores + (1 - real.float())[:, None, None, :] * -1e9
    return (F.softmax(scores, -1) @ v).transpose(1, 2).reshape(b, t, DIM)


def feed_forward(p, layer, x):
    h = dense(p, f"{layer}.intermediate.dense", x)
    h = 0.5 * h * (1 + torch.erf(h / math.sqrt(2)))
    return dense(p, f"{layer}.output.dense", h)


def encode(p, x, real):
    for i in range(LAYERS):
        a = dense(p, f"l{i}.attention.output.dense", attend(p, f"l{i}", x, real))
        x = norm(p, f"l{i}.attention.output.LayerNorm", x + a)
        x = norm(p, f"l{i}.output.LayerNorm", x + feed_forward(p, f"l{i}", x))
    return x


def predict(p, x):
    h = F.gelu(dense(p, "mlm.transform.dense", x))
    h = norm(p, "mlm.transform.LayerNorm", h)
    return h @ p["emb.word_embeddings.weight"].T + p["mlm.bias"]


def step(p, opt, number):
    tokens, real, segments, labels = batch(number)
    logits = predict(p, encode(p, embed(p, tokens, segments), real))
    loss = F.cross_entropy(logits.view(-1, VOCAB), labels.view(-1), ignore_index=-100)
    loss.backward()
    total = torch.nn.utils.get_total_norm([v.grad for v in p.values() if v.grad is not None])
    opt.step()
    opt.zero_grad()
    print(f"step {number} loss {loss.item():.9f} norm {total.item():.9f}", flush=True)


torch.set_num_threads(1)
params = load()
adamw = torch.optim.AdamW(params.values(), lr=1e-3, eps=1e-3, foreach=False)
for n in range(2):
    step(params, adamw, n)
