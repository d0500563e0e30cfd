"""Three epochs under ignite with an EMAHandler whose momentum warms up; or resumed after the first in new objects."""
import argparse, copy, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from torch import nn
from ignite.engine import Engine, Events
from ignite.handlers import EMAHandler

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--resume", type=int, default=0); o = p.parse_args()
oracle.setup(0)
batches = [(torch.randn(8, 6), torch.randn(8, 2)) for _ in range(2)]


def build():
    model = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 2))
    oracle.reinit(model, std=0.4)
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)

    def update(engine, batch):
        loss = nn.functional.mse_loss(model(batch[0]), batch[1])
        loss.backward(); opt.step(); opt.zero_grad()
        return loss.item()

    trainer = Engine(update)
    ema = EMAHandler(model, momentum=0.2, momentum_warmup=0.05, warmup_iters=6)
    for q in ema.ema_model.parameters():
        q.requires_grad_(False)
    ema.attach(trainer)

    @trainer.on(Events.ITERATION_COMPLETED)
    def tell(engine):
        with torch.no_grad():
            averaged = nn.functional.mse_loss(ema.ema_model(batches[0][0]), batches[0][1])
        print("step", engine.state.iteration, "loss", repr(engine.state.output), "averaged loss", repr(averaged.item()), flush=True)

    return trainer, {"model": model, "opt": opt, "ema": ema.ema_model, "trainer": trainer}


trainer, parts = build()
with oracle.record(o.dump):
    if o.resume:
        trainer.run(batches, max_epochs=o.resume)
        trainer.state.max_epochs = 3
        saved = copy.deepcopy({k: part.state_dict() for k, part in parts.items()})
        trainer, parts = build()
        for k, part in parts.items():
            part.load_state_dict(saved[k])
    trainer.run(batches, max_epochs=3)
