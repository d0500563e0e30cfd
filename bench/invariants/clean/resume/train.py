import os
import tempfile

import torch
from torch import nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


def build():
    model = nn.Sequential(nn.Linear(10, 20), nn.BatchNorm1d(20), nn.ReLU(), nn.Dropout(0.2), nn.Linear(20, 1))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
    sched = torch.optim.lr_scheduler.StepLR(opt, step_size=3, gamma=0.5)
    return model, opt, sched


def save(path, step, model, opt, sched):
    torch.save(
        {
            "step": step,
            "model": model.state_dict(),
            "optimizer": opt.state_dict(),
            "scheduler": sched.state_dict(),
            "rng": torch.get_rng_state(),
        },
        path + ".tmp",
    )
    os.replace(path + ".tmp", path)


def train(path, until):
    model, opt, sched = build()
    start = 0
    if os.path.exists(path):
        ck = torch.load(path, weights_only=True)
        model.load_state_dict(ck["model"])
        opt.load_state_dict(ck["optimizer"])
        sched.load_state_dict(ck["scheduler"])
        torch.set_rng_state(ck["rng"])
        start = ck["step"]
        print("resumed at", start)
    model.train()
    for step in range(start, until):
        x = torch.randn(16, 10)
        loss = nn.functional.mse_loss(model(x), x[:, :1] - x[:, 1:2])
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        print(step, loss.item(), sched.get_last_lr()[0])
        if (step + 1) % 2 == 0 or step + 1 == until:
            save(path, step + 1, model, opt, sched)


if __name__ == "__main__":
    torch.manual_seed(SEED)
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "last.pt")
        train(file, STEPS // 2)
        train(file, STEPS)
