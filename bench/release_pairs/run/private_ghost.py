"""Private training of a small net: gradients of each sample by hooks or by functorch."""
import argparse, io, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from torch import nn
from opacus import GradSampleModule
from opacus.grad_sample.grad_sample_module_fast_gradient_clipping import GradSampleModuleFastGradientClipping
from opacus.optimizers import DPOptimizer
from opacus.optimizers.optimizer_fast_gradient_clipping import DPOptimizerFastGradientClipping
from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--functorch", type=int, default=0)
p.add_argument("--steps", type=int, default=2); p.add_argument("--resume", type=int, default=0)
p.add_argument("--ghost", type=int, default=0, help="clip by norms alone, without the gradients of samples"); o = p.parse_args()
oracle.setup(0)


def build():
    net = nn.Sequential(nn.Conv1d(3, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(64, 4))
    oracle.reinit(net, std=0.2)
    if o.ghost:
        model = GradSampleModuleFastGradientClipping(net, batch_first=True, loss_reduction="mean", max_grad_norm=1.0, use_ghost_clipping=True)
        opt = DPOptimizerFastGradientClipping(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), noise_multiplier=0.5, max_grad_norm=1.0,
                                              expected_batch_size=6, generator=torch.Generator().manual_seed(7))
        return model, opt
    model = GradSampleModule(net, batch_first=True, loss_reduction="mean", force_functorch=bool(o.functorch))
    opt = DPOptimizer(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), noise_multiplier=0.5, max_grad_norm=1.0,
                      expected_batch_size=6, generator=torch.Generator().manual_seed(7))
    return model, opt


model, opt = build()
x, y = torch.randn(6, 3, 8), torch.randint(0, 4, (6,))
with oracle.record(o.dump):
    for step in range(o.steps):
        if o.resume and step == o.resume:
            saved = io.BytesIO()
            torch.save((model.state_dict(), opt.state_dict()), saved)
            model, opt = build()
            weights, state = torch.load(io.BytesIO(saved.getvalue()), weights_only=False)
            model.load_state_dict(weights)
            opt.load_state_dict(state)
        if o.ghost:
            loss = DPLossFastGradientClipping(model, opt, nn.CrossEntropyLoss(), loss_reduction="mean")(model(x), y)
        else:
            loss = nn.functional.cross_entropy(model(x), y)
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
