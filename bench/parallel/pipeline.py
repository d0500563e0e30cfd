"""All micro-batches forward, then all backward. Stages send what they made, and the gradients of what they were sent."""
import torch
import torch.distributed as dist


class Stage:
    def __init__(self, model, pp):
        self.model, self.pp = model, pp
        self.first, self.last = pp.rank == 0, pp.rank == pp.size - 1

    def peer(self, step):
        return self.pp.ranks[self.pp.rank + step]

    def receive(self, shape, source):
        buffer = torch.empty(shape)
        dist.recv(buffer, src=source)
        return buffer

    def run(self, batches, places, shape, loss_of):
        """The sum of the losses: 0 on stages that have none."""
        kept, total = [], torch.zeros(())
        for tokens, labels in batches:
            given = tokens if self.first else self.receive(shape, self.peer(-1)).requires_grad_()
            made = self.model(given, places)
            if self.last:
                made = loss_of(made, labels) / len(batches)
                total += made.detach()
            else:
                dist.send(made.detach().contiguous(), dst=self.peer(1))
            kept.append((given, made))
        for given, made in kept:
            if self.last:
                made.backward()
            else:
                made.backward(self.receive(made.shape, self.peer(1)))
            if not self.first:
                dist.send(given.grad, dst=self.peer(-1))
        return total
