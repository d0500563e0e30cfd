import torch


class FusedSgd(torch.optim.Optimizer):
    """One call for all parameters. What to update is planned once for each pattern of gradients."""

    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})
        self.plans = {}

    def plan(self, group):
        return [p for p in group["params"] if p.grad is not None]

    @torch.no_grad()
    def step(self, closure=None):
        for i, group in enumerate(self.param_groups):
            key = (i, tuple(p.grad is None for p in group["params"]))
            if key not in self.plans:
                self.plans[key] = self.plan(group)
            todo = self.plans[key]
            if todo:
                torch._foreach_add_(todo, [p.grad for p in todo], alpha=-group["lr"])
