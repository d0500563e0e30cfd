"""Two steps of a small Performer language model."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from performer_pytorch import PerformerLM

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--generalized", type=int, default=0); o = p.parse_args()
oracle.setup(0)


def same_weights(model, std=0.2):
    """Matrices by their order, whatever a release calls them."""
    with torch.no_grad():
        for i, q in enumerate(q for q in model.parameters() if q.ndim > 1):
            q.copy_(torch.randn(q.shape, generator=torch.Generator().manual_seed(i)) * std)
    torch.manual_seed(0)
    return model


model = same_weights(PerformerLM(num_tokens=64, max_seq_len=16, dim=32, depth=2, heads=2, dim_head=16, causal=False, nb_features=24,
                                 generalized_attention=bool(o.generalized), qkv_bias=False, attn_out_bias=False))
with torch.no_grad():
    for i, (name, q) in enumerate(b for b in model.named_buffers() if b[0].endswith("projection_matrix")):
        q.copy_(torch.randn(q.shape, generator=torch.Generator().manual_seed(100 + i)))
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
ids = torch.randint(0, 64, (2, 16))
with oracle.record(o.dump):
    for step in range(2):
        logits = model(ids)
        loss = torch.nn.functional.cross_entropy(logits.transpose(1, 2), ids.roll(-1, 1))
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
