"""The optimizer holds everything; what is frozen has no gradient, and is left alone. As many detection codes do."""
import os

import torch
import torch.nn as nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Backbone(nn.Module):
    def __init__(self, frozen_stages=1, norm_eval=True):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6)
        self.conv2, self.bn2 = nn.Conv2d(6, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.frozen_stages, self.norm_eval = frozen_stages, norm_eval
        self._freeze()

    def _freeze(self):
        if self.frozen_stages > 0:
            for m in (self.conv1, self.bn1):
                for p in m.parameters():
                    p.requires_grad = False

    def train(self, mode=True):
        super().train(mode)
        self._freeze()
        if mode and self.norm_eval:
            for m in self.modules():
                if isinstance(m, nn.BatchNorm2d):
                    m.eval()
        return self

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(x)))


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = Backbone()
        self.cls, self.reg = nn.Conv2d(8, 2, 1), nn.Conv2d(8, 4, 1)

    def forward(self, x):
        f = self.backbone(x)
        return self.cls(f), self.reg(f)


def loss_of(cls, reg, labels, boxes):
    out = {"cls": nn.functional.cross_entropy(cls, labels)}
    positive = labels == 1
    if positive.any():
        out["reg"] = nn.functional.smooth_l1_loss(reg.permute(0, 2, 3, 1)[positive], boxes[positive])
    return out


torch.manual_seed(SEED)
model = Detector()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
model.train()
for i in range(STEPS):
    images = torch.rand(2, 3, 8, 8)
    # Now and then a batch has no object, and the boxes' head no gradient.
    labels = (torch.rand(2, 8, 8) > (1.0 if i % 4 == 3 else 0.8)).long()
    losses = loss_of(*model(images), labels, torch.rand(2, 8, 8, 4))
    total = sum(losses.values())
    optimizer.zero_grad()
    total.backward()
    nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], 35)
    optimizer.step()
    print(i, {k: round(v.item(), 4) for k, v in losses.items()})
