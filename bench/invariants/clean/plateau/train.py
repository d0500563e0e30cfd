import os

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Padded(Dataset):
    """Sequences of many lengths; a batch pads them itself."""

    def __init__(self, n):
        self.rows = [torch.randint(1, 12, (int(torch.randint(3, 9, ())),)) for _ in range(n)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i], int(self.rows[i].max())


def collate(batch):
    rows, labels = zip(*sorted(batch, key=lambda b: -len(b[0])))
    lengths = torch.tensor([len(r) for r in rows])
    return nn.utils.rnn.pad_sequence(rows, batch_first=True), lengths, torch.tensor(labels)


class Longest(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(12, 10, padding_idx=0)
        self.gru = nn.GRU(10, 16, batch_first=True)
        self.fc = nn.Linear(16, 12)

    def forward(self, ids, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(self.embed(ids), lengths, batch_first=True)
        return self.fc(self.gru(packed)[1][-1])


def epoch(model, loader, opt=None):
    model.train(opt is not None)
    total = 0.0
    with torch.set_grad_enabled(opt is not None):
        for ids, lengths, labels in loader:
            loss = nn.functional.cross_entropy(model(ids, lengths), labels)
            if opt:
                opt.zero_grad()
                loss.backward()
                opt.step()
            total += loss.item()
    return total / len(loader)


def main():
    torch.manual_seed(SEED)
    train = DataLoader(Padded(44), batch_size=12, shuffle=True, collate_fn=collate)
    valid = DataLoader(Padded(15), batch_size=12, collate_fn=collate)
    model = Longest()
    opt = torch.optim.SGD(model.parameters(), lr=0.5)
    sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.5, patience=0)
    for i in range(max(2, STEPS // len(train))):
        a, b = epoch(model, train, opt), epoch(model, valid)
        sched.step(b)
        print(i, a, b, opt.param_groups[0]["lr"])


main()
