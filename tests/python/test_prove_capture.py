"""Captures of plans for `opguard prove`: the files are complete, sources are the user's lines, bad input is told in one line."""

import json
import os
import subprocess
import sys

import pytest

from conftest import ROOT

pytest.importorskip("torch")
COMMAND = ROOT / "python" / "opguard" / "prove" / "capture.py"

LOGICAL = """import torch
DIMS = dict(batch=2, hidden=4, vocab=8)
WORLD = 2
def logical(d):
    emb, w = torch.nn.Parameter(torch.randn(8, 4)), torch.nn.Parameter(torch.randn(4, 4))
    ids = torch.randint(0, 8, (d["batch"],))
    def step():
        loss = (emb[ids] @ w).tanh().sum()
        loss.backward()
        return {"loss": loss.detach(), "grad:w": w.grad, "none": None}
    return dict(state={"emb": emb, "w": w}, tokens={"ids": ids}, step=step)
"""

PLAN = LOGICAL + """
import torch.distributed as dist
class Copy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)
    @staticmethod
    def backward(ctx, grad):
        grad = grad.clone()
        dist.all_reduce(grad, group=ctx.group)  # custom backward
        return grad, None
def plan(rank, d):
    pair = dist.new_group([0, 1])
    whole = logical(d)
    emb = whole["state"]["emb"]
    w = torch.nn.Parameter(torch.randn(4, 2))
    scale = torch.full((2,), 0.5, dtype=torch.bfloat16)
    ids = whole["tokens"]["ids"]
    def step():
        print("the plan's own words")
        x = Copy.apply(emb[ids], pair)  # forward
        y = x @ w  # matmul
        part = torch.empty(3)
        part[:2] = scale
        bias = torch.ones(2).tril() if False else torch.arange(2.0) / 0.0  # constant
        if rank == 0:
            dist.send(y.detach(), 1)
        else:
            dist.recv(torch.empty(2, 2), 0)
        loss = (y.tanh() * part[:2] + bias.nan_to_num(0, 0)).sum()  # loss
        loss.backward()  # backward
        dist.all_reduce(loss.detach(), op=dist.ReduceOp.MAX)
        print(loss)
        return {"loss": loss.detach(), "grad:w": w.grad, "none": None}
    def place(name, full):
        return full.chunk(2, 1)[rank] if name == "w" else full
    return dict(state={"emb": emb, "w": w}, tokens={"ids": ids}, step=step, place=place)
"""

SHARDED = LOGICAL + """
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
TOKENS = {"ids": "hidden"}
def plan(rank, d):
    mesh = init_device_mesh("cpu", (2,))
    emb = DTensor.from_local(torch.randn(4, 4), mesh, [Shard(0)], run_check=False)
    w = DTensor.from_local(torch.randn(4, 4), mesh, [Replicate()], run_check=False)
    return dict(state={"emb": emb, "w": w}, tokens={}, step=lambda: {"new:emb": emb + emb, "sum": emb.sum().full_tensor()})
"""


def line(text, words):
    return next(number for number, words_there in enumerate(text.splitlines(), 1) if words in words_there)


def changed(old, new, text=PLAN):
    assert old in text, old
    return text.replace(old, new)


# name -> the plan, the line that is told, words of what is told
BAD = {
    "syntax": ("x = 1\ndef plan(:\n", 2, "syntax error"),
    "empty": ("x = 1\n", 1, "no logical(d) is defined"),
    "no_plan": (LOGICAL, 1, "no plan(rank, d) is defined"),
    "no_world": (changed("WORLD = 2\n", "\n"), 1, "no WORLD"),
    "import": (changed("import torch\n", "import torch, nothing_of_this_name\n"), 1, "No module named 'nothing_of_this_name'"),
    "logical_raises": (changed("    ids =", "    ids = 1 / 0\n    ids ="), 6, "logical(d) raises ZeroDivisionError"),
    "plan_raises": (changed("    whole =", "    rank // rank\n    whole ="), line(PLAN, "    whole ="), "rank 0: plan(0, d) raises ZeroDivisionError"),
    "step_raises": (changed("x @ w  #", "x @ w.t() if rank else x @ w  #"), line(PLAN, "# matmul"), "rank 1: step() raises RuntimeError"),
    "backward_raises": (changed("grad.clone()", "grad.view(3)"), line(PLAN, "grad.clone()"), "rank 0: step() raises RuntimeError"),
    "exits": (changed("# matmul", "; raise SystemExit(4)"), line(PLAN, "# matmul"), "rank 0: step() raises SystemExit: 4"),
    "dies": (changed("# matmul", "; import os; os._exit(4)"), line(PLAN, "def plan"), "rank 0 ended its process: exit status 4"),
    "no_tokens": (changed("tokens={", "others={"), 4, "logical(d) returns no tokens"),
    "no_dict": (changed('return {"loss": loss.detach(), "grad:w": w.grad, "none": None}\n    def place', "return [loss]\n    def place"),
                line(PLAN, "print(\"the plan's") - 1, "rank 0: step() returns list, not a dict"),
    "shape": (changed("chunk(2, 1)", "chunk(2, 0)"), line(PLAN, "def place"), "place('w', full) gives [2, 4], the rank holds [4, 2]"),
    "no_tensor": (changed("return full.chunk(2, 1)[rank]", "return 1"), line(PLAN, "def place"), "gives int, not a tensor"),
    "name": (changed('dict(state={"emb": emb, "w": w}, tokens={"ids": ids}, step=step, place', 'dict(state={"bem": emb}, tokens={}, step=step, place'),
             line(PLAN, "def plan"), "state has 'bem', which logical's has not"),
    "value": (changed('{"loss": loss.detach()', '{"loss": loss.item()'), line(LOGICAL, "def step"), "'loss' as float, not a tensor"),
}  # fmt: skip

