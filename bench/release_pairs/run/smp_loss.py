"""Two steps of a small segmentation net under a loss of segmentation_models_pytorch."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import importlib.util, types

import torch

# Only the losses: the package itself imports encoders from other libraries.
root = importlib.util.find_spec("segmentation_models_pytorch").submodule_search_locations
package = sys.modules["segmentation_models_pytorch"] = types.ModuleType("segmentation_models_pytorch")
package.__path__ = list(root)

from torch import nn
from segmentation_models_pytorch import losses

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--loss", default="dice"); o = p.parse_args()
oracle.setup(0)
net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 5, 1))
oracle.reinit(net, std=0.2)
criterion = {"dice": losses.DiceLoss, "jaccard": losses.JaccardLoss, "tversky": losses.TverskyLoss}[o.loss]("multiclass")
opt = torch.optim.SGD(net.parameters(), lr=0.5)
images, labels = torch.randn(2, 3, 8, 8), torch.randint(0, 5, (2, 8, 8))
with oracle.record(o.dump):
    for step in range(3):
        loss = criterion(net(images), labels)
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
