"""A model of latent actions: the change between two frames goes through a vector-quantised bottleneck."""
import os

import torch
import torch.nn.functional as F
from quantizer import VectorQuantizer
from torch import nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
SIDE = 6


class LatentActionModel(nn.Module):
    def __init__(self, width=8, n_codes=6, beta=0.25):
        super().__init__()
        pixels = SIDE * SIDE
        self.encoder = nn.Sequential(nn.Linear(2 * pixels, 48), nn.GELU(), nn.Linear(48, width))
        self.vq = VectorQuantizer(n_codes, width)
        self.decoder = nn.Sequential(nn.Linear(pixels + width, 48), nn.GELU(), nn.Linear(48, pixels))
        self.beta = beta

    def forward(self, before, after):
        z_e = self.encoder(torch.cat([before, after], dim=1))
        q = self.vq(z_e)
        guess = self.decoder(torch.cat([before, q.z_q], dim=1))
        reconstruction = F.mse_loss(guess, after)
        codebook_loss = F.mse_loss(q.codes, z_e.detach())
        commitment = F.mse_loss(z_e, q.codes.detach())
        return reconstruction + codebook_loss + self.beta * commitment, q.indices


def frames(n, generator):
    """A random frame, and the frame after a shift by one pixel in one of four directions."""
    before = torch.randn(n, SIDE, SIDE, generator=generator)
    action = torch.randint(0, 4, (n,), generator=generator)
    moves = [(1, 0), (-1, 0), (0, 1), (0, -1)]
    after = torch.stack([f.roll(moves[a], dims=(0, 1)) for f, a in zip(before, action.tolist())])
    return before.flatten(1), after.flatten(1)


torch.manual_seed(SEED)
model = LatentActionModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
generator = torch.Generator().manual_seed(SEED + 1)

model.train()
for step in range(STEPS):
    before, after = frames(64, generator)
    loss, indices = model(before, after)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    print(f"{step} loss={loss.item():.4f} codes used={indices.unique().numel()}")
