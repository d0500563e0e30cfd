"""Domain adaptation by self-distillation: labelled source, unlabelled target, an averaged teacher."""
import copy
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
CLASSES = 5
BATCH = 16


class Stripes(Dataset):
    """Gratings of five orientations; the target domain is darker and noisier."""

    def __init__(self, length, seed, target=False):
        self.length, self.seed, self.target = length, seed, target

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 100003 + i)
        label = int(torch.randint(CLASSES, (1,), generator=g))
        phase = 6.28 * torch.rand(1, generator=g)
        angle = torch.tensor(3.14159 * label / CLASSES)
        y, x = torch.meshgrid(torch.arange(16.0), torch.arange(16.0), indexing="ij")
        image = torch.sin(0.9 * (x * angle.cos() + y * angle.sin()) + phase)[None]
        if self.target:
            image = 0.6 * image - 0.3 + 0.3 * torch.randn(1, 16, 16, generator=g)
        return image, label


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 5, stride=2, padding=2)
        self.conv2 = nn.Conv2d(16, 32, 3, stride=2, padding=1)
        self.norm1, self.norm2 = nn.GroupNorm(4, 16), nn.GroupNorm(4, 32)

    def forward(self, x):
        x = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(x)))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = Backbone()
        self.drop = nn.Dropout(0.1)
        self.classifier = nn.Linear(32 * 16, CLASSES)

    def forward(self, x):
        return self.classifier(self.drop(self.backbone(x).flatten(1)))


class Trainer:
    def __init__(self, model, lr=2e-3, decay=0.9, distillation=1.0, temperature=2.0):
        self.student = model
        self.teacher = copy.deepcopy(model).requires_grad_(False).eval()
        self.opt = torch.optim.Adam(self.student.parameters(), lr=lr)
        self.decay, self.distillation, self.temperature = decay, distillation, temperature

    def strong(self, images):
        shift = torch.randint(-2, 3, (2,)).tolist()
        return images.roll(shift, dims=(2, 3)) + 0.1 * torch.randn_like(images)

    def kd_loss(self, images):
        t = self.temperature
        with torch.no_grad():
            teacher = F.softmax(self.teacher(images) / t, dim=1)
        student = F.log_softmax(self.student(self.strong(images)) / t, dim=1)
        return F.kl_div(student, teacher, reduction="batchmean") * t * t

    @torch.no_grad()
    def update_teacher(self):
        for old, new in zip(self.teacher.parameters(), self.student.parameters()):
            old.lerp_(new, 1 - self.decay)

    def step(self, source, labels, target):
        self.student.train()
        loss_src = F.cross_entropy(self.student(source), labels)
        loss_kd = self.kd_loss(target)
        loss = loss_src + self.distillation * loss_kd
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.update_teacher()
        return loss_src.item(), loss_kd.item()

    @torch.no_grad()
    def evaluate(self, loader):
        self.student.eval()
        hits = [(self.student(x).argmax(1) == y).float() for x, y in loader]
        return torch.cat(hits).mean().item()

    def state_dict(self):
        return {"student": self.student.state_dict(), "teacher": self.teacher.state_dict(),
                "opt": self.opt.state_dict()}


def main():
    torch.manual_seed(SEED)
    source = DataLoader(Stripes(BATCH * STEPS, 1 + SEED), BATCH, shuffle=True)
    target = DataLoader(Stripes(BATCH * STEPS, 500 + SEED, target=True), BATCH, shuffle=True)
    test = DataLoader(Stripes(64, 9000, target=True), 32)
    trainer = Trainer(Model())
    for step, ((xs, ys), (xt, _)) in enumerate(zip(source, target)):
        loss_src, loss_kd = trainer.step(xs, ys, xt)
        print(f"step {step} loss {loss_src:.4f} kd {loss_kd:.4f}")
    print(f"target accuracy {trainer.evaluate(test):.3f}")
    with tempfile.TemporaryDirectory() as d:
        torch.save(trainer.state_dict(), os.path.join(d, "stage2.pt"))


if __name__ == "__main__":
    main()
