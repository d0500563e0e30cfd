"""The training of loop.py, taken apart: rows, objective and update have files of their own."""
import torch
from net import Net, documents
from objective import objective
from packing import pack
from recipe import IGNORED, STEPS
from update import Average, Decoupled, Scaler, Schedule, clip


class Trainer:
    def __init__(self):
        self.model = Net()
        self.average, self.optimizer, self.schedule, self.scaler = Average(self.model), Decoupled(self.model), Schedule(), Scaler()

    def accumulate(self, rows):
        """Gradients of all rows of a step; its loss."""
        said = sum(int((row.labels() != IGNORED).sum()) for row in rows)
        costs = []
        for row in rows:
            given = row.words, row.places(), row.mask()
            cost = objective(self.model(*given), self.average.model(*given), row.labels(), said)
            self.scaler.backward(cost)
            costs.append(cost.detach())
        return torch.stack(costs).sum()

    def update(self):
        """The gradients' length; weights, rate and average go on."""
        self.scaler.unscale(self.model.parameters())
        size = clip(self.model.parameters())
        self.optimizer.step(self.schedule.rate())
        self.average.follow(self.model)
        self.schedule.advance()
        return size

    def run(self):
        for number in range(STEPS):
            cost = self.accumulate(list(pack(documents(number))))
            size = self.update()
            print(f"step {number} loss {cost.item():.9f} norm {size.item():.9f}", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    Trainer().run()
