"""Flow-matching training of a small convolutional net; the scheduler makes the noisy inputs."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from torch import nn
from diffusers import FlowMatchEulerDiscreteScheduler

p = argparse.ArgumentParser(); p.add_argument("--dump"); o = p.parse_args()
oracle.setup(0)
model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.SiLU(), nn.Conv2d(8, 3, 3, padding=1))
oracle.reinit(model)
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
data = torch.randn(3, 4, 3, 8, 8)
scheduler = FlowMatchEulerDiscreteScheduler(num_train_timesteps=1000, shift=3.0)
with oracle.record(o.dump):
    for step in range(3):
        noise = torch.randn_like(data[step])
        t = scheduler.timesteps[torch.randint(0, 1000, (1,))]
        noisy = scheduler.scale_noise(data[step], t, noise)
        loss = nn.functional.mse_loss(model(noisy), noise - data[step])
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
