"""Small training programs with one cause each, known by construction (tests/fixtures/programs/NAME/{a,b}): the statement must be named.

Each is a kind of mistake on which the judgement was once wrong, or a neighbour of one. The edit that made b is the difference of the two files."""

import json

import pytest

from conftest import ROOT, tree_digest
from runtime_log import record

pytest.importorskip("torch")
FOLDER = ROOT / "tests" / "fixtures" / "programs"

# name: texts of b's (or, with "a: ", a's) lines of which one must be named; or "identical".
ANSWERS = {
    "batch_norm_momentum": ["momentum=0.9"],
    "bf16_positions": ["t.to(torch.bfloat16)"],
    "window_mask": ["inside = torch.logical_and", "return inside"],
    # The whole region of the auxiliary loss, not the statistic beside it.
    "aux_loss_no_grad": ["p = h.softmax", "return (p * p)", "aux = balance(h)", "loss = ce + 0.1 * aux"],
    "token_mask": ["labels > -200"],
    "detached_trunk": ["value(h.detach())"],
    "ema_decay": ["Average(net, 0.99)", "mine.mul_(self.decay)", "average.update(net)"],
    "ema_unread": ["Average(net, 0.99)", "mine.lerp_(", "average.update(net)"],
    "pooling_mask": ["kept = ids >= 0"],
    "dropout_seed": ["torch.manual_seed(100 + 2 * step)"],
    "data_order": ["batches(0, 32)", "torch.Generator().manual_seed(epoch)", "picked = torch.randperm"],
    "scheduler_step": ["torch.optim.lr_scheduler.LambdaLR", "rate.step()"],
    "activation_dropped": ["return self.down("],
    # Only b's program has the function: its call is named nowhere.
    "function_added": ["p.data.half()"],
    "swapped_cache": ["turn(x @ weight, cos, cos)"],
    "no_grad_around_call": ["with torch.no_grad()", "aux = auxiliary(h)"],
    "other_moment": ["second.lerp_("],
    "draw_between": ["probe = torch.rand(1)"],
    "clip_value": ["norm_type=1.0"],
    "half_reduction": ["h.pow(2).mean("],
    "router_gradient": ["best = gates.detach()"],
    # Bit-equal forwards; autograd adds the gradients of one tensor in the order of its readers.
    "gradient_order": ["q = h.exp()", "p = h.sin()"],
    "shared_weight_order": ["q = torch.exp(", "r = torch.tanh("],
    # A statistic beside it hands the tensor on: float() of a float32 tensor writes nothing.
    "residual_lost": ["x = self.down("],
    # Signs of it move the weights, so only the optimizer's state differs, by rounding.
    "momentum_rounding": ["mean.mul_(0.99)"],
    # What made the state did the same in both runs; b adds to it again within the step.
    "moment_written_again": ["square.add_("],
    # No gradient comes back to the norm; clip_grad_norm_ is given fewer of them, and is no cause.
    "lost_gradient": ["Copy.apply(h.detach())"],
    # What nobody wrote is no value that both runs were given.
    "never_filled": ["a: self.weight.copy_(initial)"],
    "logging_added": "identical",
}
# With the proof, which runs each program up to three times more; the others are about the judgement alone.
PROVEN = {"aux_loss_no_grad", "dropout_seed", "detached_trunk", "token_mask", "momentum_rounding", "moment_written_again"}
# Names the tool has given instead.
WRONG_TODAY = {
    "scheduler_step": "`opt.step`, line 16, which is given the other rate, not the scheduler's step",
}


def lines_of(name, texts):
    """The line of each text, which stands on one line of its file."""
    found = set()
    for text in texts:
        side, text = ("a", text[3:]) if text.startswith("a: ") else ("b", text)
        lines = (FOLDER / name / side / "train.py").read_text().splitlines()
        at = [i for i, line in enumerate(lines, 1) if text in line]
        assert len(at) == 1, f"{name}: {text!r} is on lines {at}"
        found.add(at[0])
    return found


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.xfail(reason=WRONG_TODAY[n], strict=True)) if n in WRONG_TODAY else n for n in ANSWERS],
)
def test_the_cause_is_named(opguard, tmp_path, name):
    a, b = FOLDER / name / "a", FOLDER / name / "b"
    before = tree_digest(FOLDER / name)
    out = tmp_path / "answer.json"
    prove = [] if name in PROVEN else ["--no-prove"]
    ran = opguard("diff", a, b, *prove, "--json", out, "--color", "never", "--", "python", "train.py", env={"OMP_NUM_THREADS": "1"}, timeout=900)
    assert tree_digest(FOLDER / name) == before
    answer = json.loads(out.read_text())
    if ANSWERS[name] == "identical":
        assert (ran.returncode, answer["verdict"]) == (0, "identical"), ran.stdout
        return
    assert (ran.returncode, answer["verdict"]) == (1, "diverged"), ran.stdout
    pivot = answer["pivot"]
    lines = {side["line"] for side in (pivot["b"] or pivot["a"],) if side}
    assert lines & lines_of(name, ANSWERS[name]), ran.stdout


def test_a_deep_library_call_is_recorded_whole(tmp_path):
    """6,000 autograd nodes under one site: every one, and the gradient that comes out of them."""
    train = (FOLDER / "deep_call" / "train.py").read_text()
    for plain, probed in (("from deep import library\n", ""), ("library(w)", 'og("deep", library)(w)'), ("y.sum()", 'og("sum", y.sum)()')):
        assert train.count(plain) == 1
        train = train.replace(plain, probed)
    source = (FOLDER / "deep_call" / "deep.py").read_text() + "\n" + train
    log = record(source, tmp_path)
    nodes = [e for e in log.events if (e.boundary, e.kind) == ("deep", "node")]
    assert len(nodes) == 6000 and all(e.node.startswith("MulBackward") for e in nodes)
    assert [e.kind for e in log.events].count("accumulate") == 1
    assert log.lost == 0
