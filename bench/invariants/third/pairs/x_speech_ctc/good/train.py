"""A small CTC recogniser: convolutional front end, recurrent encoder, greedy decoding."""
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
PHONES, MELS, BLANK = 10, 20, 0


class Utterances(Dataset):
    """Every phone has a spectral shape and lasts four to eight frames."""

    def __init__(self, n, seed):
        shapes = torch.randn(PHONES + 1, MELS, generator=torch.Generator().manual_seed(1234 + SEED))
        g = torch.Generator().manual_seed(seed)
        self.items = []
        for _ in range(n):
            length = int(torch.randint(3, 8, (), generator=g))
            target = torch.randint(1, PHONES + 1, (length,), generator=g)
            durations = torch.randint(4, 9, (length,), generator=g)
            feats = shapes[target.repeat_interleave(durations)]
            self.items.append((feats + 0.3 * torch.randn(feats.shape, generator=g), target))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def pad_collate(items):
    feats, targets = zip(*items)
    feat_lengths = torch.tensor([len(f) for f in feats])
    target_lengths = torch.tensor([len(t) for t in targets])
    feats = nn.utils.rnn.pad_sequence(feats, batch_first=True)
    return feats, feat_lengths, torch.cat(targets), target_lengths


class Subsampling(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.conv = nn.Conv1d(MELS, d, kernel_size=3, stride=2, padding=1)
        self.norm = nn.LayerNorm(d)

    def forward(self, x, lengths):
        x = self.conv(x.transpose(1, 2)).transpose(1, 2)
        return F.relu(self.norm(x)), (lengths + 1) // 2


class Encoder(nn.Module):
    def __init__(self, d=48, layers=2):
        super().__init__()
        self.subsampling = Subsampling(d)
        self.rnn = nn.GRU(d, d, num_layers=layers, batch_first=True, dropout=0.1)
        self.norm = nn.LayerNorm(d)

    def forward(self, x, lengths):
        x, lengths = self.subsampling(x, lengths)
        x, _ = self.rnn(x)
        return self.norm(x), lengths


class CtcModel(nn.Module):
    def __init__(self, d=48):
        super().__init__()
        self.encoder = Encoder(d)
        self.output = nn.Linear(d, PHONES + 1)

    def forward(self, feats, feat_lengths):
        hidden, lengths = self.encoder(feats, feat_lengths)
        return self.output(hidden).log_softmax(-1), lengths

    def loss(self, feats, feat_lengths, targets, target_lengths):
        log_probs, lengths = self(feats, feat_lengths)
        return F.ctc_loss(log_probs.transpose(0, 1), targets, lengths, target_lengths, blank=BLANK)

    @torch.no_grad()
    def decode(self, feats, feat_lengths):
        log_probs, lengths = self(feats, feat_lengths)
        hypotheses = []
        for row, length in zip(log_probs.argmax(-1), lengths):
            path = torch.unique_consecutive(row[:length])
            hypotheses.append(path[path != BLANK].tolist())
        return hypotheses


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (x != y))
    return row[-1]


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    loss, errors, total = 0.0, 0, 0
    for feats, feat_lengths, targets, target_lengths in loader:
        loss += model.loss(feats, feat_lengths, targets, target_lengths).item()
        references = [t.tolist() for t in targets.split(target_lengths.tolist())]
        for hyp, ref in zip(model.decode(feats, feat_lengths), references):
            errors += edit_distance(hyp, ref)
            total += len(ref)
    model.train()
    return loss / len(loader), errors / total


def main():
    torch.manual_seed(SEED)
    train = DataLoader(Utterances(160, SEED), batch_size=16, shuffle=True, collate_fn=pad_collate, drop_last=True)
    dev = DataLoader(Utterances(32, SEED + 777), batch_size=16, collate_fn=pad_collate)
    model = CtcModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.8)
    model.train()
    step = 0
    while step < STEPS:
        for batch in train:
            optimizer.zero_grad()
            loss = model.loss(*batch)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            scheduler.step()
            print(f"step {step} ctc {loss.item():.4f}")
            step += 1
            if step == STEPS:
                break
    dev_loss, per = evaluate(model, dev)
    print(f"dev ctc {dev_loss:.4f} phone error rate {per:.3f}")
    with tempfile.TemporaryDirectory() as out:
        torch.save(model.state_dict(), os.path.join(out, "ctc.pt"))


if __name__ == "__main__":
    main()
