import copy

import torch


class EMAHook:
    """Keeps an average of the weights, and puts it into the model while it is evaluated."""

    def __init__(self, model, momentum=0.1):
        self.model = model
        self.momentum = momentum
        self.ema_model = copy.deepcopy(model).requires_grad_(False).eval()
        self.source = None

    @torch.no_grad()
    def after_train_iter(self):
        for average, param in zip(self.ema_model.parameters(), self.model.parameters()):
            average.lerp_(param, self.momentum)

    def before_val_epoch(self):
        self.source = self.model.state_dict()
        self.model.load_state_dict(self.ema_model.state_dict())

    def after_val_epoch(self):
        self.model.load_state_dict(self.source)
        self.source = None
