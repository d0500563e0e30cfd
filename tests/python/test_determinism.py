"""Determinism control: same numbers run after run, the program's own settings stand, all of it is told."""

import json
import sys

import pytest

from boot import Program

pytest.importorskip("torch")

SHOW = """
import json, random, sys
import torch
from opguard.record import settings
try:
    import numpy
    numbers = [numpy.random.rand()]
except ImportError:
    numbers = []
numbers += [random.random(), torch.rand(1).item(), hash("text")]
loader = torch.utils.data.DataLoader(list(range(20)), shuffle=True, num_workers=%d)
order = [int(x) for x in loader]
print(json.dumps({"numbers": numbers, "order": order, "settings": settings.collect(), "control": settings.control()}))
"""


@pytest.fixture
def program(tmp_path):
    return Program(tmp_path)


def show(program, text=SHOW % 0, seed="5", **more):
    program.write("show.py", text)
    environment = dict({"OPGUARD_DETERMINISTIC": seed, "PYTHONHASHSEED": "0"}, **more)
    ran = program.run("show.py", environment=environment)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    return json.loads(ran.stdout)


@pytest.mark.parametrize("workers", [0, 2])
def test_same_seed_same_numbers(program, workers):
    first, second = show(program, SHOW % workers), show(program, SHOW % workers)
    assert (first["numbers"], first["order"]) == (second["numbers"], second["order"])
    other = show(program, SHOW % workers, seed="6")
    assert all(a != b for a, b in zip(first["numbers"][:-1], other["numbers"]))
    assert first["order"] != other["order"]


def test_control_is_told(program):
    told = show(program, OPGUARD_CONTROLLED="PYTHONHASHSEED,NCCL_ALGO", NCCL_ALGO="Ring")
    control, seen = told["control"], told["settings"]
    assert control["seed"] == "5" and control["env.PYTHONHASHSEED"] == "0" and control["env.NCCL_ALGO"] == "Ring"
    assert {"control." + k: v for k, v in control.items()} == {k: v for k, v in seen.items() if k.startswith("control.")}
    assert seen["deterministic_algorithms"] == "True" and seen["deterministic_warn_only"] == "True"
    assert seen["cudnn.benchmark"] == "False" and seen["cudnn.deterministic"] == "True" and seen["cudnn.allow_tf32"] == "False"
    assert seen["float32_matmul_precision"] == "highest" and seen["seed"] == "5"
    assert seen["torch"] and seen["python"] and seen["num_threads"] and seen["env.NCCL_ALGO"] == "Ring"
    assert all(isinstance(v, str) for v in seen.values())


def test_compiled_loops_take_no_vectors(program):
    """A vector's exp is not a single number's, and which loops have vectors depends on the probes between them."""
    told = show(program, "import torch._inductor.config\nassert torch._inductor.config.cpp.simdlen == 1\n" + SHOW % 0)
    assert told["control"]["inductor.cpp.simdlen"] == "1"


def test_without_control_nothing_is_claimed(program):
    program.write("show.py", SHOW % 0)
    ran = program.run("show.py", environment={"OPGUARD_MODE": "full"})
    told = json.loads(ran.stdout)
    assert told["control"] == {} and told["settings"]["deterministic_algorithms"] == "False"


def test_the_programs_own_settings_stand(program):
    text = "import torch\ntorch.manual_seed(11)\ntorch.use_deterministic_algorithms(False)\n" + SHOW % 0
    seen = show(program, text)["settings"]
    assert seen["seed"] == "11" and seen["deterministic_algorithms"] == "False"
    # What control did set and what was seen are two things, and both are told.
    assert seen["control.seed"] == "5" and seen["control.deterministic_algorithms"] == "True"


def test_an_operator_without_a_deterministic_kernel_runs(program):
    program.write("op.py", "import torch\nx = torch.zeros(4)\nx.put_(torch.tensor([0, 0]), torch.ones(2))\nprint('ran')\n")
    ran = program.run("op.py", environment={"OPGUARD_DETERMINISTIC": "0"})
    assert ran.returncode == 0 and ran.stdout == "ran\n"


def test_run_sets_the_environment(opguard, tmp_path):
    code = "import os, torch; print(os.environ['PYTHONHASHSEED'], os.environ['NCCL_ALGO'], os.environ['CUBLAS_WORKSPACE_CONFIG'], torch.initial_seed())"
    command = ["--", sys.executable, "-c", code]
    ran = opguard("run", "--deterministic", "--seed", "4", "--log", tmp_path / "a", *command)
    assert ran.stdout == "0 Ring :16:8 4\n"
    kept = opguard("run", "--deterministic", "--log", tmp_path / "b", *command, env={"NCCL_ALGO": "Tree"})
    assert kept.stdout == "0 Tree :16:8 0\n"
    bad = opguard("run", "--seed", "4", "--log", tmp_path / "c", *command)
    assert bad.returncode == 2 and "--deterministic" in bad.stderr
