import torch
from torch import nn
import torch.nn.functional as F


class TextEncoder(nn.Module):
    def __init__(self, vocab, d):
        super().__init__()
        self.embed = nn.Embedding(vocab, d, padding_idx=0)
        self.mix = nn.Conv1d(d, d, 3, padding=1)
        self.proj = nn.Linear(d, d)

    def forward(self, ids):
        h = self.mix(self.embed(ids).transpose(1, 2)).amax(-1)
        return F.normalize(self.proj(F.gelu(h)), dim=-1)


class DualEncoder(nn.Module):
    def __init__(self, vocab, d):
        super().__init__()
        self.query = TextEncoder(vocab, d)
        self.passage = TextEncoder(vocab, d)

    @torch.no_grad()
    def encode_passages(self, ids, chunk=4):
        return torch.cat([self.passage(part) for part in ids.split(chunk)])

    def forward(self, query, passage):
        return self.query(query), self.encode_passages(passage)
