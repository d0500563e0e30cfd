"""Two steps of a small Perceiver."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from torch import nn
from perceiver_pytorch import Perceiver

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--fourier", type=int, default=1); p.add_argument("--dropout", type=float, default=0.0)
p.add_argument("--blocks", type=int, default=1); o = p.parse_args()
oracle.setup(0)


def same_weights(model, std=0.2):
    """Matrices by their order, whatever a release calls them."""
    with torch.no_grad():
        for i, q in enumerate(q for q in model.parameters() if q.ndim > 1):
            q.copy_(torch.randn(q.shape, generator=torch.Generator().manual_seed(i)) * std)
    torch.manual_seed(0)
    return model


model = Perceiver(input_channels=6, input_axis=1, num_freq_bands=4, max_freq=8.0, depth=2, num_latents=4, latent_dim=16, cross_heads=1, latent_heads=2,
                  cross_dim_head=8, latent_dim_head=8, num_classes=3, attn_dropout=o.dropout, ff_dropout=o.dropout, weight_tie_layers=True,
                  fourier_encode_data=bool(o.fourier), self_per_cross_attn=o.blocks)
model = same_weights(model)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
x, labels = torch.randn(3, 10, 6), torch.randint(0, 3, (3,))
with oracle.record(o.dump):
    for step in range(2):
        loss = nn.functional.cross_entropy(model(x), labels)
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
