import torch


class Engine:
    def __init__(self, model, lr):
        self.module = model
        self.managed = {k: p for k, p in model.named_parameters() if p.requires_grad}
        self.optimizer = torch.optim.AdamW(self.managed.values(), lr=lr)
        model.train()

    def __call__(self, *inputs):
        return self.module(*inputs)

    def backward(self, loss):
        loss.backward()

    def step(self):
        self.optimizer.step()
        self.optimizer.zero_grad()

    def save_checkpoint(self, file):
        weights = {k: v.detach().cpu() for k, v in self.managed.items()}
        torch.save({"module": weights, "optimizer": self.optimizer.state_dict()}, file)


def initialize(model, lr):
    return Engine(model, lr)
