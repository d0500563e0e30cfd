import torch
from torch import nn
from torch.nn import functional as F


class ArcFaceLoss(nn.Module):
    """Additive angular margin. The classes' centres are parameters of the loss."""

    def __init__(self, num_classes, embedding_size, margin=0.2, scale=16.0):
        super().__init__()
        self.W = nn.Parameter(torch.empty(num_classes, embedding_size))
        nn.init.xavier_uniform_(self.W)
        self.margin, self.scale = margin, scale

    def forward(self, embeddings, labels):
        cosine = F.linear(F.normalize(embeddings), F.normalize(self.W)).clamp(-1 + 1e-6, 1 - 1e-6)
        target = F.one_hot(labels, len(self.W)).bool()
        logits = torch.where(target, torch.cos(torch.acos(cosine) + self.margin), cosine)
        return F.cross_entropy(self.scale * logits, labels)
