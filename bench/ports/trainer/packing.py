"""Documents end to end in rows, as kernels for sequences of different lengths want them: words, and where each document begins."""
import torch
from recipe import IGNORED, ROW


class Packed:
    def __init__(self, parts):
        self.words = torch.cat(parts)
        self.starts = torch.tensor([0, *(len(part) for part in parts)]).cumsum(0)

    def owner(self):
        """The number of each word's document."""
        return torch.bucketize(torch.arange(len(self.words)), self.starts[1:], right=True)

    def places(self):
        return torch.arange(len(self.words)) - self.starts[self.owner()]

    def mask(self):
        owner, at = self.owner(), torch.arange(len(self.words))
        return (owner[:, None] == owner[None, :]) & (at[:, None] >= at[None, :])

    def labels(self):
        """The next word; none behind a document's last."""
        labels = self.words.roll(-1)
        labels[self.starts[1:] - 1] = IGNORED
        return labels


def pack(documents):
    """Rows of at most ROW words, each begun when the next document does not fit."""
    room, parts = ROW, []
    for document in documents:
        if len(document) > room:
            yield Packed(parts)
            room, parts = ROW, []
        parts.append(document)
        room -= len(document)
    if parts:
        yield Packed(parts)
