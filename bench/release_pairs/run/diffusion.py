"""Diffusion in one dimension of denoising_diffusion_pytorch: its own U-net, or a small net of ours."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import types

import torch

# The package imports what its image trainer uses; nobody here does.
for name, inside in {"torchvision": ["transforms", "utils"], "torchvision.transforms": ["functional"], "torchvision.utils": [], "PIL": ["Image"],
                     "accelerate": ["Accelerator", "DistributedDataParallelKwargs"], "ema_pytorch": ["EMA"], "pytorch_fid": [], "pytorch_fid.inception": ["InceptionV3"],
                     "pytorch_fid.fid_score": ["calculate_frechet_distance"]}.items():
    sys.modules[name] = types.ModuleType(name)
    for part in inside:
        setattr(sys.modules[name], part, types.ModuleType(part))

from torch import nn
from denoising_diffusion_pytorch.denoising_diffusion_pytorch_1d import GaussianDiffusion1D, Unet1D

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--net", default="unet"); p.add_argument("--objective", default="pred_noise")
p.add_argument("--sample", type=int, default=0); o = p.parse_args()


class Small(nn.Module):
    channels, out_dim, self_condition, random_or_learned_sinusoidal_cond = 2, 2, False, False

    def __init__(self):
        super().__init__()
        self.time = nn.Embedding(20, 8)
        self.first, self.last = nn.Conv1d(2, 8, 3, padding=1), nn.Conv1d(8, 2, 3, padding=1)

    def forward(self, x, t, *args, **kwargs):
        return self.last(torch.relu(self.first(x) + self.time(t)[:, :, None]))


def same_weights(model, std=0.2):
    """Matrices by their order, whatever a release calls them."""
    with torch.no_grad():
        for i, q in enumerate(q for name, q in model.named_parameters() if q.numel() > q.shape[0] and "g" != name[-1]):
            q.copy_(torch.randn(q.shape, generator=torch.Generator().manual_seed(i)) * std)
    torch.manual_seed(0)
    return model


oracle.setup(0)
net = same_weights(Unet1D(dim=8, dim_mults=(1, 2), channels=2) if o.net == "unet" else Small())
diffusion = GaussianDiffusion1D(net, seq_length=16, timesteps=20, objective=o.objective)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
data = torch.rand(4, 2, 16)
with oracle.record(o.dump):
    for step in range(3):
        loss = diffusion(data)
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
    if o.sample:
        print("sampled", repr(diffusion.sample(batch_size=2).mean().item()), flush=True)
