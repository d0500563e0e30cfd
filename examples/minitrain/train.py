"""python train.py [--steps N] [--resume FILE] [--save FILE] [--set key=value ...]; torchrun --nproc-per-node 2 train.py ..."""
import argparse
import dataclasses
import os
import sys

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from minigpt.config import Config
from minigpt.engine import ddp
from minigpt.engine.trainer import Trainer


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=4)
    p.add_argument("--resume"); p.add_argument("--save")
    p.add_argument("--set", nargs="*", default=[])
    o = p.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    kinds = {f.name: type(f.default) for f in dataclasses.fields(Config)}
    cfg = Config(**{k: kinds[k](v) for k, v in (s.split("=") for s in o.set)})

    trainer = Trainer(cfg)
    if o.resume:
        trainer.resume(o.resume)
    trainer.run(o.steps, o.save)
    ddp.shutdown()


if __name__ == "__main__":
    main()
