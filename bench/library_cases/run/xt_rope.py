"""Two Adam steps of a small x-transformers decoder with rotary positions."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from x_transformers import TransformerWrapper, Decoder, AutoregressiveWrapper

p = argparse.ArgumentParser(); p.add_argument("--dump"); o = p.parse_args()
oracle.setup(0)
net = TransformerWrapper(num_tokens=64, max_seq_len=32, attn_layers=Decoder(dim=32, depth=2, heads=2, attn_dim_head=32, rotary_pos_emb=True))
model = AutoregressiveWrapper(net)
with torch.no_grad():
    for i, q in enumerate(q for q in model.parameters() if q.ndim > 1):
        q.copy_(torch.randn(q.shape, generator=torch.Generator().manual_seed(i)) * 0.1)
torch.manual_seed(0)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
ids = torch.randint(0, 64, (2, 24))
with oracle.record(o.dump):
    for step in range(2):
        loss = model(ids)
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
