"""`opguard diff --tolerance`: another layout is equivalent, and a fault in it is named with its kind, at its statement."""

import json
import sys

import pytest

pytest.importorskip("torch")

PROGRAM = """
import os
import sys
import torch
import torch.distributed as dist
import torch.nn.functional as F

WORLD = int(os.environ.get("WORLD_SIZE", 1))
RANK = int(os.environ.get("RANK", 0))

class Copied(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.contiguous()
        if WORLD > 1:
            dist.all_reduce(grad)
        return grad

def reduced(x):
    x = x.clone()
    if WORLD > 1:
        dist.all_reduce(x)
    return x

class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return reduced(x)

    @staticmethod
    def backward(ctx, grad):
        return grad

class Block(torch.nn.Module):
    def __init__(self, number):
        super().__init__()
        g = torch.Generator().manual_seed(number + 1)
        up, down = torch.randn(32, 16, generator=g) / 4, torch.randn(16, 32, generator=g) / 4
        self.up = torch.nn.Parameter(up.chunk(WORLD, 0)[RANK].clone())
        self.down = torch.nn.Parameter(down.chunk(WORLD, 1)[RANK].clone())

    def forward(self, x):
        h = F.gelu(F.linear(Copied.apply(x), self.up))
        part = F.linear(h, self.down)
        return x + Sum.apply(part)

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block(i) for i in range(2))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x

if WORLD > 1:
    dist.init_process_group("gloo")
torch.manual_seed(0)
model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, eps=1e-3, foreach=False)
for step in range(2):
    for number in range(2):
        g = torch.Generator().manual_seed(100 + 2 * step + number)
        x, y = torch.randn(2, 8, 16, generator=g), torch.randn(2, 8, 16, generator=g)
        loss = F.mse_loss(model(x), y)
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
if WORLD > 1:
    dist.barrier()
    dist.destroy_process_group()
"""
TORCHRUN = f"{sys.executable} -m torch.distributed.run --standalone --nproc-per-node 2 " "{tree}/train.py"


def compared(opguard, tmp_path, edits=(), run_a=f"{sys.executable} {{tree}}/train.py", run_b=TORCHRUN, in_both=()):
    for name, changes in (("a", in_both), ("b", (*in_both, *edits))):
        tree = tmp_path / name
        tree.mkdir()
        text = PROGRAM
        for old, new in changes:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        (tree / "train.py").write_text(text)
    out = tmp_path / "verdict.json"
    done = opguard("diff", "--tolerance", "-q", tmp_path / "a", tmp_path / "b", "--run-a", run_a, "--run-b", run_b,
                   "--json", out, "--sarif", tmp_path / "verdict.sarif", "--html", tmp_path / "verdict.html", "--work", tmp_path / "work",
                   env={"OMP_NUM_THREADS": "1"})  # fmt: skip
    assert out.exists(), done.stderr
    return done, json.loads(out.read_text())


def line_of(text):
    return next(n for n, line in enumerate(PROGRAM.splitlines(), 1) if text in line)


def test_tensor_parallel_is_equivalent_and_its_layout_is_found(opguard, tmp_path):
    done, found = compared(opguard, tmp_path)
    assert (done.returncode, found["verdict"]) == (0, "equivalent"), done.stdout
    told = found["tolerance"]
    # What chunk() gives first is the whole in one process, and half of it in two.
    beyond = [t for t in told["placements"] if t["state"] == "beyond"]
    assert told["beyond"] == len(beyond) and all(t["boundary"].startswith("train.chunk:") for t in beyond)
    assert 0 < told["worst_ratio"] < 4
    layouts = {t["slot"]: t["found"] for t in told["placements"] if t["boundary"] == "<parameters>"}
    assert layouts["param:blocks.0.up"] == "sharded along 0" and layouts["param:blocks.1.down"] == "sharded along 1"
    assert any(t["found"] == "partial sum" for t in told["placements"]), "the row-parallel product before its reduction"
    assert "what the ranks of b hold of a's tensors" in done.stdout


def test_a_sum_that_is_never_made(opguard, tmp_path):
    done, found = compared(opguard, tmp_path, [("return x + Sum.apply(part)", "return x + part")])
    assert (done.returncode, found["verdict"], found["pivot"]["kind"]) == (1, "diverged", "missing_reduce"), done.stdout
    assert found["pivot"]["b"]["line"] == line_of("part = F.linear(h, self.down)")
    assert found["pivot"]["error"]["relative"] < found["pivot"]["error"]["allowed"]
    # A page has no rows for tensors of other layouts: it says what the terminal says.
    page = (tmp_path / "verdict.html").read_text()
    assert "nothing adds them up before it is used" in page and "partial sum" in page and "part = F.linear(h, self.down)" in page


