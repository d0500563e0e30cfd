"""Imputation of time series with missing values, with early stopping on the validation error."""
import os
import tempfile
from copy import deepcopy

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
WINDOW, FEATURES, BATCH = 24, 4, 16
STEPS_PER_EPOCH = 2


def make_series(n, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(WINDOW)
    phase, speed = rng.uniform(0, 6.28, (n, 1, 1)), rng.uniform(0.2, 0.6, (n, 1, 1))
    gain = np.array([1.0, 0.5, -0.8, 1.5])
    x = np.sin(speed * t[None, :, None] + phase) * gain + 0.2 * rng.standard_normal((n, WINDOW, FEATURES))
    return x.astype("float32")


class DatasetForImputation(Dataset):
    def __init__(self, x, seed, rate=0.2):
        rng = np.random.default_rng(seed)
        self.x = torch.from_numpy(x)
        self.missing = torch.from_numpy((rng.random(x.shape) > rate).astype("float32"))
        self.indicating = (torch.from_numpy((rng.random(x.shape) < rate).astype("float32"))) * self.missing

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        mask = self.missing[i] - self.indicating[i]
        return {"X": self.x[i] * mask, "mask": mask, "X_ori": self.x[i] * self.missing[i],
                "indicating": self.indicating[i]}


def masked_mae(pred, target, mask):
    return (torch.abs(pred - target) * mask).sum() / (mask.sum() + 1e-9)


class Imputer(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.rnn = nn.GRU(2 * FEATURES, hidden, batch_first=True, bidirectional=True)
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(2 * hidden, FEATURES)

    def forward(self, batch):
        h, _ = self.rnn(torch.cat([batch["X"], batch["mask"]], -1))
        recon = self.out(self.drop(h))
        ort = masked_mae(recon, batch["X"], batch["mask"])
        mit = masked_mae(recon, batch["X_ori"], batch["indicating"])
        imputed = batch["mask"] * batch["X"] + (1 - batch["mask"]) * recon
        return {"loss": ort + mit, "imputed": imputed}


class Trainer:
    def __init__(self, model, epochs, patience, lr):
        self.model = model
        self.epochs, self.patience = epochs, patience
        self.opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        self.best_loss, self.best_epoch, self.best_model_dict = float("inf"), -1, None

    def train_epoch(self, epoch, loader):
        self.model.train()
        for i, batch in enumerate(loader):
            loss = self.model(batch)["loss"]
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            print(f"step {epoch * STEPS_PER_EPOCH + i} loss {loss.item():.4f}")

    @torch.no_grad()
    def evaluate(self, loader):
        self.model.eval()
        error, count = 0.0, 0.0
        for batch in loader:
            imputed = self.model(batch)["imputed"]
            error += (torch.abs(imputed - batch["X_ori"]) * batch["indicating"]).sum().item()
            count += batch["indicating"].sum().item()
        return error / count

    def fit(self, loader, valid):
        patience = self.patience
        for epoch in range(self.epochs):
            self.train_epoch(epoch, loader)
            val = self.evaluate(valid)
            print(f"epoch {epoch} validation mae {val:.4f}")
            if val < self.best_loss:
                self.best_loss, self.best_epoch = val, epoch
                self.best_model_dict = deepcopy(self.model.state_dict())
                patience = self.patience
            else:
                patience -= 1
            if patience == 0:
                print("early stopping")
                break
        self.model.load_state_dict(self.best_model_dict)

    def save(self, path):
        torch.save({"model": self.model.state_dict(), "epoch": self.best_epoch}, path)


def main():
    torch.manual_seed(SEED)
    train = DatasetForImputation(make_series(BATCH * STEPS_PER_EPOCH, 1 + SEED), 11 + SEED)
    valid = DatasetForImputation(make_series(64, 500 + SEED), 600)
    test = DatasetForImputation(make_series(64, 700), 800)
    trainer = Trainer(Imputer(), epochs=STEPS // STEPS_PER_EPOCH, patience=3, lr=0.3)
    trainer.fit(DataLoader(train, BATCH, shuffle=True), DataLoader(valid, 32))
    print(f"best epoch {trainer.best_epoch} test mae {trainer.evaluate(DataLoader(test, 32)):.4f}")
    with tempfile.TemporaryDirectory() as d:
        trainer.save(os.path.join(d, "imputer.pt"))


if __name__ == "__main__":
    main()
