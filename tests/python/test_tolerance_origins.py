"""`opguard diff --tolerance`: where a difference begins that shows elsewhere, as in a sum of gradients or behind an update."""

import sys

import pytest

pytest.importorskip("torch")

from test_tolerance import PROGRAM, compared  # noqa: E402

ALONE = f"{sys.executable} {{tree}}/train.py"
LINEAR = "        h = F.gelu(F.linear(Copied.apply(x), self.up))\n"
PARTS = "        part = F.linear(h, self.down)\n"


def line_in(tree, text):
    return next(n for n, line in enumerate((tree / "train.py").read_text().splitlines(), 1) if text in line)


@pytest.mark.parametrize("run_b", [ALONE, None])
def test_a_gradient_that_was_cut_off_names_what_cut_it(opguard, tmp_path, run_b):
    cut = LINEAR.replace("apply(x)", "apply(x.detach())")
    more = {} if run_b is None else {"run_b": run_b}
    done, verdict = compared(opguard, tmp_path, [(LINEAR, cut)], **more)
    assert done.returncode == 1
    assert verdict["pivot"]["b"]["line"] == line_in(tmp_path / "b", "x.detach()")
    assert "no gradient comes back through it" in verdict["pivot"]["why"]


def test_what_is_cut_off_in_both_is_no_finding(opguard, tmp_path):
    both = LINEAR.replace("apply(x)", "apply(x + 0.1 * x.detach())")
    done, verdict = compared(opguard, tmp_path, in_both=[(LINEAR, both)])
    assert (done.returncode, verdict["verdict"]) == (0, "equivalent")


def test_ranks_that_begin_with_other_weights_are_told_from_other_runs(opguard, tmp_path):
    made = "        self.down = torch.nn.Parameter(down.chunk(WORLD, 1)[RANK].clone())\n"
    gain = made + "        self.gain, self.bias = torch.nn.Parameter(1.5 * up[0]), torch.nn.Parameter(0.5 * up[1])\n"
    used = "        return x + Sum.apply(part)\n"
    scaled = "        return x + Sum.apply(part) * self.gain + self.bias\n"
    other = gain + "        if RANK > 0:\n            self.gain.data.fill_(1.0)\n            self.bias.data.zero_()\n"
    done, verdict = compared(opguard, tmp_path, [(gain, other)], in_both=[(made, gain), (used, scaled)])
    assert (done.returncode, verdict["verdict"], verdict["pivot"]["kind"]) == (1, "diverged", "replicas")
    held = {p["slot"]: p["found"] for p in verdict["tolerance"]["placements"] if p["boundary"] == "<parameters>" and p["step"] == 0}
    assert held["param:blocks.0.gain"] == held["param:blocks.0.bias"] == "replicated, not on rank 1"
    assert held["param:blocks.0.up"] == "sharded along 0"


UPDATE = "    optimizer.step()\n"
OWN = """    with torch.no_grad():
        for p in model.parameters():
            kept = p.clone()
            new = p - 0.1 * p.grad
            p.copy_(new)
"""


def test_an_update_that_writes_what_was_there_is_stale(opguard, tmp_path):
    own = [("optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, eps=1e-3, foreach=False)\n", ""), (UPDATE, OWN),
           ("    optimizer.zero_grad()\n", "    model.zero_grad()\n")]  # fmt: skip
    done, verdict = compared(opguard, tmp_path, [("p.copy_(new)", "p.copy_(kept)")], in_both=own)
    pivot = verdict["pivot"]
    assert (done.returncode, pivot["kind"], pivot["b"]["line"]) == (1, "stale", line_in(tmp_path / "b", "p.copy_(kept)"))
    assert "writes what was there before" in pivot["why"]


def test_attention_without_dropout_draws_nothing(opguard, tmp_path):
    """Its kernel may draw, and does not: what it makes of run a's values is a fault like another."""
    fused = PARTS + "        part = F.scaled_dot_product_attention(part, part, part)\n"
    wrong = fused.replace("(part, part, part)", "(part, part.flip(1), part)")
    done, verdict = compared(opguard, tmp_path, [(fused, wrong)], run_b=ALONE, in_both=[(PARTS, fused)])
    assert (done.returncode, verdict["verdict"]) == (1, "diverged")
    assert verdict["pivot"]["b"]["line"] == line_in(tmp_path / "b", "part.flip(1)")


def test_the_program_is_what_the_edits_expect():
    for text in (LINEAR, PARTS, UPDATE):
        assert PROGRAM.count(text) == 1


@pytest.mark.parametrize("given", ["None, 0.5", "dropout_p=0.5"])
def test_attention_with_dropout_draws(opguard, tmp_path, given):
    fused = PARTS + f"        part = F.scaled_dot_product_attention(part, part, part, {given})\n"
    done, verdict = compared(opguard, tmp_path, [("torch.manual_seed(0)\n", "torch.manual_seed(1)\n")], run_b=ALONE, in_both=[(PARTS, fused)])
    assert (done.returncode, verdict["verdict"]) == (2, "inconclusive")
    assert "scaled_dot_product_attention" in verdict["why"]
