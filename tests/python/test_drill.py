"""`opguard diff --drill`: the ATen operator inside the pivot; and the windows it is read from (docs/design/proof.md)."""

import json

import pytest

from runtime_log import logs_in, run_program

pytest.importorskip("torch")

PROGRAM = """
import torch, torch.nn.functional as F
torch.manual_seed(0)
model = torch.nn.Linear(6, 5)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
for step in range(3):
    x = torch.randn(4, 6)
    h = og("t.softmax", torch.softmax)(model(x), dim=-1)
    loss = og("t.smooth", F.smooth_l1_loss)(h, x[:, :5])
    loss.backward()
    og("t.step", optimizer.step)()
    optimizer.zero_grad()
    print(loss.item().hex(), model.weight.double().sum().item().hex())
"""


def drilled(folder, selection, source=PROGRAM):
    """(the finished process, the windows written) of a program run with OPGUARD_DRILL."""
    done = run_program(source, folder, env={"OPGUARD_DRILL": selection})
    return done, [json.loads(path.read_text()) for path in sorted(folder.glob("drill-*.json"))]


@pytest.mark.parametrize(
    "selection, kind, occurrence, operators",
    [
        ("t.smooth@1,kind=op,phase=forward", "op", 1, {"aten.smooth_l1_loss.default"}),
        ("t.softmax@2,kind=node,phase=backward,node=SoftmaxBackward0", "node", 2, {"aten._softmax_backward_data.default"}),
        ("t.step@0,kind=optimizer", "optimizer", 0, {"aten.addcdiv_.default", "aten.lerp_.Scalar"}),
    ],
)
def test_a_window_holds_what_ran_in_it_and_changes_nothing(tmp_path, selection, kind, occurrence, operators):
    bare = run_program(PROGRAM)
    done, windows = drilled(tmp_path, selection)
    assert done.stdout == bare.stdout and "opguard" not in done.stderr, done.stderr
    (window,) = windows
    assert (window["kind"], window["occurrence"], window["rank"]) == (kind, occurrence, 0)
    names = [entry["name"] for entry in window["operators"]]
    assert operators <= set(names), names
    assert not any(entry["raised"] for entry in window["operators"])
    (log,) = logs_in(tmp_path)
    assert log.settings["drill.0"] == "done" and "opguard_faults" not in log.settings


def test_values_are_those_of_the_log(tmp_path):
    _, (window,) = drilled(tmp_path, "t.softmax@1,kind=op")
    (log,) = logs_in(tmp_path)
    event = log.of("t.softmax")[1] if log.of("t.softmax")[1].kind == "op" else [e for e in log.of("t.softmax") if e.kind == "op"][1]
    (softmax,) = [entry for entry in window["operators"] if entry["name"] == "aten._softmax.default"]
    assert softmax["scalars"] == "arg1=-1, arg2=False"
    for slot, tensor in ((event.get("in", "arg0"), softmax["in"][0]), (event.get("out", "out0"), softmax["out"][0])):
        assert tensor["value"] == "%016x:%016x" % tuple(slot.value) and tensor["shape"] == [4, 5]


def test_an_operator_that_raises_closes_its_window(tmp_path):
    source = """
import torch
for i in range(2):
    try: og("t.mm", torch.mm)(torch.ones(2, 3), torch.ones(2, 3))
    except RuntimeError: print("raised")
from torch.utils._python_dispatch import _get_current_dispatch_mode
print(_get_current_dispatch_mode())
"""
    done, (window,) = drilled(tmp_path, "t.mm@0", source)
    assert done.stdout == "raised\nraised\nNone\n" and done.stderr == ""
    assert window["operators"][-1]["raised"]


TREE = """
import torch
import torch.nn.functional as F
torch.manual_seed(0)
model = torch.nn.Linear(6, 5)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(2):
    x = torch.randn(4, 6)
    h = model(x)
    loss = F.cosine_embedding_loss(h, x[:, :5], torch.ones(4), reduction="{reduction}")
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(loss.item().hex())
"""


def test_a_site_of_many_kernels_is_resolved_to_the_one(opguard, tmp_path):
    for side, reduction in (("a", "mean"), ("b", "sum")):
        (tmp_path / side).mkdir()
        (tmp_path / side / "train.py").write_text(TREE.replace("{reduction}", reduction))
    out, page, work = tmp_path / "answer.json", tmp_path / "page.html", tmp_path / "work"
    done = opguard("diff", tmp_path / "a", tmp_path / "b", "--drill", "--no-prove", "--json", out, "--html", page, "--work", work,
                   "--color", "never", "--", "python", "train.py")  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    answer = json.loads(out.read_text())
    drill = answer["drill"]
    assert drill["operator"] == "aten.mean.default" and drill["b"]["operator"] == "aten.sum.default", drill
    # The last of them; what aten.empty_like among them leaves is whatever was in memory, alike or not.
    assert drill["operators"]["a"] == drill["operators"]["b"] > 10
    assert drill["operators"]["a"] - 2 <= drill["equal_before"] <= drill["operators"]["a"] - 1
    assert drill["a"]["in"] == drill["b"]["in"] and drill["a"]["out"] != drill["b"]["out"]
    # The operator's result is the pivot's.
    assert drill["a"]["out"][0]["fingerprint"] == answer["pivot"]["differs"][0]["a"]["fingerprint"]
    assert "causal" not in answer["pivot"]
    assert "  inside it: " in done.stdout and "run a runs aten.mean.default, run b aten.sum.default" in done.stdout
    assert "run a runs aten.mean.default, run b aten.sum.default" in page.read_text()
    for side in "ab":
        assert (work / f"run_{side}/drill/output.txt").read_text() == (work / f"run_{side}/output.txt").read_text()


def test_align_needs_the_commands(opguard, tmp_path):
    for option in ("--confirm", "--drill"):
        done = opguard("align", tmp_path, tmp_path, option)
        assert done.returncode == 2 and "--run-a and --run-b" in done.stderr and "opguard diff" in done.stderr
