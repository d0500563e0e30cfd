"""`opguard diff --tolerance`: where a call, or what finishes gradients, is named in place of the operator that shows it."""

import sys

import pytest

pytest.importorskip("torch")

from test_tolerance import compared  # noqa: E402
from test_tolerance_origins import ALONE, PARTS, UPDATE, line_in  # noqa: E402

BLOCK = "class Block(torch.nn.Module):\n"
HELPER = "def times(x, by):\n    return x * by\n\n" + BLOCK
LINEAR = "        h = F.gelu(F.linear(Copied.apply(x), self.up))\n"
CALLED = [(BLOCK, HELPER), (LINEAR, LINEAR + "        h = times(h, 0.5)\n"), (PARTS, PARTS + "        part = times(part, 2.0)\n")]


def test_the_call_of_a_helper_that_did_no_harm_elsewhere_is_named(opguard, tmp_path):
    done, verdict = compared(opguard, tmp_path, [("times(part, 2.0)", "times(part, 3.0)")], run_b=ALONE, in_both=CALLED)
    assert (done.returncode, verdict["pivot"]["kind"]) == (1, "scale")
    assert verdict["pivot"]["b"]["line"] == line_in(tmp_path / "b", "times(part, 3.0)")
    assert f"in it: train.py:{line_in(tmp_path / 'b', 'return x * by')}" in done.stdout


def test_a_helper_that_is_wrong_itself_is_named(opguard, tmp_path):
    done, verdict = compared(opguard, tmp_path, [("return x * by", "return x * by * 1.5")], run_b=ALONE, in_both=CALLED)
    assert (done.returncode, verdict["pivot"]["b"]["line"]) == (1, line_in(tmp_path / "b", "return x * by"))


FINISHED = """    for name, p in model.named_parameters():
        p.grad.mul_(0.5)
"""


def test_a_gradient_that_one_statement_leaves_out_names_the_statement(opguard, tmp_path):
    left_out = FINISHED.replace("        p.grad", '        if name != "blocks.1.up":\n            p.grad')
    done, verdict = compared(opguard, tmp_path, [(FINISHED, left_out)], run_b=ALONE, in_both=[(UPDATE, FINISHED + UPDATE)])
    pivot = verdict["pivot"]
    assert (done.returncode, pivot["kind"], pivot["b"]["line"]) == (1, "scale", line_in(tmp_path / "b", "p.grad.mul_"))
    assert "passes through it, and that of blocks.1.up does not" in pivot["why"] and "times 2" in pivot["why"]


# A gain on what two ranks share is the same on both, and each has a part of its gradient.
GAIN = [
    ("        self.down = torch", "        self.gain = torch.nn.Parameter(1.0 + down[:, 0].clone() / 8)\n        self.down = torch"),
    ("Copied.apply(x), self.up", "Copied.apply(x) * self.gain, self.up"),
]
SUMMED = """    for block in model.blocks:
        block.gain.grad.copy_(reduced(block.gain.grad))
        block.gain.grad.div_(4.0)
"""


def test_parts_of_a_gradient_name_what_takes_them_for_the_sum(opguard, tmp_path):
    both = [*GAIN, (UPDATE, SUMMED + UPDATE)]
    right = tmp_path / "right"
    right.mkdir()
    done, verdict = compared(opguard, right, in_both=both)
    assert (done.returncode, verdict["verdict"]) == (0, "equivalent"), done.stdout
    done, verdict = compared(opguard, tmp_path, [("        block.gain.grad.copy_(reduced(block.gain.grad))\n", "")], in_both=both)
    pivot = verdict["pivot"]
    assert (done.returncode, pivot["kind"], pivot["b"]["line"]) == (1, "missing_reduce", line_in(tmp_path / "b", "grad.div_(4.0)"))
    assert "for the whole sum" in pivot["why"]
