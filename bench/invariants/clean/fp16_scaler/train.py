import os

import torch
from torch import nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


def main():
    torch.manual_seed(SEED)
    net = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    opt = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)
    # 2**18 overflows float16 on purpose: the scaler leaves out its first steps and halves.
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**18, growth_interval=3)
    true = torch.randn(24, 1)
    for step in range(STEPS):
        x = torch.randn(32, 24)
        with torch.autocast("cpu", dtype=torch.float16):
            out = net(x)
            loss = nn.functional.mse_loss(out.float(), x @ true)
        opt.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        norm = nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        scaler.step(opt)
        scaler.update()
        print(f"step {step} loss {loss.item():.4f} norm {norm.item():.3f} scale {scaler.get_scale():g}")


if __name__ == "__main__":
    main()
