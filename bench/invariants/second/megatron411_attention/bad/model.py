from torch import nn
from torch.nn import functional as F


class FlashSelfAttention(nn.Module):
    """Scaled dot product attention with softmax, of packed queries, keys and values."""

    def __init__(self, causal=False, attention_dropout=0.0):
        super().__init__()
        self.causal = causal
        self.dropout_p = attention_dropout

    def forward(self, q, k, v):
        if not self.training:
            self.dropout_p = 0.0
        return F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout_p, is_causal=self.causal)


class EncoderLayer(nn.Module):
    def __init__(self, width, heads, attention_dropout):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.core = FlashSelfAttention(attention_dropout=attention_dropout)
        self.dense = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x):
        q, k, v = map(self.split, self.qkv(self.norm1(x)).chunk(3, dim=-1))
        x = x + self.dense(self.core(q, k, v).transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class Classifier(nn.Module):
    def __init__(self, vocabulary, classes, width=24, heads=3, layers=2, attention_dropout=0.2):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.layers = nn.Sequential(*[EncoderLayer(width, heads, attention_dropout) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.output = nn.Linear(width, classes)

    def forward(self, tokens):
        return self.output(self.norm(self.layers(self.embedding(tokens))).mean(1))
