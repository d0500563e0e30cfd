"""What `opguard prove --rules` runs in Python: each operator that has a meaning, on random float64 numbers, with its
gradients.

    python rules.py --out DIR

    Case("multiply, divide", lambda x, y: (x * y, x / y), [(2, 3), (2, 3)])
    rule-1.json      its nodes as a plan's; "values": {"x": [...], "y": [...]};
                     "expected": {"out0": ..., "out1": ..., "grad0": ..., "grad1": ...} as torch has computed them

DIR gets rule-<n>.json, a side's file as capture.py writes it, with what the inputs held ("values") and what torch
computed ("expected"). Of a collective it gets collective-<n>-rank-<r>.json, a file for each rank. rules.json comes
last, with their names and what gloo's processes gave. The checker computes the same from its meanings.

Counterexample: one agreement on random numbers proves no meaning. It finds a wrong sign, order or dimension."""

import argparse
import json
import os
import sys
import types

if __name__ == "__main__" and not __package__:
    # Run by its path, as capture.py.
    _here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or os.curdir) != _here]
    __package__ = "opguard_prove"
    sys.modules[__package__] = types.ModuleType(__package__)
    sys.modules[__package__].__path__ = [_here]

import torch  # noqa: E402

from . import rules_elementwise, rules_images, rules_networks, rules_places, rules_reductions, rules_training  # noqa: E402
from . import rules_processes  # noqa: E402
from .rules_case import SIZE, recorded  # noqa: E402

FAMILIES = (rules_elementwise, rules_reductions, rules_places, rules_networks, rules_images, rules_training)


def cases():
    """All cases in one order: the seed is set once, so each has the same numbers in every run."""
    for family in FAMILIES:
        yield from family.cases()


def write(case, path):
    """One case as its file. allow_nan=False: a number that JSON has no word for would be a mistake in the case."""
    found, outputs = recorded(case.step, {**case.state, **case.tokens})
    found.update(name=case.name, near=case.near, tokens={name: SIZE for name in case.tokens})
    found["expected"] = {name: tensor.detach().double().reshape(-1).tolist() for name, tensor in outputs.items()}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(found, file, allow_nan=False, separators=(",", ":"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    collectives = rules_processes.write(asked.out)  # first: a process that is forked after a backward pass hangs
    torch.manual_seed(0)
    names = []
    for case in cases():
        write(case, os.path.join(asked.out, "rule-%d.json" % len(names)))
        names.append(case.name)
    with open(os.path.join(asked.out, "rules.json"), "w", encoding="utf-8") as file:
        json.dump({"version": 1, "torch": torch.__version__, "rules": names, "collectives": collectives}, file)


if __name__ == "__main__":
    main()
