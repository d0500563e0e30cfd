"""`opguard preflight` on whole small programs: what it covers, and what it says of it."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("torch")


def preflight(opguard, tmp_path, files, command, *options, env=None):
    tree = tmp_path / "tree"
    tree.mkdir()
    for name, text in files.items():
        (tree / name).write_text(text)
    ran = opguard("preflight", "-o", tmp_path / "plan.json", "--quiet", *options, "--", *command, cwd=tree, env=env)
    assert ran.returncode == 0, ran.stderr
    return json.loads((tmp_path / "plan.json").read_text()), ran.stdout


def by_text(plan):
    return {boundary["text"]: boundary for boundary in plan["boundaries"]}


TRAIN = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
optimizer = torch.optim.AdamW(model.parameters())
for step in range(2):
    for _ in range(2):
        loss = model(torch.ones(2, 4)).square().mean()
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_everything_is_covered_and_said(opguard, tmp_path):
    plan, said = preflight(opguard, tmp_path, {"train.py": TRAIN}, [sys.executable, "train.py"])
    phases = plan["coverage"]["phases"]
    assert set(phases) == {"forward", "backward", "optimizer"}
    assert all(p["activities"] == p["attributed"] > 0 for p in phases.values())
    assert phases["backward"]["accumulated"] == 8  # two layers' weight and bias, added to once a step
    assert plan["unwrapped"] == [] and plan["foreign"] == []
    assert by_text(plan)["model(torch.ones(2, 4))"]["backward"]["aten::tanh_backward"] == 4
    assert "2 optimizer steps, 2 micro-batches each" in said
    assert "coverage: 100.0 %" in said and "backward 100.0 %" in said


def test_what_did_not_run_and_reads_alike_is_known(opguard, tmp_path):
    """A plan holds what ran; of the rest of the tree it keeps keys, so that nothing there is taken for an operator that goes later."""
    other = "import torch\n\ndef unused(model):\n    return model(torch.ones(2, 4)).square().mean()\n"
    plan, _ = preflight(opguard, tmp_path, {"train.py": TRAIN, "other.py": other, "plain.py": "print(1)\n"}, [sys.executable, "train.py"])
    assert {b["file"] for b in plan["boundaries"]} == {"train.py"}
    # The file, the function, and its four calls.
    assert len(" ".join(plan["elsewhere"]).split()) == 6


def test_what_is_not_covered_is_listed(opguard, tmp_path):
    text = TRAIN + "\nclass T:\n    def __del__(self):\n        pass\nimport torch.nn.functional as F\n"
    text += "@torch.jit.ignore\ndef plain(x):\n    return x * 2\nx = torch.ones(3)\ntable = {}\ndel table\n"
    text += "match_me = [torch.ones(2)]\nmatch x.sum():\n    case 3:\n        pass\n"
    plan, said = preflight(opguard, tmp_path, {"train.py": text}, [sys.executable, "train.py"])
    totals = plan["coverage"]
    left = sum(u["activities"] for u in plan["unwrapped"]) + sum(f["count"] for f in plan["foreign"])
    assert totals["activities"] - totals["attributed"] == left
    assert all(u["file"] == "train.py" and u["line"] > 0 and u["what"] and u["phase"] for u in plan["unwrapped"])


def test_no_source_above(opguard, tmp_path):
    # Another thread than the user's, started below the interpreter: no frame of the user's.
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "background.py").write_text(
        "import threading, torch\ndef work():\n    torch.ones(3).cos().sin()\ndef start():\n    t = threading.Thread(target=work)\n    t.start()\n    t.join()\n"
    )
    plan, said = preflight(
        opguard, tmp_path, {"train.py": "import sys\nsys.path.append(%r)\n" % str(tmp_path / "lib") + TRAIN + "import background\nbackground.start()\n"},
        [sys.executable, "train.py"],
    )  # fmt: skip
    assert {(f["phase"], f["activity"], f["count"]) for f in plan["foreign"]} == {
        ("forward", "aten::cos", 1), ("forward", "aten::sin", 1), ("forward", "aten::ones", 1)}  # fmt: skip
    assert "3 below no source" in said
    assert plan["coverage"]["phases"]["forward"]["activities"] - plan["coverage"]["phases"]["forward"]["attributed"] == 3


COMPILED = """
import torch

@torch.compile(fullgraph=True)
def block(x, w):
    return torch.relu(x @ w) * 2

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(3, 3))
    def forward(self, x):
        return block(x, self.w).sum()

model = torch.compile(Model(), mode="max-autotune")
model.compile()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    model(torch.ones(2, 3)).backward()
    optimizer.step()
"""


def test_compiled_programs(opguard, tmp_path):
    plan, _ = preflight(opguard, tmp_path, {"train.py": COMPILED}, [sys.executable, "train.py"])
    assert {"x @ w", "torch.relu(x @ w)", "torch.relu(x @ w) * 2"} <= set(by_text(plan))
    assert by_text(plan)["x @ w"]["backward"]
    assert plan["coverage"]["activities"] == plan["coverage"]["attributed"]


LOADER = """
import torch
from torch.utils.data import DataLoader, Dataset

class Data(Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, i):
        return torch.full((3,), float(i)) * 2

