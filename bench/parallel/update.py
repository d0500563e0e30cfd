"""Between backward and the next step: gradients of all ranks, clipping, AdamW on a part of the parameters each (ZeRO-1)."""
import torch


def finish_gradients(model, groups, sequence):
    """What a rank has of a gradient is made what one process would have."""
    tp, dp, cp = groups["tp"], groups["dp"], groups["cp"]
    for p in model.parameters():
        if tp.size > 1 and (getattr(p, "partial", False) or (sequence and not p.cut)):
            tp.sum(p.grad)
        cp.sum(p.grad).div_(cp.size)
        if not getattr(p, "expert", False):
            dp.sum(p.grad)
        p.grad.div_(dp.size)


def clip(model, groups, largest):
    """The norm before clipping: what is cut counts on every rank, what is whole once."""
    cut = torch.zeros(())
    whole = torch.zeros(())
    experts = torch.zeros(())
    for p in model.parameters():
        square = p.grad.pow(2).sum()
        if getattr(p, "expert", False):
            experts += square
        elif p.cut:
            cut += square
        else:
            whole += square
    square = whole + groups["tp"].sum(cut) + groups["dp"].sum(experts)
    norm = groups["pp"].sum(square).sqrt()
    scale = (largest / norm).clamp(max=1.0)
    for p in model.parameters():
        p.grad.mul_(scale)
    return norm


class ShardedAdamW:
    """Every data-parallel rank updates its part of all parameters laid end to end."""
    ALIGN = 64

    def __init__(self, parameters, group, lr=1e-3, eps=1e-3, decay=0.1):
        self.parameters, self.group, self.lr, self.eps, self.decay = list(parameters), group, lr, eps, decay
        count = sum(p.numel() for p in self.parameters)
        unit = group.size * self.ALIGN
        self.size = (count + unit - 1) // unit * self.ALIGN
        self.first, self.second, self.number = torch.zeros(self.size), torch.zeros(self.size), 0

    def flat(self, tensors):
        whole = torch.cat([t.reshape(-1) for t in tensors])
        whole = torch.nn.functional.pad(whole, (0, max(0, self.size * self.group.size - whole.numel())))
        return whole[self.group.rank * self.size : (self.group.rank + 1) * self.size]

    @torch.no_grad()
    def step(self):
        self.number += 1
        w, g = self.flat(self.parameters), self.flat([p.grad for p in self.parameters])
        self.first.lerp_(g, 0.1)
        self.second.mul_(0.999).addcmul_(g, g, value=0.001)
        first, second = self.first / (1 - 0.9**self.number), self.second / (1 - 0.999**self.number)
        w = w * (1 - self.lr * self.decay) - self.lr * first / (second.sqrt() + self.eps)
        whole = self.group.gather(w, 0)
        at = 0
        for p in self.parameters:
            part = whole[at : at + p.numel()]
            p.view(-1)[: part.numel()].copy_(part)
            at += p.numel()
