"""`opguard diff --tolerance --isolate`: every independent fault in one run, and what only follows is said to follow."""

import json
import sys

import pytest
from test_tolerance import PROGRAM, TORCHRUN

pytest.importorskip("torch")

NO_SUM = ("        return x + Sum.apply(part)", "        return x + (part if self.number == 0 and WORLD > 1 else Sum.apply(part))")
SCALED = ("        part = F.linear(h, self.down)", "        h = h * (1.5 if self.number == 1 and WORLD > 1 else 1.0)\n        part = F.linear(h, self.down)")
NUMBER = ("        super().__init__()\n        g = torch", "        super().__init__()\n        self.number = number\n        g = torch")

# Of the block whose gradient comes first, and of the other one.
ONE_BLOCK = ("class Copied(torch.autograd.Function):", "BACK = [0, 0]\n\nclass Copied(torch.autograd.Function):")
NO_SUM_BACK = ("        if WORLD > 1:\n            dist.all_reduce(grad)\n        return grad", "        BACK[0] += 1\n        if WORLD > 1 and BACK[0] % 2 == 0:\n            dist.all_reduce(grad)\n        return grad")  # fmt: skip
SCALED_BACK = ("    def backward(ctx, grad):\n        return grad\n", "    def backward(ctx, grad):\n        BACK[1] += 1\n        if WORLD > 1 and BACK[1] % 2 == 0:\n            grad = grad * 1.5\n        return grad\n")  # fmt: skip


def isolated(opguard, tmp_path, edits):
    text = PROGRAM.replace(*NUMBER)
    assert text != PROGRAM
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "train.py").write_text(text)
    out = tmp_path / "verdict.json"
    tree = tmp_path / "tree"
    done = opguard("diff", "--tolerance", "--isolate", "-q", tree, tree, "--run-a", f"{sys.executable} {{tree}}/train.py", "--run-b", TORCHRUN,
                   "--json", out, "--html", tmp_path / "verdict.html", "--work", tmp_path / "work", env={"OMP_NUM_THREADS": "1"})  # fmt: skip
    assert out.exists(), done.stderr
    found = json.loads(out.read_text())
    return done, found, found["tolerance"]["isolation"], text.splitlines()


def statements(isolation, lines):
    return [(f["state"], lines[int(f["place"].rpartition(":")[2]) - 1].strip()) for f in isolation["faults"]]


def test_two_independent_faults_are_shown_in_one_run(opguard, tmp_path):
    done, found, told, lines = isolated(opguard, tmp_path, [SCALED, NO_SUM])
    assert (done.returncode, found["verdict"]) == (1, "diverged"), done.stdout
    first, second = statements(told, lines)
    # The sum of block 0 is missing; h of block 1 is a multiple, which shows at the product that reads it.
    assert first == ("proven", "part = F.linear(h, self.down)") and told["faults"][0]["kind"] == "missing_reduce"
    assert second[0] == "proven" and second[1].startswith("h = h * (1.5")
    assert found["proof"]["state"] == "proven" and [c["state"] for c in found["proof"]["causes"]] == ["proven"] * 2
    assert told["follow"] > 0 and told["put"] > 0 and not told["pivot_follows"]
    assert "only followed" in done.stdout and "diverged, proven" in done.stdout
    assert "2 independent faults" in (tmp_path / "verdict.html").read_text()


def test_two_faults_in_backward_passes(opguard, tmp_path):
    done, found, told, lines = isolated(opguard, tmp_path, [ONE_BLOCK, NO_SUM_BACK, SCALED_BACK])
    # Block 1's gradient is not added up; block 0's is, and begins as a multiple of it. In b alone both follow one another.
    first, second = statements(told, lines)
    assert first == ("proven", "h = F.gelu(F.linear(Copied.apply(x), self.up))") and told["faults"][0]["kind"] == "missing_reduce"
    assert second == ("proven", "grad = grad * 1.5") and told["faults"][1]["kind"] == "scale"
    assert (found["verdict"], found["proof"]["state"]) == ("diverged", "proven") and "2 independent faults" in done.stdout
    assert told["follow"] > 0 and told["put"] > 0 and not told["refusals"]


def test_one_fault_is_one_whatever_follows(opguard, tmp_path):
    done, found, told, lines = isolated(opguard, tmp_path, [NO_SUM])
    assert statements(told, lines) == [("proven", "part = F.linear(h, self.down)")], done.stdout
    assert found["pivot"]["b"]["line"] == 1 + lines.index("        part = F.linear(h, self.down)")
    assert told["follow"] > 0 and not told["refusals"]


def test_isolate_is_of_a_comparison_within_rounding(opguard, tmp_path):
    done = opguard("diff", "--isolate", tmp_path, tmp_path, "--", sys.executable, "train.py")
    assert done.returncode != 0 and "--isolate requires --tolerance" in done.stderr and done.stderr.count("\n") <= 3
