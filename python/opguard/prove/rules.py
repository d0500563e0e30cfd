"""What `opguard prove --rules` runs in Python: each operator that has a meaning, on random float64 numbers, with its gradients.

    python rules.py --out DIR

DIR gets rule-<n>.json, a side's file as capture.py writes it, with what the inputs held ("values") and what torch
computed ("expected"), and rules.json last, their names. The checker computes the same from its meanings.
"""

import argparse
import json
import os
import sys
import types
import warnings

if __name__ == "__main__" and not __package__:
    # Run by its path, as capture.py.
    _here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or os.curdir) != _here]
    __package__ = "opguard_prove"
    sys.modules[__package__] = types.ModuleType(__package__)
    sys.modules[__package__].__path__ = [_here]

import torch  # noqa: E402

from . import rules_elementwise, rules_images, rules_networks, rules_places, rules_reductions, rules_training  # noqa: E402
from .recorder import Recorder  # noqa: E402
from .rules_case import SIZE  # noqa: E402

FAMILIES = (rules_elementwise, rules_reductions, rules_places, rules_networks, rules_images, rules_training)


def cases():
    for family in FAMILIES:
        yield from family.cases()


def write(case, path):
    recorder = Recorder()
    inputs = {name: recorder.input(tensor) for name, tensor in {**case.state, **case.tokens}.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.detect_anomaly(check_nan=False), recorder:
            outputs = case.step()
    found = {"version": 1, "rank": 0, "world": 1, "name": case.name, "near": case.near, "tokens": {name: SIZE for name in case.tokens}}
    found["values"] = {name: tensor.detach().reshape(-1).tolist() for name, tensor in {**case.state, **case.tokens}.items()}
    found["expected"] = {name: tensor.detach().double().reshape(-1).tolist() for name, tensor in outputs.items()}
    found.update(stacks=recorder.stacks, constants=recorder.constants, inputs=inputs, nodes=recorder.nodes)
    found["outputs"] = {name: recorder.output(tensor) for name, tensor in outputs.items()}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(found, file, allow_nan=False, separators=(",", ":"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    names = []
    for case in cases():
        write(case, os.path.join(asked.out, "rule-%d.json" % len(names)))
        names.append(case.name)
    with open(os.path.join(asked.out, "rules.json"), "w", encoding="utf-8") as file:
        json.dump({"version": 1, "torch": torch.__version__, "rules": names}, file)


if __name__ == "__main__":
    main()
