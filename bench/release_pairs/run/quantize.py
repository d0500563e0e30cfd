"""An autoencoder with one of vector_quantize_pytorch's bottlenecks."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from torch import nn
from vector_quantize_pytorch import FSQ, LFQ, VectorQuantize

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--kind", default="vq"); p.add_argument("--dropout", type=float, default=0.0); o = p.parse_args()
oracle.setup(0)
encoder, decoder = nn.Linear(12, 3), nn.Linear(3, 12)
for part in (encoder, decoder):
    oracle.reinit(part, std=0.5)
if o.kind == "vq":
    quantize = VectorQuantize(dim=3, codebook_size=16, decay=0.8, commitment_weight=0.25, kmeans_init=False)
    for name, b in quantize.named_buffers():
        if name.endswith(("embed", "embed_avg")):
            b.copy_(torch.randn(b.shape, generator=torch.Generator().manual_seed(3)))
else:
    quantize = FSQ(levels=[8, 5, 5])
opt = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-2)
torch.manual_seed(1)
x = torch.randn(2, 10, 12)
with oracle.record(o.dump):
    for step in range(3):
        found = quantize(encoder(x))
        loss = nn.functional.mse_loss(decoder(nn.functional.dropout(found[0], o.dropout)), x)
        if o.kind == "vq":
            loss = loss + found[2].sum()
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
