"""A layer of flash attention in plain PyTorch."""
import argparse
import torch
from torch import nn
from memory_efficient_attention_pytorch import FlashAttention

p = argparse.ArgumentParser()
p.add_argument("--mask", action="store_true")
p.add_argument("--causal", action="store_true")
o = p.parse_args()
torch.manual_seed(0)
attn = FlashAttention(dim=16, heads=2, dim_head=8, causal=o.causal, q_bucket_size=8, k_bucket_size=8)
head = nn.Linear(16, 16)
x, y = torch.randn(2, 24, 16), torch.randn(2, 24, 16)
mask = torch.arange(24)[None] < torch.tensor([24, 17])[:, None] if o.mask else None
opt = torch.optim.Adam([*attn.parameters(), *head.parameters()], lr=1e-3)
for i in range(4):
    loss = nn.functional.mse_loss(head(x + attn(x, mask=mask)), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"step {i} loss {loss.item()}", flush=True)
