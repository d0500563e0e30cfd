"""Whisper with a listener and a speaker. Convolutions are products of windows; the sound's keys and values are made once, for all layers, by one weight."""
import math

import torch
import torch.nn.functional as F
from torch import nn
from weights import BANDS, DIM, FRAMES, HEADS, HIDDEN, IGNORED, LAYERS, PAD, START, VOCAB, WORDS, batch, state

HEAD = DIM // HEADS


class Windows(nn.Module):
    """A convolution over three frames: every `every`-th window of (channels, frames), laid flat, times a matrix. Gives (frames, channels)."""
    def __init__(self, channels, every):
        super().__init__()
        self.every, self.product = every, nn.Linear(3 * channels, DIM)

    def forward(self, x):
        windows = F.pad(x, (1, 1)).unfold(2, 3, self.every)
        return F.gelu(self.product(windows.transpose(1, 2).flatten(2)))


def sines():
    """Of a frame's number, from fast to slow: DIM / 2 sines and as many cosines."""
    speeds = 10000 ** (-torch.arange(DIM // 2) / (DIM // 2 - 1))
    turns = torch.outer(torch.arange(FRAMES // 2), speeds)
    return torch.cat((turns.sin(), turns.cos()), dim=1)


def by_head(x):
    return x.unflatten(-1, (HEADS, HEAD)).transpose(1, 2)


def look(q, k, v, mask=0.0):
    """What each query finds, heads side by side again."""
    scores = by_head(q) @ by_head(k).mT / math.sqrt(HEAD)
    return (torch.softmax(scores + mask, dim=-1) @ by_head(v)).transpose(1, 2).flatten(2)


class Within(nn.Module):
    """Self attention. A key needs no bias: all scores of a query would move alike."""
    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(DIM), nn.Linear(DIM, 3 * DIM, bias=False), nn.Linear(DIM, DIM)
        self.q_bias, self.v_bias = nn.Parameter(torch.zeros(DIM)), nn.Parameter(torch.zeros(DIM))

    def forward(self, x, mask):
        q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
        return x + self.out(look(q + self.q_bias, k, v + self.v_bias, mask))


class Across(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.query, self.out = nn.LayerNorm(DIM), nn.Linear(DIM, DIM), nn.Linear(DIM, DIM)

    def forward(self, x, k, v):
        return x + self.out(look(self.query(self.norm(x)), k, v))


class Think(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(DIM), nn.Linear(DIM, HIDDEN), nn.Linear(HIDDEN, DIM)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Listener(nn.Module):
    def __init__(self):
        super().__init__()
        self.fine, self.coarse = Windows(BANDS, 1), Windows(DIM, 2)
        self.within, self.think, self.norm = nn.ModuleList(Within() for _ in range(LAYERS)), nn.ModuleList(Think() for _ in range(LAYERS)), nn.LayerNorm(DIM)

    def forward(self, sound):
        heard = self.coarse(self.fine(sound).mT)
        heard = heard + sines()
        for within, think in zip(self.within, self.think):
            heard = think(within(heard, 0.0))
        return self.norm(heard)


class Speaker(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCAB, DIM), nn.Parameter(torch.zeros(WORDS, DIM))
        self.memory = nn.Linear(DIM, 2 * LAYERS * DIM, bias=False)  # key and value of layer 0, key and value of layer 1, ...
        self.value_bias = nn.Parameter(torch.zeros(LAYERS, DIM))
        self.within, self.across, self.think = (nn.ModuleList(kind() for _ in range(LAYERS)) for kind in (Within, Across, Think))
        self.norm = nn.LayerNorm(DIM)

    def forward(self, words, heard):
        pairs = self.memory(heard).chunk(2 * LAYERS, dim=-1)
        keys, values = pairs[0::2], pairs[1::2]
        x = self.words(words) + self.places[: words.shape[1]]
        later = torch.full((words.shape[1], words.shape[1]), float("-inf")).triu(1)
        for i in range(LAYERS):
            x = self.within[i](x, later)
            x = self.across[i](x, keys[i], values[i] + self.value_bias[i])
            x = self.think[i](x)
        return F.linear(self.norm(x), self.words.weight)


class Whisperer(nn.Module):
    def __init__(self):
        super().__init__()
        self.listener, self.speaker = Listener(), Speaker()

    def forward(self, sound, words):
        """What was said before a word, and the sound, tell the word."""
        before = F.pad(words[:, :-1], (1, 0), value=START)
        before = before.masked_fill(before == IGNORED, PAD)
        said = self.speaker(before, self.listener(sound))
        return F.cross_entropy(said.flatten(0, 1), words.flatten(), ignore_index=IGNORED)


def translate(theirs):
    """The checkpoint by the names of this file. The table of sines is no parameter here."""
    theirs = {name.removeprefix("model."): value for name, value in theirs.items()}
    mine = {"speaker.words.weight": theirs["decoder.embed_tokens.weight"], "speaker.places": theirs["decoder.embed_positions.weight"]}
    for conv, ours in (("conv1", "fine"), ("conv2", "coarse")):
        mine[f"listener.{ours}.product.weight"] = theirs[f"encoder.{conv}.weight"].flatten(1)
        mine[f"listener.{ours}.product.bias"] = theirs[f"encoder.{conv}.bias"]
    memory = []
    for side, ours in (("encoder", "listener"), ("decoder", "speaker")):
        for what in ("weight", "bias"):
            mine[f"{ours}.norm.{what}"] = theirs[f"{side}.layer_norm.{what}"]
        for i in range(LAYERS):
            a, within, across, think = f"{side}.layers.{i}.", f"{ours}.within.{i}.", f"{ours}.across.{i}.", f"{ours}.think.{i}."
            same = {"self_attn_layer_norm": f"{within}norm", "self_attn.out_proj": f"{within}out"}
            same |= {"fc1": f"{think}up", "fc2": f"{think}down", "final_layer_norm": f"{think}norm"}
            mine[f"{within}qkv.weight"] = torch.cat([theirs[f"{a}self_attn.{n}_proj.weight"] for n in "qkv"])
            mine[f"{within}q_bias"], mine[f"{within}v_bias"] = theirs[f"{a}self_attn.q_proj.bias"], theirs[f"{a}self_attn.v_proj.bias"]
            if side == "decoder":
                same |= {"encoder_attn_layer_norm": f"{across}norm", "encoder_attn.q_proj": f"{across}query", "encoder_attn.out_proj": f"{across}out"}
                memory += [theirs[f"{a}encoder_attn.k_proj.weight"], theirs[f"{a}encoder_attn.v_proj.weight"]]
            for old, new in same.items():
                mine[f"{new}.weight"], mine[f"{new}.bias"] = theirs[f"{a}{old}.weight"], theirs[f"{a}{old}.bias"]
    mine["speaker.memory.weight"] = torch.cat(memory)
    mine["speaker.value_bias"] = torch.stack([theirs[f"decoder.layers.{i}.encoder_attn.v_proj.bias"] for i in range(LAYERS)])
    return mine


def main():
    torch.set_num_threads(1)
    whisperer = Whisperer()
    whisperer.load_state_dict(translate(state()))
    adamw = torch.optim.AdamW(whisperer.parameters(), lr=1e-3, eps=1e-3, foreach=False)
    for n in range(2):
        error = whisperer(*batch(n))
        error.backward()
        size = torch.nn.utils.get_total_norm([p.grad for p in whisperer.parameters()])
        adamw.step()
        adamw.zero_grad()
        print(f"step {n} loss {error.item():.9f} norm {size.item():.9f}", flush=True)


main()
