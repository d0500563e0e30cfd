"""DDPM training of a tiny UNet2D with EMA; two releases that must agree."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from diffusers import DDPMScheduler, UNet2DModel
from diffusers.training_utils import EMAModel

p = argparse.ArgumentParser(); p.add_argument("--dump"); o = p.parse_args()
oracle.setup(0)
model = UNet2DModel(sample_size=8, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(8, 16), norm_num_groups=4,
                    down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"), attention_head_dim=8)
oracle.reinit(model)
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
ema = EMAModel(model.parameters(), decay=0.99, use_ema_warmup=True)
scheduler = DDPMScheduler(num_train_timesteps=100, beta_schedule="squaredcos_cap_v2")
data = torch.randn(2, 4, 3, 8, 8)
with oracle.record(o.dump):
    for step in range(2):
        noise = torch.randn_like(data[step])
        t = torch.randint(0, 100, (4,))
        noisy = scheduler.add_noise(data[step], noise, t)
        loss = torch.nn.functional.mse_loss(model(noisy, t).sample, noise)
        loss.backward(); opt.step(); ema.step(model.parameters()); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
