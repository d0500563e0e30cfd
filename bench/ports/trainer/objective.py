"""What is learned from one row: the words, smoothed, and what the teacher says."""
from recipe import IGNORED, PULL, SMOOTH


def surprise(logits, labels):
    """The sum over words: most of the weight on the label, SMOOTH of it on all words alike."""
    there = labels != IGNORED
    chances = logits[there].log_softmax(-1)
    right = chances.gather(-1, labels[there][:, None]).sum()
    return -(1 - SMOOTH) * right - SMOOTH * chances.mean(-1).sum()


def distance(logits, wanted, labels):
    """How much is lost in saying `logits` for `wanted`, summed over words."""
    there = labels != IGNORED
    mine, theirs = logits[there].log_softmax(-1), wanted[there].log_softmax(-1)
    return (theirs.exp() * (theirs - mine)).sum()


def objective(logits, wanted, labels, said):
    return (surprise(logits, labels) + PULL * distance(logits, wanted, labels)) / said
