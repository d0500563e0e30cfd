"""Runs one program of a repository as `python PROGRAM ARGUMENTS...` would, and says what it did.

  alone.py REPORT [--compile BACKEND] [--cpu] PROGRAM ARGUMENT...

REPORT (with the rank behind it) gets JSON: what it printed, how it ended, digests of the tensors that its names hold and of the generators' states.
Seeds are set and the clock stands still, since programs print how long they took. --compile: a model is compiled when its optimizer is made.
--cpu: torch.accelerator says that there are two devices and that each is the processor, for programs that run on no machine without."""

import argparse
import gc
import io
import json
import os
import random
import runpy
import sys
import time

import driver
import numpy
import torch


class Tee(io.TextIOBase):
    """What a program prints, kept."""

    def __init__(self):
        self.text = []

    def write(self, text):
        self.text.append(text)
        return len(text)


def compile_models(backend):
    """From now on the model that an optimizer is made for is compiled, in place (`Module.compile`)."""
    init = torch.optim.Optimizer.__init__

    def with_model(self, params, *rest, **named):
        init(self, params, *rest, **named)
        held = {id(p) for group in self.param_groups for p in group["params"]}
        modules = [m for m in gc.get_objects() if issubclass(type(m), torch.nn.Module) and not issubclass(type(m), torch.jit.ScriptModule)]
        inner = {id(c) for m in modules for c in m.children()}
        for module in modules:
            if id(module) not in inner and any(id(p) in held for p in module.parameters()):
                module.compile(backend=backend)

    torch.optim.Optimizer.__init__ = with_model


def processor_for_accelerator():
    """torch.accelerator as it is where there are two devices; both are the processor."""
    there = {"is_available": True, "device_count": 2, "current_accelerator": torch.device("cpu"), "set_device_index": None}
    for name, answer in there.items():
        setattr(torch.accelerator, name, lambda *_, answer=answer, **__: answer)


def stand_ins():
    """Data sets of torchvision are taken as they lie: ours are not the real ones."""
    try:
        from torchvision import datasets
    except ImportError:
        return
    datasets.CIFAR10._check_integrity = lambda self: True
    for name in ("check_integrity",):
        for module in (datasets.utils, datasets.cifar):
            setattr(module, name, lambda path, md5=None: os.path.isfile(path))


def run(program, arguments):
    """(error, its names)"""
    sys.argv = [program, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(program))
    try:
        return None, runpy.run_path(program, run_name="__main__")
    except SystemExit as ended:
        return ["SystemExit", str(ended.code)] if ended.code else None, {}
    except BaseException as problem:
        return [type(problem).__name__, driver.first_line(problem)], {}


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("report")
    options.add_argument("--compile", default="")
    options.add_argument("--cpu", action="store_true")
    options.add_argument("program")
    options.add_argument("arguments", nargs=argparse.REMAINDER)
    options = options.parse_args()
    report = options.report + "." + os.environ.get("RANK", "0")
    torch.manual_seed(0), random.seed(0), numpy.random.seed(0)
    torch.set_num_threads(1)
    stand_ins()
    if options.compile:
        compile_models(options.compile)
    if options.cpu:
        processor_for_accelerator()
    time.time = time.perf_counter = lambda: 1.7e9
    printed, plain = Tee(), sys.stdout
    sys.stdout = printed
    try:
        error, names = run(options.program, options.arguments)
    finally:
        sys.stdout = plain
    values = {n: driver.digest(v) for n, v in names.items() if not n.startswith("__") and any(True for _ in driver.tensors_in(v))}
    said = {"stdout": driver.ADDRESS.sub("0x", "".join(printed.text)), "error": error, "values": values, "rng": driver.random_states()}
    with open(report, "w") as file:
        json.dump(said, file)
    sys.exit(1 if error else 0)


if __name__ == "__main__":
    main()
