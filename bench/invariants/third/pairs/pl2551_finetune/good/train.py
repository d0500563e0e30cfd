"""Transfer learning: a frozen convolutional backbone under a new classifier."""
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


def conv_block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU())


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.stages = nn.Sequential(conv_block(3, 16), conv_block(16, 32), conv_block(32, 32))

    def forward(self, x):
        return self.stages(x).mean((2, 3))


def textures(n, seed, shift=0.0):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 4, (n,), generator=g)
    grid = torch.arange(16) / 16
    phase = torch.rand(n, 1, 1, generator=g) * 6.28
    fx, fy = (1.0 + y % 2)[:, None, None], (1.0 + 2 * (y // 2))[:, None, None]
    wave = torch.sin(6.28 * (fx * grid[None, :, None] + fy * grid[None, None, :]) + phase)
    x = wave[:, None] * torch.tensor([1.0, 0.6, 0.3])[None, :, None, None]
    return x + 0.3 * torch.randn(n, 3, 16, 16, generator=g) + shift, y


def pretrain(path):
    torch.manual_seed(SEED + 7)
    net = nn.ModuleDict({"backbone": Backbone(), "fc": nn.Linear(32, 4)})
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    x, y = textures(128, SEED + 7)
    for i in range(12):
        rows = torch.arange(i * 32, i * 32 + 32) % len(x)
        opt.zero_grad()
        F.cross_entropy(net["fc"](net["backbone"](x[rows])), y[rows]).backward()
        opt.step()
    torch.save(net["backbone"].state_dict(), path)


class TransferModel(nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.backbone = Backbone()
        self.backbone.load_state_dict(torch.load(weights))
        self.classifier = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 4))

    def forward(self, x):
        return self.classifier(self.backbone(x))

    def training_step(self, batch):
        x, y = batch
        return F.cross_entropy(self(x), y)

    def validation_step(self, batch):
        x, y = batch
        logits = self(x)
        return F.cross_entropy(logits, y), (logits.argmax(1) == y).float().mean()

    def configure_optimizers(self):
        return torch.optim.Adam([p for p in self.parameters() if p.requires_grad], lr=5e-3)


class BackboneFreezing:
    def on_fit_start(self, trainer, model):
        for p in model.backbone.parameters():
            p.requires_grad_(False)

    def on_train_start(self, trainer, model):
        model.backbone.eval()


class ModuleModes:
    def __init__(self, model):
        self.modes = {name: module.training for name, module in model.named_modules()}

    def restore(self, model):
        for name, module in model.named_modules():
            module.training = self.modes[name]


class Trainer:
    def __init__(self, max_steps, val_check_interval, callbacks, root):
        self.max_steps, self.val_check_interval = max_steps, val_check_interval
        self.callbacks, self.root = callbacks, root
        self.global_step = 0

    def call(self, hook, model):
        for callback in self.callbacks:
            getattr(callback, hook)(self, model)

    def fit(self, model, train_loader, val_loader):
        self.call("on_fit_start", model)
        optimizer = model.configure_optimizers()
        model.train()
        self.call("on_train_start", model)
        while self.global_step < self.max_steps:
            for batch in train_loader:
                optimizer.zero_grad()
                loss = model.training_step(batch)
                loss.backward()
                optimizer.step()
                self.global_step += 1
                print(f"step {self.global_step} train_loss {loss.item():.4f}")
                if self.global_step % self.val_check_interval == 0:
                    self.validate(model, val_loader)
                if self.global_step >= self.max_steps:
                    break

    def validate(self, model, loader):
        modes = ModuleModes(model)
        model.eval()
        with torch.no_grad():
            results = [model.validation_step(batch) for batch in loader]
        loss, acc = (torch.stack(r).mean().item() for r in zip(*results))
        print(f"  val_loss {loss:.4f} val_acc {acc:.3f}")
        torch.save({"state_dict": model.state_dict(), "global_step": self.global_step},
                   os.path.join(self.root, "last.ckpt"))
        modes.restore(model)


def main():
    with tempfile.TemporaryDirectory() as root:
        weights = os.path.join(root, "backbone.pt")
        pretrain(weights)
        torch.manual_seed(SEED)
        train = DataLoader(TensorDataset(*textures(96, SEED, shift=0.4)), batch_size=16, shuffle=True)
        valid = DataLoader(TensorDataset(*textures(64, SEED + 500, shift=0.4)), batch_size=32)
        model = TransferModel(weights)
        trainer = Trainer(STEPS, 2, [BackboneFreezing()], root)
        trainer.fit(model, train, valid)


if __name__ == "__main__":
    main()
