"""torch.compile(fullgraph=True) on the GPT."""
import torch
from gpt import GPT, next_token_loss
from loop import train

torch.manual_seed(7)
model = torch.compile(GPT(), fullgraph=True)
batches = [{"tokens": torch.randint(0, 128, (2, 17))} for _ in range(2)]
train(model, batches, loss_of=lambda model, batch: next_token_loss(model, batch["tokens"]))
