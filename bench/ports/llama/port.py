"""Llama with Meta's names. --interleaved: Meta's rotation of neighbouring numbers, for which the rows of wq and wk are permuted."""
import argparse

import torch
import torch.nn.functional as F
from torch import nn
from weights import DIM, HEADS, HIDDEN, KV_HEADS, LAYERS, VOCAB, batch, state

HEAD = DIM // HEADS


class RMSNorm(nn.Module):
    def __init__(self, eps=1e-5):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.ones(DIM))

    def forward(self, x):
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        return x * scale * self.weight


def freqs_cis(length):
    freqs = 1.0 / (10000.0 ** (torch.arange(0, HEAD, 2).float() / HEAD))
    angles = torch.outer(torch.arange(length).float(), freqs)
    return torch.polar(torch.ones_like(angles), angles)


def apply_rotary_emb(x, cis, interleaved):
    if interleaved:
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * cis[None, :, None]).flatten(3)
    low, high = x.chunk(2, dim=-1)
    cos, sin = cis.real[None, :, None], cis.imag[None, :, None]
    return torch.cat((low * cos - high * sin, high * cos + low * sin), dim=-1)


def repeat_kv(x):
    return x.repeat_interleave(HEADS // KV_HEADS, dim=2)


class Attention(nn.Module):
    def __init__(self, interleaved):
        super().__init__()
        self.interleaved = interleaved
        self.wq = nn.Linear(DIM, HEADS * HEAD, bias=False)
        self.wk = nn.Linear(DIM, KV_HEADS * HEAD, bias=False)
        self.wv = nn.Linear(DIM, KV_HEADS * HEAD, bias=False)
        self.wo = nn.Linear(HEADS * HEAD, DIM, bias=False)

    def forward(self, x, cis):
        bsz, seqlen, _ = x.shape
        xq = self.wq(x).view(bsz, seqlen, HEADS, HEAD)
        xk = self.wk(x).view(bsz, seqlen, KV_HEADS, HEAD)
        xv = self.wv(x).view(bsz, seqlen, KV_HEADS, HEAD)
        xq = apply_rotary_emb(xq, cis, self.interleaved)
        xk = apply_rotary_emb(xk, cis, self.interleaved)
        keys, values = repeat_kv(xk), repeat_kv(xv)
        scores = torch.einsum("bqhd,bkhd->bhqk", xq, keys) / HEAD**0.5
        hidden = torch.ones(seqlen, seqlen, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(hidden, float("-inf"))
        weights = scores.softmax(-1)
        output = torch.einsum("bhqk,bkhd->bqhd", weights, values)
        return self.wo(output.reshape(bsz, seqlen, -1))


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1, self.w2, self.w3 = nn.Linear(DIM, HIDDEN, bias=False), nn.Linear(HIDDEN, DIM, bias=False), nn.Linear(DIM, HIDDEN, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class TransformerBlock(nn.Module):
    def __init__(self, interleaved):
        super().__init__()
        self.attention, self.feed_forward = Attention(interleaved), FeedForward()
        self.attention_norm, self.ffn_norm = RMSNorm(), RMSNorm()

    def forward(self, x, cis):
        h = x + self.attention(self.attention_norm(x), cis)
        return h + self.feed_forward(self.ffn_norm(h))


class Transformer(nn.Module):
    def __init__(self, interleaved):
        super().__init__()
        self.tok_embeddings = nn.Embedding(VOCAB, DIM)
        self.layers = nn.ModuleList(TransformerBlock(interleaved) for _ in range(LAYERS))
        self.norm, self.output = RMSNorm(), nn.Linear(DIM, VOCAB, bias=False)

    def forward(self, tokens):
        h = self.tok_embeddings(tokens)
        cis = freqs_cis(tokens.shape[1])
        for layer in self.layers:
            h = layer(h, cis)
        return self.output(self.norm(h))


MINE = {"self_attn.q_proj": "attention.wq", "self_attn.k_proj": "attention.wk", "self_attn.v_proj": "attention.wv", "self_attn.o_proj": "attention.wo",
        "mlp.gate_proj": "feed_forward.w1", "mlp.down_proj": "feed_forward.w2", "mlp.up_proj": "feed_forward.w3", "input_layernorm": "attention_norm",
        "post_attention_layernorm": "ffn_norm", "embed_tokens": "tok_embeddings", "lm_head": "output", "model.": ""}  # fmt: skip


def convert(checkpoint, interleaved):
    mine = {}
    for name, value in checkpoint.items():
        if interleaved and ("q_proj" in name or "k_proj" in name):
            heads = value.shape[0] // HEAD
            value = value.view(heads, 2, HEAD // 2, DIM).transpose(1, 2).reshape(value.shape)
        for theirs, ours in MINE.items():
            name = name.replace(theirs, ours)
        mine[name] = value
    return mine


def train(interleaved):
    model = Transformer(interleaved)
    model.load_state_dict(convert(state(), interleaved))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, eps=1e-3, foreach=False)
    for it in range(2):
        inputs, labels = batch(it)
        logits = model(inputs)
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        opt.zero_grad()
        loss.backward()
        total = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])
        opt.step()
        print(f"step {it} loss {loss.item():.9f} norm {total.item():.9f}", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser()
    parser.add_argument("--interleaved", action="store_true")
    train(parser.parse_args().interleaved)