# One process imports torch; each plan is captured in a fork of it.
DRIVER = """
import importlib, json, os, sys, types
package = types.ModuleType("prove"); package.__path__ = [sys.argv[1]]; sys.modules["prove"] = package
capture = importlib.import_module("prove.capture")
import torch, torch.distributed
for name, *options in json.loads(sys.argv[2]):
    child = os.fork()
    if not child:
        for number, kind in ((1, "out"), (2, "err")):
            os.dup2(os.open(name + "." + kind, os.O_WRONLY | os.O_CREAT), number)
        try:
            code = capture.main([name + ".py", "--out", name + ".files", "--jobs", "1", *options])
        except SystemExit as left:
            code = left.code
        open(name + ".exit", "w").write(str(code))
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)
"""


@pytest.fixture(scope="module")
def captured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plans")
    plans = {name: text for name, (text, _, _) in BAD.items()}
    plans.update(whole=PLAN, sharded=SHARDED, wider=PLAN)
    for name, text in plans.items():
        (folder / f"{name}.py").write_text(text)
    runs = [[name] for name in plans if name != "wider"] + [["wider", "--dims", "batch=3"], ["absent"]]
    done = subprocess.run([sys.executable, "-c", DRIVER, str(COMMAND.parent), json.dumps(runs)], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return folder


def files(folder, name):
    assert (folder / f"{name}.err").read_text() == ""
    assert (folder / f"{name}.exit").read_text() == "0"
    return [json.loads((folder / f"{name}.files" / f"{part}.json").read_text()) for part in ("plan", "logical", "rank-0", "rank-1")]


def storages(value, found):
    """Of every T in a JSON value."""
    if isinstance(value, dict):
        if "t" in value:
            found.add(value["t"][0])
        for item in value.values():
            storages(item, found)
    elif isinstance(value, list):
        for item in value:
            storages(item, found)
    return found


def place_of(side, node):
    return side["stacks"][node["at"]][0][1]


def test_every_storage_that_is_read_has_contents(captured):
    _, *sides = files(captured, "whole")
    for side in sides:
        known = storages(side["inputs"], set()) | {int(number) for number in side["constants"]}
        for node in side["nodes"]:
            symbolic = "values" not in node
            c10d = node["op"].startswith("c10d")
            if symbolic and not c10d and not node.get("view") and not node["op"].startswith("aten.new_empty"):  # a view reads nothing
                written = storages(node["writes"], set()) if node["op"] == "aten.copy_.default" else set()
                assert storages([node["args"], node["kwargs"]], set()) - written <= known, node
            known |= storages(node["writes"], set())
        assert storages(side["outputs"], set()) <= known
        assert "none" not in side["outputs"]


def test_plan_file(captured):
    plan, logical, first, second = files(captured, "whole")
    assert plan["world"] == 2 and plan["dims"] == {"batch": 2, "hidden": 4, "vocab": 8} and plan["plan"] == str(captured / "whole.py")
    assert plan["names"] == {
        "emb": {"kind": "state", "shape": [8, 4]},
        "w": {"kind": "state", "shape": [4, 4]},
        "ids": {"kind": "token", "shape": [2], "size": 8},
    }
    assert (first["rank"], second["rank"]) == (0, 1) and "place" not in logical
    assert first["place"]["w"] == [0, 1, 4, 5, 8, 9, 12, 13] and second["place"]["w"] == [2, 3, 6, 7, 10, 11, 14, 15]
    assert second["place"]["ids"] == [0, 1]


def test_constants_and_values(captured):
    first = files(captured, "whole")[2]
    assert ["bfloat16", [0.5, 0.5]] in first["constants"].values()
    divided = next(node for node in first["nodes"] if node["op"].startswith("aten.div"))
    assert divided["values"] == [[{"f": "nan"}, {"f": "inf"}]] and len(divided["writes"]) == 1
    assert not any(node["op"].startswith("aten.empty") for node in first["nodes"])  # nobody wrote it


def test_groups_and_peers(captured):
    _, _, first, second = files(captured, "whole")
    reduces = [node for node in first["nodes"] if node["op"] == "c10d.allreduce_.default"]
    assert [node["args"][2] for node in reduces] == [{"reduce": "sum"}, {"reduce": "max"}]
    assert all(node["args"][1] == {"group": [0, 1]} and node["writes"] for node in reduces)
    send = next(node for node in first["nodes"] if node["op"] == "c10d.send.default")
    recv = next(node for node in second["nodes"] if node["op"] == "c10d.recv_.default")
    assert send["args"][2] == 1 and send["writes"] == []
    assert recv["args"][2] == 0 and len(recv["writes"]) == 1


def test_sources_are_the_users_lines(captured):
    first = files(captured, "whole")[2]
    multiplied = [node for node in first["nodes"] if node["op"] == "aten.mm.default"]
    assert [node.get("backward", False) for node in multiplied] == [False, True, True]
    assert {place_of(first, node) for node in multiplied} == {line(PLAN, "# matmul")}
    assert {node["node"] for node in multiplied[1:]} == {"MmBackward0"}
    reduced = next(node for node in first["nodes"] if node["op"] == "c10d.allreduce_.default")
    assert reduced["backward"] and place_of(first, reduced) == line(PLAN, "# custom backward")
    assert [stack[0][0] for stack in first["stacks"]] == [str(captured / "whole.py")] * len(first["stacks"])
    for node in first["nodes"]:
        if node.get("node", "").startswith("Tanh"):
            assert place_of(first, node) == line(PLAN, "# loss")


def test_views_are_marked(captured):
    first = files(captured, "whole")[2]
    views = {node["op"] for node in first["nodes"] if node.get("view")}
    assert {"aten.t.default", "aten.expand.default", "aten.detach.default"} <= views
    assert not any("mm" in name or "copy" in name for name in views)


def test_dtensors_say_their_place(captured):
    plan, _, first, second = files(captured, "sharded")
    assert first["place"] == {"emb": list(range(16)), "w": list(range(16))}
    assert second["place"]["emb"] == list(range(16, 32))
    assert [node["op"] for node in second["nodes"]][:2] == ["aten.add.Tensor", "aten.sum.default"]
    reduced, waited = (next(node for node in second["nodes"] if word in node["op"]) for word in ("all_reduce", "wait_tensor"))
    assert reduced["kwargs"]["_group"] == [0, 1] and reduced["args"][1] == "sum"
    assert waited["view"] and waited["args"] == reduced["out"] and second["outputs"]["sum"] == reduced["out"][0]
    assert plan["names"]["ids"]["size"] == 4  # TOKENS names a dim


def test_dims_are_overridden(captured):
    plan, *_ = files(captured, "wider")
    assert plan["dims"]["batch"] == 3 and plan["names"]["ids"]["shape"] == [3]


def test_standard_output_is_the_programs(captured):
    words = (captured / "whole.out").read_text().splitlines()
    assert words.count("the plan's own words") == 2 and len(words) == 4
    assert not any("_local_scalar_dense" in node["op"] for node in files(captured, "whole")[2]["nodes"])  # print(loss) decides nothing
    assert not any(captured.rglob("__pycache__"))


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_told_in_one_line(captured, name):
    _, number, words = BAD[name]
    told = (captured / f"{name}.err").read_text()
    assert told.startswith(f"{name}.py:{number}: ") and words in told and told.count("\n") == 1, told
    assert (captured / f"{name}.exit").read_text() == "3"
    assert not (captured / f"{name}.files" / "plan.json").exists()


def test_no_file(captured):
    assert (captured / "absent.err").read_text() == "absent.py:1: cannot be read: No such file or directory\n"
    assert (captured / "absent.exit").read_text() == "3"


def test_it_runs_by_its_path(tmp_path):
    (tmp_path / "bad.py").write_text("def f(:\n")
    done = subprocess.run([sys.executable, str(COMMAND), "bad.py", "--out", "files"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 3 and done.stderr.startswith("bad.py:1: syntax error") and os.listdir(tmp_path) == ["bad.py"]
