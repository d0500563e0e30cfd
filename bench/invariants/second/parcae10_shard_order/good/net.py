import torch
from torch import nn


class TinyLM(nn.Module):
    """Tokens in, scores of the next token out: an LSTM between an embedding and a projection."""

    def __init__(self, vocabulary, width=24):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.project = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        hidden, _ = self.lstm(self.embed(tokens))
        return self.project(hidden)

    def loss(self, tokens):
        scores = self(tokens[:, :-1])
        return nn.functional.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten())


class LossOf(nn.Module):
    """What DistributedDataParallel wraps: the model together with its loss."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens: torch.Tensor):
        return self.model.loss(tokens)
