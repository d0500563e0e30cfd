"""The training of loop.py, taken apart; a batch goes through the model in three parts."""
import torch
import torch.nn.functional as F
from examples import Mixer, micro_batches
from net import Net, batch
from recipe import STEPS
from update import Average, Nesterov, Schedule, clip


class Training:
    def __init__(self):
        self.model, self.mix = Net(), Mixer()
        self.optimizer, self.schedule, self.average = Nesterov(self.model), Schedule(), Average(self.model)

    def gradients(self, examples):
        """Adds up those of the micro-batches; the loss of all."""
        total = 0.0
        for part in micro_batches(examples):
            loss = self.criterion(self.model(part.images), part.targets) * len(part) / len(examples)
            loss.backward()
            total += loss.detach()
        return total

    @staticmethod
    def criterion(logits, targets):
        return -(targets * logits.log_softmax(-1)).sum(-1).mean()

    def step(self, number):
        loss = self.gradients(self.mix(*batch(number)))
        norm = clip(self.model.parameters())
        self.optimizer.step(self.schedule.factor())
        self.schedule.advance()
        self.average.follow(self.model)
        return loss, norm

    @torch.no_grad()
    def judge(self):
        """The average's loss on another batch, and its length."""
        images, labels = batch(STEPS)
        squares = [p.square().sum() for p in self.average.model.parameters()]
        return F.nll_loss(self.average.model(images).log_softmax(-1), labels), torch.stack(squares).sum().sqrt()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(3)
    training = Training()
    for number in range(STEPS + 1):
        loss, norm = training.step(number) if number < STEPS else training.judge()
        print(f"step {number} loss {loss.item():.9f} norm {norm.item():.9f}", flush=True)


if __name__ == "__main__":
    main()
