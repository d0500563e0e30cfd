"""Tracing ends by itself when nothing new comes any more (python/opguard/trace/tracer.py), and says so."""

import json
import sys

import pytest

pytest.importorskip("torch")

# 70 steps; `rare` first runs in step NEW, `late` in step 60.
PROGRAM = """import sys, torch
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def rare(x):
    return torch.tanh(x)
def late(x):
    return torch.cos(x)
modes = set()
for step in range(1, 71):
    x = model(torch.ones(2, 4))
    if step == NEW:
        x = rare(x)
    if step == 60:
        x = late(x)
    loss = x.sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    modes.add(torch._C._len_torch_dispatch_stack())
print(loss.item(), model.weight.sum().item())
print(sorted(modes), file=open("modes.txt", "w"))
"""


@pytest.fixture
def preflight(opguard, tmp_path):
    """preflight(new, *options) -> (what it said, texts of the boundaries, modes that were on, what the program printed)"""

    def run(new, *options):
        tree = tmp_path / "tree"
        tree.mkdir(exist_ok=True)
        (tree / "train.py").write_text(PROGRAM.replace("NEW", str(new)))
        done = opguard("preflight", "-o", tmp_path / "plan.json", *options, "--", sys.executable, "train.py", cwd=tree)
        assert done.returncode == 0, done.stderr
        texts = {b["text"] for b in json.loads((tmp_path / "plan.json").read_text())["boundaries"]}
        printed = [line for line in done.stderr.splitlines() if not line.startswith("opguard: ")]
        return done.stdout, texts, json.loads((tree / "modes.txt").read_text()), printed

    return run


@pytest.mark.parametrize("new, end", [(3, 19), (15, 31), (18, 36)])
def test_it_ends_after_as_many_quiet_steps_as_it_took(preflight, new, end):
    said, texts, modes, printed = preflight(new)
    assert f"note: tracing ended after {end} optimizer steps: nothing new had come since step {new}; operators that only come later" in said
    assert "torch.tanh(x)" in texts and "torch.cos(x)" not in texts
    assert f"steps: {end} optimizer steps" in said
    assert modes == [0, 1], "what traced is taken out, so that the rest runs as without it"
    assert preflight(new, "--steps", "0")[3] == printed


def test_all_is_traced_if_wanted(preflight):
    said, texts, modes, _ = preflight(3, "--steps", "0")
    assert "tracing ended" not in said and "torch.cos(x)" in texts and modes == [1]


def test_what_comes_after_the_end_has_no_boundary(preflight):
    # The optimizer's second step is not its first, so that something is new in step 2; 16 quiet ones follow.
    said, texts, _, _ = preflight(19)
    assert "tracing ended after 18 optimizer steps: nothing new had come since step 2;" in said and "torch.tanh(x)" not in texts


def test_diff_says_so_for_each_side(opguard, tmp_path):
    for name, new in (("a", 3), ("b", 4)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_text(PROGRAM.replace("NEW", str(new)))
    done = opguard("diff", tmp_path / "a", tmp_path / "b", "--no-prove", "--", sys.executable, "train.py")
    assert done.returncode == 1, done.stderr
    for line in ("note: a: tracing ended after 19 optimizer steps", "note: b: tracing ended after 20 optimizer steps"):
        assert line in done.stderr
