"""Fit an image with a SIREN, optionally modulated by a latent vector."""
import argparse
import torch
from siren_pytorch import SirenNet, SirenWrapper

p = argparse.ArgumentParser()
p.add_argument("--latent", type=int, default=0)
p.add_argument("--height", type=int, default=8)
p.add_argument("--width", type=int, default=8)
o = p.parse_args()
torch.manual_seed(0)
net = SirenNet(dim_in=2, dim_hidden=24, dim_out=3, num_layers=3, w0_initial=30.0)
model = SirenWrapper(net, image_width=o.width, image_height=o.height, latent_dim=o.latent or None)
latent = torch.randn(o.latent) if o.latent else None
img = torch.rand(1, 3, o.height, o.width)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
for i in range(4):
    loss = model(img, latent=latent) if o.latent else model(img)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"step {i} loss {loss.item()}", flush=True)
