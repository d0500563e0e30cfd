"""Skip-gram with negative sampling on a topic-structured corpus, sparse gradients, SparseAdam."""
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
TOPICS, WORDS_PER_TOPIC, STOP = 6, 20, 10
VOCAB = STOP + TOPICS * WORDS_PER_TOPIC


def make_corpus(rng, sentences=400, length=12):
    """Every sentence has one topic; words inside a topic are Zipfian; a third are stop words."""
    zipf = 1.0 / np.arange(1, WORDS_PER_TOPIC + 1)
    zipf /= zipf.sum()
    corpus = []
    for _ in range(sentences):
        topic = rng.integers(TOPICS)
        words = STOP + topic * WORDS_PER_TOPIC + rng.choice(WORDS_PER_TOPIC, size=length, p=zipf)
        stop = rng.random(length) < 0.33
        words[stop] = rng.integers(0, STOP, stop.sum())
        corpus.append(words)
    return corpus


def subsample(corpus, counts, rng, t=5e-3):
    freq = counts / counts.sum()
    keep = np.minimum(1.0, np.sqrt(t / np.maximum(freq, 1e-12)))
    return [s[rng.random(len(s)) < keep[s]] for s in corpus]


def skipgram_pairs(corpus, rng, window=4):
    pairs = []
    for s in corpus:
        for i, center in enumerate(s):
            w = rng.integers(1, window + 1)  # dynamic window, as in the original code
            for j in range(max(0, i - w), min(len(s), i + w + 1)):
                if j != i:
                    pairs.append((center, s[j]))
    return np.array(pairs, dtype=np.int64)


class SkipGram(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.center = nn.Embedding(vocab, dim, sparse=True)
        self.context = nn.Embedding(vocab, dim, sparse=True)
        nn.init.uniform_(self.center.weight, -0.5 / dim, 0.5 / dim)
        nn.init.uniform_(self.context.weight, -0.5 / dim, 0.5 / dim)

    def forward(self, center, positive, negatives):
        c = self.center(center)
        pos = (c * self.context(positive)).sum(-1)
        neg = torch.einsum("bd,bkd->bk", c, self.context(negatives))
        return -(F.logsigmoid(pos) + F.logsigmoid(-neg).sum(-1)).mean()


@torch.no_grad()
def topic_purity(model, k=5):
    """How many of the k nearest neighbours of a topic word belong to the same topic."""
    w = F.normalize(model.center.weight[STOP:], dim=-1)
    sim = w @ w.T
    sim.fill_diagonal_(-1.0)
    near = sim.topk(k, dim=-1).indices // WORDS_PER_TOPIC
    own = (torch.arange(len(w)) // WORDS_PER_TOPIC).unsqueeze(1)
    return (near == own).float().mean().item()


def batches(pairs, size, rng):
    while True:
        order = rng.permutation(len(pairs))
        for i in range(0, len(order) - size + 1, size):
            yield torch.from_numpy(pairs[order[i:i + size]])


def main():
    rng = np.random.default_rng(SEED)
    torch.manual_seed(SEED)
    corpus = make_corpus(rng)
    counts = np.bincount(np.concatenate(corpus), minlength=VOCAB)
    pairs = skipgram_pairs(subsample(corpus, counts, rng), rng)
    noise = torch.from_numpy(counts ** 0.75).float()
    print("pairs", len(pairs), "vocab", VOCAB)

    model = SkipGram(VOCAB, 24)
    opt = torch.optim.SparseAdam(model.parameters(), lr=0.05)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: max(0.05, 1 - s / STEPS))
    print("purity before", f"{topic_purity(model):.3f}")
    stream = batches(pairs, 512, rng)
    for step in range(STEPS):
        batch = next(stream)
        negatives = torch.multinomial(noise, len(batch) * 5, replacement=True).view(len(batch), 5)
        loss = model(batch[:, 0], batch[:, 1], negatives)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        print(step, f"loss {loss.item():.4f}")
    print("purity after", f"{topic_purity(model):.3f}")


if __name__ == "__main__":
    main()
