"""timm's ConvNeXt with the response norm of its second version."""
import timm
import torch
import torch.nn.functional as F
from weights import CLASSES, DEPTHS, DIMS, KERNEL, MEAN, PATCH, STD, batch, state

torch.set_num_threads(1)
model = timm.models.ConvNeXt(num_classes=CLASSES, depths=DEPTHS, dims=DIMS, kernel_sizes=KERNEL, patch_size=PATCH, ls_init_value=1e-6, use_grn=True)
model.load_state_dict(state())
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, eps=1e-3, foreach=False)
for step in range(2):
    pictures, labels = batch(step)
    images = (pictures / 255 - torch.tensor(MEAN)) / torch.tensor(STD)
    loss = F.cross_entropy(model(images.permute(0, 3, 1, 2)), labels)
    loss.backward()
    norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step} loss {loss.item():.9f} norm {norm.item():.9f}", flush=True)
