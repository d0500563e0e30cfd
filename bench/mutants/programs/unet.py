"""diffusers: DDPM training of a tiny UNet with an average of the weights."""
import torch
from diffusers import DDPMScheduler, UNet2DModel
from diffusers.optimization import get_cosine_schedule_with_warmup
from diffusers.training_utils import EMAModel, compute_snr

torch.manual_seed(10)
model = UNet2DModel(sample_size=8, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(8, 16), norm_num_groups=4,
                    down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"), attention_head_dim=8)  # fmt: skip
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
schedule = get_cosine_schedule_with_warmup(optimizer, 1, 4)
average = EMAModel(model.parameters(), decay=0.99, use_ema_warmup=True)
noising = DDPMScheduler(num_train_timesteps=100, beta_schedule="squaredcos_cap_v2")
images = torch.randn(2, 2, 3, 8, 8)
for step in range(2):
    noise = torch.randn_like(images[step])
    times = torch.randint(0, 100, (2,))
    noisy = noising.add_noise(images[step], noise, times)
    weight = compute_snr(noising, times).clamp(max=5.0) / compute_snr(noising, times)
    loss = (weight[:, None, None, None] * (model(noisy, times).sample - noise) ** 2).mean()
    loss.backward()
    optimizer.step()
    schedule.step()
    average.step(model.parameters())
    optimizer.zero_grad()
    print("step", step, "loss", repr(loss.item()), flush=True)
