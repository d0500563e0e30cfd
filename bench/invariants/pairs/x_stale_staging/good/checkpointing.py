import os

import torch


class AsyncCheckpointer:
    """Stages the weights in buffers that are made once, and writes those."""

    def __init__(self, model, folder):
        self.model, self.folder = model, folder
        self.staging = None
        self.pending = []

    @torch.no_grad()
    def stage(self):
        state = self.model.state_dict()
        if self.staging is None:
            self.staging = {k: torch.empty_like(v) for k, v in state.items()}
            for k, v in state.items():
                self.staging[k].copy_(v)
        else:
            for k, v in state.items():
                self.staging[k].copy_(v)
        return self.staging

    def save(self, step):
        torch.save({"step": step, "model": self.stage()}, os.path.join(self.folder, f"step-{step}.pt"))

    def wait(self):
        self.pending.clear()
