"""diffusers: flow matching with a diffusion transformer; the scheduler makes the noisy inputs."""
import torch
from diffusers import DiTTransformer2DModel, FlowMatchEulerDiscreteScheduler
from diffusers.training_utils import compute_density_for_timestep_sampling, compute_loss_weighting_for_sd3

torch.manual_seed(11)
model = DiTTransformer2DModel(num_attention_heads=2, attention_head_dim=8, in_channels=4, num_layers=2, sample_size=8, patch_size=2, norm_num_groups=4,
                              num_embeds_ada_norm=1000)  # fmt: skip
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
noising = FlowMatchEulerDiscreteScheduler(num_train_timesteps=1000, shift=3.0)
images = torch.randn(2, 2, 4, 8, 8)
model.train()
for step in range(2):
    noise = torch.randn_like(images[step])
    density = compute_density_for_timestep_sampling("logit_normal", 2, logit_mean=0.0, logit_std=1.0)
    times = noising.timesteps[(density * 1000).long()]
    noisy = noising.scale_noise(images[step], times, noise)
    weight = compute_loss_weighting_for_sd3("cosmap", times / 1000)
    said = model(noisy, timestep=times.long(), class_labels=torch.randint(0, 1000, (2,))).sample
    loss = (weight[:, None, None, None] * (said - (noise - images[step])) ** 2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("step", step, "loss", repr(loss.item()), flush=True)
