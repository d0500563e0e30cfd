"""Lightning Trainer: accumulation, clipping, a cosine schedule; two releases that must agree."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

import tempfile
from torch import nn
import lightning as L

p = argparse.ArgumentParser(); p.add_argument("--dump"); o = p.parse_args()
oracle.setup(0)


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Dropout(0.1), nn.Linear(32, 2))

    def training_step(self, batch, index):
        x, y = batch
        loss = nn.functional.mse_loss(self.net(x), y)
        print("batch", index, "loss", repr(loss.item()), flush=True)
        return loss

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=1e-2)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": torch.optim.lr_scheduler.CosineAnnealingLR(opt, 8), "interval": "step"}}


model = Net()
oracle.reinit(model)
data = torch.utils.data.TensorDataset(torch.randn(32, 10), torch.randn(32, 2))
loader = torch.utils.data.DataLoader(data, batch_size=4, shuffle=True)
trainer = L.Trainer(max_epochs=1, accumulate_grad_batches=2, gradient_clip_val=0.5, accelerator="cpu", devices=1, logger=False,
                    enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, default_root_dir=tempfile.mkdtemp())
with oracle.record(o.dump):
    trainer.fit(model, loader)
