"""peft's DoRA and IA3-like scaling of a small network of one's own."""
import torch
from peft import LoraConfig, get_peft_model
from torch import nn
from training import train


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.head = nn.Linear(12, 24), nn.Linear(24, 24), nn.Linear(24, 5)

    def forward(self, x):
        h = torch.relu(self.first(x))
        h = h + torch.tanh(self.second(h))
        return self.head(h)


torch.manual_seed(13)
model = get_peft_model(Net(), LoraConfig(r=4, lora_alpha=16, target_modules=["first", "second"], use_dora=True, modules_to_save=["head"]))
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
batches = [(torch.randn(8, 12), torch.randint(0, 5, (8,))) for _ in range(3)]
train(model, batches, lambda model, batch: nn.functional.cross_entropy(model(batch[0]), batch[1]), optimizer)
