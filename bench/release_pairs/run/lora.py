"""A small net of loralib's layers, frozen but for its low-rank matrices; --check evaluates it after every step."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch
import torch.nn.functional as F

from torch import nn
import loralib as lora

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--net", default="linear")
p.add_argument("--check", type=int, default=0); o = p.parse_args()
oracle.setup(0)


def same_weights(model, std=0.2):
    """Weights by their names, whichever module a release holds them in."""
    with torch.no_grad():
        for i, (_, q) in enumerate(sorted((name.replace("conv.", ""), q) for name, q in model.named_parameters())):
            q.copy_(torch.randn(q.shape, generator=torch.Generator().manual_seed(i)) * std)
    torch.manual_seed(0)
    return model


class Attention(nn.Module):
    """Queries, keys and values of one projection, as in loralib's GPT-2."""
    def __init__(self):
        super().__init__()
        self.qkv = lora.MergedLinear(16, 48, r=4, lora_alpha=8, lora_dropout=0.1, enable_lora=[True, False, True])
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        return self.head(F.scaled_dot_product_attention(q, k, v).mean(1))


if o.net == "merged":
    net, x = Attention(), torch.randn(8, 6, 16)
elif o.net == "linear":
    net, x = nn.Sequential(lora.Linear(16, 32, r=4, lora_alpha=8), nn.GELU(), lora.Linear(32, 4, r=4, lora_alpha=8)), torch.randn(8, 16)
else:
    net = nn.Sequential(lora.Embedding(50, 16, r=4, lora_alpha=8), nn.Unflatten(2, (4, 4)), lora.Conv2d(4, 8, 3, r=2, lora_alpha=4, padding=1),
                        nn.ReLU(), nn.Flatten(), lora.Linear(128, 4, r=4, lora_alpha=8))
    x = torch.randint(0, 50, (8, 4))
same_weights(net)
if o.net == "linear":
    with torch.no_grad():
        for layer in (net[0], net[2]):
            layer.lora_B.zero_()
lora.mark_only_lora_as_trainable(net)
x, y = (torch.randint(0, 50, (8, 4)) if o.net == "conv" else torch.randn(x.shape)), torch.randint(0, 4, (8,))
opt = torch.optim.AdamW([q for q in net.parameters() if q.requires_grad], lr=1e-2)
with oracle.record(o.dump):
    for step in range(4):
        net.train()
        loss = F.cross_entropy(net(x), y)
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
        if o.check:
            net.eval()
            with torch.no_grad():
                print("checked", repr(F.cross_entropy(net(x), y).item()), flush=True)