def test_a_gradient_whose_parts_are_not_added(opguard, tmp_path):
    edit = ("        if WORLD > 1:\n            dist.all_reduce(grad)\n        return grad", "        return grad")
    done, found = compared(opguard, tmp_path, [edit])
    assert (done.returncode, found["pivot"]["kind"]) == (1, "missing_reduce"), done.stdout
    # Block 1 is the first in the backward pass whose input's gradient is a part of a sum.
    assert found["pivot"]["b"]["line"] == line_of("F.gelu(F.linear(Copied") - 2  # two lines above are gone in b


def test_a_loss_that_is_twice_as_large(opguard, tmp_path):
    done, found = compared(opguard, tmp_path, [("    loss.backward()", "    (2 * loss).backward()")])
    assert (done.returncode, found["pivot"]["kind"]) == (1, "scale"), done.stdout
    assert found["pivot"]["error"]["factor"] == pytest.approx(2)


def test_another_type_is_allowed_its_own_rounding(opguard, tmp_path):
    same = f"{sys.executable} {{tree}}/train.py"
    edits = [("model = Model()\n", "model = Model().bfloat16()\n"),
             ("    x, y =", "    kind = torch.bfloat16\n        x, y ="),
             ("F.mse_loss(model(x), y)", "F.mse_loss(model(x.to(kind)), y.to(kind))")]  # fmt: skip
    done, found = compared(opguard, tmp_path, edits, run_b=same)
    assert (done.returncode, found["verdict"]) == (0, "equivalent"), done.stdout
    assert found["tolerance"]["coarser"] == 2.0**16


DROPPED = ("        part = F.linear(h, self.down)", "        part = F.linear(F.dropout(h, 0.25), self.down)")


def test_random_numbers_of_another_stream_are_no_finding(opguard, tmp_path):
    done, found = compared(opguard, tmp_path, [("manual_seed(0)", "manual_seed(1)")], run_b=f"{sys.executable} {{tree}}/train.py", in_both=[DROPPED])
    assert (done.returncode, found["verdict"]) == (2, "inconclusive"), done.stdout
    assert f"F.dropout in train.py:{line_of('part = F.linear(h, self.down)')}" in found["why"]


def test_a_fault_before_random_numbers_is_named(opguard, tmp_path):
    edits = [("manual_seed(0)", "manual_seed(1)"), ("h = F.gelu(", "h = 1.01 * F.gelu(")]
    done, found = compared(opguard, tmp_path, edits, run_b=f"{sys.executable} {{tree}}/train.py", in_both=[DROPPED])
    assert (done.returncode, found["verdict"]) == (1, "diverged"), done.stdout
    assert found["pivot"]["b"]["line"] == line_of("h = F.gelu(")


TURNED = [("        part = F.linear(h, self.down)", "        places = torch.arange(h.shape[1]) * 97.3 + 600.2\n"
           "        part = F.linear(h * places.cos()[:, None].to(h.dtype), self.down)"),
          ("    loss.backward()", "    loss.float().backward()")]  # fmt: skip
NARROW = [("model = Model()\n", "model = Model().bfloat16()\n"),
          ("F.mse_loss(model(x), y)", "F.mse_loss(model(x.bfloat16()).float(), y)")]  # fmt: skip


def test_what_stays_wide_in_a_narrow_program_is_not_allowed_more(opguard, tmp_path):
    same = f"{sys.executable} {{tree}}/train.py"
    done, found = compared(opguard, tmp_path, NARROW, run_b=same, in_both=TURNED)
    assert (done.returncode, found["verdict"]) == (0, "equivalent"), done.stdout


def test_an_angle_in_the_narrow_type_is_named(opguard, tmp_path):
    same = f"{sys.executable} {{tree}}/train.py"
    edits = [*NARROW, ("places.cos()", "places.to(h.dtype).cos()")]
    done, found = compared(opguard, tmp_path, edits, run_b=same, in_both=TURNED)
    assert (done.returncode, found["verdict"], found["pivot"]["kind"]) == (1, "diverged", "precision"), done.stdout
    assert found["pivot"]["b"]["line"] == line_of("part = F.linear(h, self.down)") + 1


def test_other_weights_are_no_divergence(opguard, tmp_path):
    done, found = compared(opguard, tmp_path, [("manual_seed(number + 1)", "manual_seed(number + 7)")])
    assert (done.returncode, found["verdict"]) == (2, "inconclusive"), done.stdout
    assert "load the same checkpoint" in found["why"]


def test_a_reference_that_is_whole_nowhere_is_refused(opguard, tmp_path):
    done, found = compared(opguard, tmp_path, run_a=TORCHRUN)
    assert (done.returncode, found["verdict"]) == (2, "inconclusive"), done.stdout
    assert "do not hold the same parameters" in found["why"]


@pytest.mark.parametrize("options", [["--perturb", "2"], ["--tolerance", "--perturb", "0"], ["--tolerance", "--factor", "-1"]])
def test_options_that_mean_nothing(opguard, tmp_path, options):
    done = opguard("diff", *options, tmp_path, "--", "true")
    assert done.returncode == 2 and options[-2] in done.stderr


