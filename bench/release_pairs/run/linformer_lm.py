"""Two steps of a small Linformer language model."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from linformer import LinformerLM

p = argparse.ArgumentParser(); p.add_argument("--dump"); o = p.parse_args()
oracle.setup(0)


def same_weights(model, std=0.2):
    """Matrices by their order, whatever a release calls them."""
    with torch.no_grad():
        for i, q in enumerate(q for q in model.parameters() if q.ndim > 1):
            q.copy_(torch.randn(q.shape, generator=torch.Generator().manual_seed(i)) * std)
    torch.manual_seed(0)
    return model


model = same_weights(LinformerLM(num_tokens=64, dim=32, seq_len=16, depth=2, k=8, heads=2))
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
ids = torch.randint(0, 64, (2, 16))
with oracle.record(o.dump):
    for step in range(2):
        logits = model(ids)
        loss = torch.nn.functional.cross_entropy(logits.transpose(1, 2), ids.roll(-1, 1))
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