if __name__ == "__main__":
    w = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    for batch in DataLoader(Data(), batch_size=4, num_workers=2, multiprocessing_context=START):
        (batch * w).sum().backward()
        optimizer.step()
"""


@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore")
def test_loader_workers(opguard, tmp_path, start):
    plan, said = preflight(opguard, tmp_path, {"train.py": LOADER.replace("START", repr(start))}, [sys.executable, "train.py"])
    assert by_text(plan)["torch.full((3,), float(i)) * 2"]["activities"] == {"aten::mul.Tensor": 8}
    assert "2 optimizer steps" in said
    # Batches are put together by torch's own code in a worker, below no source of the user's.
    assert {f["activity"] for f in plan["foreign"]} <= {"aten::stack", "aten::cat", "aten::cat.out", "aten::stack.out", "aten::random_", "aten::random_.from"}


DISTRIBUTED = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    model(torch.ones(2, 3) * dist.get_rank()).sum().backward()
    optimizer.step()
x = torch.ones(1)
dist.all_reduce(x)
dist.destroy_process_group()
"""


def test_two_ranks(opguard, tmp_path):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "train.py"]
    plan, said = preflight(opguard, tmp_path, {"train.py": DISTRIBUTED}, command, env={"OMP_NUM_THREADS": "1"})
    found = by_text(plan)
    assert found["dist.all_reduce(x)"]["activities"]["opguard::collective"] == 2
    assert "2 optimizer steps, 1 micro-batch each" in said
    totals = plan["coverage"]
    left = sum(u["activities"] for u in plan["unwrapped"]) + sum(f["count"] for f in plan["foreign"])
    assert totals["activities"] - totals["attributed"] == left
    assert totals["attributed"] >= 0.99 * totals["activities"], (plan["unwrapped"], plan["foreign"])


TRAINER = """
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments
torch.manual_seed(0)
model = LlamaForCausalLM(LlamaConfig(vocab_size=32, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2))
row = lambda: dict(input_ids=torch.randint(0, 32, (8,)), attention_mask=torch.ones(8, dtype=torch.long), labels=torch.randint(0, 32, (8,)))
arguments = TrainingArguments(output_dir="out", max_steps=2, per_device_train_batch_size=2, gradient_accumulation_steps=2, use_cpu=True,
                              report_to=[], save_strategy="no", gradient_checkpointing=True)
Trainer(model, arguments, train_dataset=[row() for _ in range(8)]).train()
"""


def test_a_trainer_loop(opguard, tmp_path):
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    plan, said = preflight(
        opguard, tmp_path, {"train.py": TRAINER}, [sys.executable, "train.py"], "--with", "transformers", "--with", "accelerate"
    )
    phases = plan["coverage"]["phases"]
    for name in ("recompute", "backward", "optimizer"):
        assert phases[name]["activities"] == phases[name]["attributed"] > 0, plan["unwrapped"]
    assert phases["forward"]["attributed"] >= 0.97 * phases["forward"]["activities"]
    assert plan["foreign"] == []  # masks made under vmap, attention kernels: all have source above them
    assert "2 optimizer steps, 2 micro-batches each" in said
    # Nothing is left but forms that no probe has yet.
    assert {u["what"] for u in plan["unwrapped"]} <= {"truth test"}


BRANCHES = """
import torch

def branch(x):
    if torch.compiler.is_compiling():
        return torch.tanh(x)
    return torch.relu(x)

@torch.compiler.disable
def never(x):
    return branch(x)

@torch.compile
def both(x):
    return branch(x) + never(x)

class Gate(torch.nn.Module):
    def forward(self, x):
        return x.exp() if torch.compiler.is_compiling() else x.sin()

x = torch.ones(3)
print(both(x), torch.compile(Gate())(x), branch(x))
gate = Gate()
gate.compile()
gate(x)
"""


def test_branches_that_only_a_compiled_run_takes(opguard, tmp_path):
    plan, _ = preflight(opguard, tmp_path, {"train.py": BRANCHES}, [sys.executable, "train.py"])
    found = by_text(plan)
    # branch() is called compiled, below disable() and outside of both.
    assert {"torch.tanh(x)", "torch.relu(x)", "x.exp()"} <= set(found) and "x.sin()" not in found


FAILS_IF_TOLD = """
import torch

@torch.compile
def f(x):
    if torch.compiler.is_compiling():
        raise RuntimeError("only dynamo can do this")
    return torch.relu(x)

f(torch.ones(3))
"""


def test_a_program_that_cannot_be_told_runs_once_more(opguard, tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "train.py").write_text(FAILS_IF_TOLD)
    ran = opguard("preflight", "-o", tmp_path / "plan.json", "--quiet", "--", sys.executable, "train.py", cwd=tree)
    assert ran.returncode == 0, ran.stderr
    assert "told that it is being compiled" in ran.stderr
    assert "torch.relu(x)" in by_text(json.loads((tmp_path / "plan.json").read_text()))
    (tree / "train.py").write_text(FAILS_IF_TOLD.replace("f(torch", "1 / 0; f(torch"))
    ran = opguard("preflight", "-o", tmp_path / "plan.json", "--quiet", "--", sys.executable, "train.py", cwd=tree)
    assert ran.returncode == 2 and "once more" not in ran.stderr and "ZeroDivisionError" in ran.stderr
