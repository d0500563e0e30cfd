"""timm's EfficientNet: batch norm, squeeze and excite, an average of the weights, timm's own RMSprop."""
import timm
import torch
from timm.loss import LabelSmoothingCrossEntropy
from timm.optim import create_optimizer_v2
from timm.utils import ModelEmaV3
from training import train

torch.manual_seed(8)
model = timm.create_model("test_efficientnet", pretrained=False, num_classes=8, in_chans=3, drop_rate=0.1)
average = ModelEmaV3(model, decay=0.9)
criterion = LabelSmoothingCrossEntropy(0.1)
batches = [(torch.randn(4, 3, 32, 32), torch.randint(0, 8, (4,))) for _ in range(2)]
optimizer = create_optimizer_v2(model, opt="rmsproptf", lr=1e-3, weight_decay=0.01)
train(model, batches, lambda model, batch: criterion(model(batch[0]), batch[1]), optimizer, after=average.update)
