"""`opguard doctor -- CMD`: programs with a known fault, sound ones, and what it leaves as it is."""
import json
import os
import sys
from pathlib import Path

import pytest

from boot import Program
from conftest import ROOT, clean_environment, tree_digest

sys.path.insert(0, str(ROOT / "bench"))
import doctor

pytest.importorskip("torch")
CASES = doctor.cases()


def environment():
    return {k: v for k, v in clean_environment().items() if k != "PYTHONHASHSEED"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_known_fault_is_named_and_nothing_else(case):
    from conftest import binary

    answer, done = doctor.run(case, binary("opguard"), environment())
    outcome, others = doctor.judge(case, answer)
    assert outcome == ("found" if case.expected else "sound"), (others, done.stdout, done.stderr)
    assert done.returncode == (1 if case.expected else 0)


def test_a_case_can_fail():
    """The judge of the cases: a fault at another line, one that is missed, one too many."""
    case = next(c for c in CASES if c.name == "python_shuffle")
    right = {"subject": "generator", "ground": "drawn_unseeded", "name": "python", "names": ["shuffle"], "state": "violated", "place": {"line": case.line}}
    assert doctor.judge(case, {"findings": [right]})[0] == "found"
    assert doctor.judge(case, {"findings": [{**right, "place": {"line": 1}}]})[0] == "elsewhere"
    assert doctor.judge(case, {"findings": [{**right, "state": "left"}]})[0] == "missed"
    assert doctor.judge(case, {"findings": [right, {**right, "name": "numpy", "names": []}]})[0] == "alarm"


TRAIN = """
import random, warnings
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

random.seed(1)
np.random.seed(1)
torch.manual_seed(1)
warnings.warn("of the program")
torch.use_deterministic_algorithms(True, warn_only=True)
model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.2), nn.Linear(4, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
for (x,) in DataLoader(TensorDataset(torch.randn(32, 4)), batch_size=8, shuffle=True, num_workers=1):
    loss = model(x * random.random() + np.random.rand()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    torch.zeros(4).put_(torch.tensor([0, 0]), torch.ones(2))
    print(loss.item().hex())
print(random.random(), np.random.rand(), torch.rand(1).item(), model.register_forward_hook(print).id)
"""


def test_an_observed_run_has_the_same_bits_and_the_same_output(tmp_path):
    program = Program(tmp_path)
    program.write("train.py", TRAIN)
    facts = tmp_path / "facts"
    facts.mkdir()
    bare, observed = program.run("train.py"), program.run("train.py", environment={"OPGUARD_OBSERVE": str(facts)})
    assert bare.returncode == 0 and (observed.stdout, observed.stderr) == (bare.stdout, bare.stderr)
    (mine,) = [f for f in (json.loads(p.read_text()) for p in facts.glob("facts-*.json")) if not f["child"]]
    assert mine["steps"] == 4 and [f["name"] for f in mine["operators"]] == ["put_"]


def test_the_run_ends_early_and_leaves_nothing(opguard, tmp_path):
    tree = tmp_path / "a tree"
    tree.mkdir()
    (tree / "train.py").write_text(TRAIN + "raise SystemExit('not that far')\n")
    before = tree_digest(tree)
    ran = opguard("doctor", "--once", "--json", tmp_path / "d.json", "--", sys.executable, "train.py", cwd=tree)
    answer = json.loads((tmp_path / "d.json").read_text())
    assert ran.returncode == 1 and answer["verdict"] == "violated", ran.stdout + ran.stderr
    assert (answer["steps"], answer["runs"], answer["ranks"]) == (3, 1, 1)
    # With the program's own deterministic mode one run names the operator.
    (only,) = [f for f in answer["findings"] if f["state"] == "violated"]
    assert (only["subject"], only["name"]) == ("op", "put_") and only["place"]["file"].endswith("a tree/train.py")
    assert "violated    put_                       has no deterministic kernel" in ran.stdout
    assert "not hidden: opguard noise . -- " in ran.stdout and tree_digest(tree) == before


def test_an_operator_that_stops_the_program_is_the_answer(opguard, tmp_path):
    (tmp_path / "train.py").write_text("import torch\ntorch.use_deterministic_algorithms(True)\ntorch.zeros(4).put_(torch.tensor([0, 0]), torch.ones(2))\n")
    ran = opguard("doctor", "--", sys.executable, "train.py", cwd=tmp_path)
    assert ran.returncode == 1 and "has no deterministic kernel, and stopped the program" in ran.stdout, ran.stdout + ran.stderr
    assert "train.py:3" in ran.stdout


def test_control_holds_what_the_program_leaves(opguard, tmp_path):
    (tmp_path / "train.py").write_text("import torch, random\nrandom.random()\nm = torch.nn.Linear(2, 1)\no = torch.optim.SGD(m.parameters(), 0.1)\nm(torch.ones(1, 2)).sum().backward()\no.step()\n")
    ran = opguard("doctor", "--deterministic", "--seed", "4", "--once", "--json", tmp_path / "d.json", "--", sys.executable, "train.py", cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    by = {(f["subject"], f["name"]): (f["state"], f["value"], f["by"]) for f in json.loads((tmp_path / "d.json").read_text())["findings"]}
    assert by["generator", "torch"] == by["generator", "python"] == ("controlled", "4", "control")
    assert by["variable", "NCCL_ALGO"] == ("controlled", "Ring", "control")
    assert by["flag", "deterministic_algorithms"] == ("controlled", "True", "control")


@pytest.mark.parametrize("program, said", [
    ("import torch\nraise SystemExit('bad config')", "bad config"),
    ("print(1)", "never imported torch"),
    ("import torch, os\nos.kill(os.getpid(), 9)", "signal 9"),
])  # fmt: skip
def test_a_program_that_fails_is_told(opguard, tmp_path, program, said):
    (tmp_path / "train.py").write_text(program)
    ran = opguard("doctor", "--json", tmp_path / "d.json", "--", sys.executable, "train.py", cwd=tmp_path)
    assert ran.returncode == 2 and said in ran.stderr and not ran.stdout, ran.stdout + ran.stderr
    assert ran.stderr.count("opguard: error:") == 1 and not (tmp_path / "d.json").exists()


def test_what_cannot_run(opguard, tmp_path):
    ran = opguard("doctor", "--", "./nowhere.sh", cwd=tmp_path)
    assert ran.returncode == 2 and "cannot run ./nowhere.sh: No such file" in ran.stderr
    ran = opguard("doctor", "--", sys.executable, "-I", "train.py", cwd=tmp_path)
    assert ran.returncode == 2 and "-I" in ran.stderr
    ran = opguard("doctor", "--seed", "3", "--", sys.executable, "train.py", cwd=tmp_path)
    assert ran.returncode == 2 and "--deterministic" in ran.stderr


def test_unlike_buckets_and_topologies_are_told(opguard, tmp_path):
    """What the header says of collectives, and that `align` tells two runs under unlike ones."""
    (tmp_path / "train.py").write_text(
        "import sys, torch\nimport torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel\n"
        "dist.init_process_group('gloo', init_method='file://' + sys.argv[2], rank=0, world_size=1)\ntorch.manual_seed(1)\n"
        "m = DistributedDataParallel(torch.nn.Linear(4, 1), bucket_cap_mb=int(sys.argv[1]))\no = torch.optim.SGD(m.parameters(), 0.1)\n"
        "m(torch.ones(2, 4)).sum().backward()\no.step()\n")
    for name, megabytes in (("a", 1), ("b", 2)):
        (tmp_path / f"{name}.xml").write_text(f"<system {name}>")
        opguard("run", "--deterministic", "--log", tmp_path / name, "--", sys.executable, "train.py", megabytes, tmp_path / f"{name}.group",
                cwd=tmp_path, env={"NCCL_TOPO_FILE": str(tmp_path / f"{name}.xml")})
    ran = opguard("align", tmp_path / "a", tmp_path / "b")
    assert "ddp.bucket_bytes differs: 1048576 in a, 2097152 in b" in ran.stdout, ran.stdout + ran.stderr
    assert "env.NCCL_TOPO_FILE differs: crc32 " in ran.stdout
    header = opguard("dump", next((tmp_path / "a").glob("*.log"))).stdout
    for control in ("env.TRITON_CACHE_AUTOTUNING = 1", "env.FLASH_ATTENTION_DETERMINISTIC = 1", "env.TORCHINDUCTOR_COORDINATE_DESCENT_TUNING = 0"):
        assert f"setting control.{control}" in header


def test_the_kept_results_are_of_these_programs():
    kept = json.loads((ROOT / "bench" / "results" / "doctor.json").read_text())
    assert {r["program"] for r in kept["results"]} == {case.name for case in CASES}
    assert str(Path.home()) not in json.dumps(kept) and os.sep + "work" not in json.dumps(kept)
