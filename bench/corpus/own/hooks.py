"""A program that looks at its hooks: torch numbers those of a process in one row."""

import torch
from torch.nn.utils import prune
from torch.utils.hooks import RemovableHandle


def doubled(module, inputs, output):
    return output * 2


print(RemovableHandle.next_id)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
handles = [model[0].register_forward_hook(doubled), optimizer.register_step_post_hook(lambda *_: None)]
print([h.id for h in handles], list(model[0]._forward_hooks), list(optimizer._optimizer_step_post_hooks))
prune.random_unstructured(model[2], name="weight", amount=0.3)
print(list(model[2]._forward_pre_hooks), prune.is_pruned(model))
for step in range(2):
    loss = model(torch.ones(2, 3)).square().mean()
    handles.append(loss.grad_fn.register_hook(lambda inputs, outputs: None))
    handles.append(loss.register_hook(lambda gradient: gradient * 2))
    handles.append(model[0].weight.register_post_accumulate_grad_hook(lambda leaf: None))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(step, loss.item(), [h.id for h in handles], RemovableHandle.next_id)
prune.l1_unstructured(model[2], name="bias", amount=1)
print(list(model[2]._forward_pre_hooks))
for handle in handles:
    handle.remove()
print(len(model[0]._forward_hooks), len(optimizer._optimizer_step_post_hooks), RemovableHandle.next_id)
print(model(torch.ones(1, 3)))