@pytest.mark.parametrize("in_both", [True, False])
def test_what_is_not_a_number_is_never_equivalent(opguard, tmp_path, in_both):
    edit = ("    loss.backward()", "    (loss * float('nan')).backward()")
    same = f"{sys.executable} {{tree}}/train.py"
    done, found = compared(opguard, tmp_path, () if in_both else [edit], run_b=same, in_both=[edit] if in_both else ())
    assert (done.returncode, found["verdict"]) == ((2, "inconclusive") if in_both else (1, "diverged")), done.stdout


ALONE = f"{sys.executable} {{tree}}/train.py"


def test_logs_that_were_kept_are_judged_again(opguard, tmp_path):
    _, found = compared(opguard, tmp_path, [("return x + Sum.apply(part)", "return x + part")])
    a, noise, b = (tmp_path / "work" / log for log in ("run_a/log", "run_a/noise_1/log", "run_b/log"))
    again = tmp_path / "again.json"

    def judged(*arguments):
        again.unlink(missing_ok=True)
        done = opguard("align", "--tolerance", *arguments, "--json", again)
        return done, json.loads(again.read_text()) if again.exists() else None

    done, same = judged(a, b, "--noise", noise)
    assert done.returncode == 1 and same["tolerance"] == found["tolerance"] and same["pivot"]["kind"] == "missing_reduce"
    for logs, why in (((noise, b, "--noise", noise), "is jittered"), ((a, b, "--noise", a), "is no noise"), ((b, a, "--noise", noise), "do not hold the same parameters")):
        done, told = judged(*logs)
        assert (done.returncode, told["verdict"]) == (2, "inconclusive") and why in told["why"], done.stdout
    for options, why in (((), "--noise"), (("--noise", noise, "--drill", "--run-a", "true", "--run-b", "true"), "drills nothing")):
        done, told = judged(a, b, *options)
        assert done.returncode == 2 and told is None and why in done.stderr


def test_elements_at_other_places(opguard, tmp_path):
    done, found = compared(opguard, tmp_path, [("return x + Sum.apply(part)", "return x + Sum.apply(part.flip(1))")], run_b=ALONE)
    assert (done.returncode, found["pivot"]["kind"]) == (1, "layout"), done.stdout
    assert found["pivot"]["b"]["line"] == line_of("return x + Sum.apply(part)")


def test_what_was_written_over_before_its_backward_pass(opguard, tmp_path):
    done, found = compared(opguard, tmp_path, [("        loss.backward()", "        x.data.mul_(2)\n        loss.backward()")], run_b=ALONE)
    assert (done.returncode, found["pivot"]["kind"]) == (1, "stale"), done.stdout
    assert found["pivot"]["b"]["line"] == line_of("        loss.backward()")  # where the new line is


OWN_OPTIMIZER = [
    ("optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, eps=1e-3, foreach=False)\n", ""),
    ("    optimizer.step()\n    optimizer.zero_grad()\n", """    norm = sum(p.grad.pow(2).sum() for p in model.parameters()).sqrt()
    with torch.no_grad():
        for p in model.parameters():
            p.data -= 0.1 * p.grad / norm
            p.grad = None
"""),
]  # fmt: skip


def test_a_factor_that_clipping_hides(opguard, tmp_path):
    done, found = compared(opguard, tmp_path, [("        loss.backward()", "        (2 * loss).backward()")], run_b=ALONE, in_both=OWN_OPTIMIZER)
    assert (done.returncode, found["verdict"], found["pivot"]["kind"]) == (1, "diverged", "scale"), done.stdout
    assert found["pivot"]["error"]["factor"] in (2, 4)


def test_the_parameters_of_an_own_optimizer_are_judged(opguard, tmp_path):
    done, found = compared(opguard, tmp_path, [("p.data -= 0.1 * p.grad", "p.data -= 0.2 * p.grad")], run_b=ALONE, in_both=OWN_OPTIMIZER)
    assert (done.returncode, found["verdict"]) == (1, "diverged"), done.stdout
    assert "p.data -= 0.2" in (tmp_path / "b" / "train.py").read_text().splitlines()[found["pivot"]["b"]["line"] - 1]


def test_the_last_update_is_judged(opguard, tmp_path):
    one = [("for step in range(2):", "for step in range(1):")]
    done, found = compared(opguard, tmp_path, [("lr=1e-3, eps", "lr=2e-3, eps")], run_b=ALONE, in_both=one)
    assert (done.returncode, found["verdict"]) == (1, "diverged"), done.stdout
    assert found["pivot"]["phase"] == "optimizer", found["pivot"]


def test_a_compiled_model_is_equivalent(opguard, tmp_path):
    done, found = compared(opguard, tmp_path, [("model = Model()\n", "model = torch.compile(Model())\n")], run_b=ALONE)
    assert (done.returncode, found["verdict"]) == (0, "equivalent"), done.stdout
