"""`opguard diff --tolerance`: what a difference is followed through, and what no operator shows."""

import pytest

pytest.importorskip("torch")

from test_tolerance import compared  # noqa: E402
from test_tolerance_origins import ALONE, LINEAR, line_in  # noqa: E402

BATCH = """        x, y = torch.randn(2, 8, 16, generator=g), torch.randn(2, 8, 16, generator=g)
        loss = F.mse_loss(model(x), y)
"""
IN_ONE = """        more = torch.Generator().manual_seed(101 + 2 * step)
        x, y = (torch.cat(parts) for parts in zip(*([torch.randn(2, 8, 16, generator=one) for _ in range(2)] for one in (g, more))))
        loss = 2.0 * F.mse_loss(model(x), y)
"""


@pytest.mark.parametrize("factor, wanted", [("2.0", (0, "equivalent")), ("1.0", (1, "diverged"))])
def test_micro_batches_in_one_are_judged_by_the_sum_of_their_losses(opguard, tmp_path, factor, wanted):
    edits = [("    for number in range(2):", "    for number in range(1):"), (BATCH, IN_ONE.replace("2.0", factor))]
    done, verdict = compared(opguard, tmp_path, edits, run_b=ALONE)
    assert (done.returncode, verdict["verdict"]) == wanted, done.stdout


MASKED = """        s = torch.einsum("btc,bsc->bts", h, h) / 4.0
        s = s.masked_fill(~torch.ones(8, 8, dtype=torch.bool).tril(), -1e30)
        h = torch.softmax(s - s.amax(-1, keepdim=True).detach(), -1) @ h
"""


def test_scores_that_a_mask_hides_are_looked_at(opguard, tmp_path):
    done, verdict = compared(opguard, tmp_path, [("h) / 4.0", "h) / 3.0")], run_b=ALONE, in_both=[(LINEAR, LINEAR + MASKED)])
    assert (done.returncode, verdict["pivot"]["b"]["line"]) == (1, line_in(tmp_path / "b", "h) / 3.0"))


GAIN = [
    ("        self.down = torch", "        self.gain = torch.nn.Parameter(1.0 + down[:, 0].clone() / 8)\n        self.down = torch"),
    ("Copied.apply(x), self.up", "Copied.apply(x) * self.gain, self.up"),
]


def test_a_parameter_that_no_update_writes_names_what_updates_the_others(opguard, tmp_path):
    some = ("torch.optim.AdamW(model.parameters(),", "torch.optim.AdamW([p for p in model.parameters() if p.dim() > 1],")
    done, verdict = compared(opguard, tmp_path, [some], run_b=ALONE, in_both=GAIN)
    pivot = verdict["pivot"]
    assert (done.returncode, pivot["kind"], pivot["b"]["line"]) == (1, "omits", line_in(tmp_path / "b", "optimizer.step()"))
    assert "blocks.0.gain as it was" in pivot["why"]


def test_gradients_that_are_added_to_older_ones_name_the_backward_pass(opguard, tmp_path):
    done, verdict = compared(opguard, tmp_path, [("    optimizer.zero_grad()\n", "")], run_b=ALONE)
    assert (done.returncode, verdict["pivot"]["b"]["line"]) == (1, line_in(tmp_path / "b", "loss.backward()"))


# Two stages: the first sends what its layer makes of each micro-batch, and is sent the gradients at the end.
PIPELINE = [
    ("        grad = grad.contiguous()\n        if WORLD > 1:\n            dist.all_reduce(grad)\n", "        grad = grad.contiguous()\n"),
    ("    x = x.clone()\n    if WORLD > 1:\n        dist.all_reduce(x)\n", "    x = x.clone()\n"),
    ("up.chunk(WORLD, 0)[RANK].clone()", "up"),
    ("down.chunk(WORLD, 1)[RANK].clone()", "down"),
    ("Block(i) for i in range(2)", "Block(i) for i in ([RANK] if WORLD > 1 else range(2))"),
    ("    for number in range(2):\n", "    kept, inbox = [], []\n    for number in range(2):\n"),
    ("        loss = F.mse_loss(model(x), y)\n        loss.backward()\n", """        if WORLD > 1 and RANK == 0:
            kept.append(model(x))
            dist.send(kept[-1].detach(), 1)
            continue
        if WORLD > 1:
            inbox.append(torch.empty(2, 8, 16))
            dist.recv(inbox[-1], 0)
            x = inbox[number].requires_grad_()
        loss = F.mse_loss(model(x), y)
        loss.backward()
    for made in kept:
        back = torch.empty(2, 8, 16)
        dist.recv(back, 1)
        made.backward(back)
    for given in inbox:
        dist.send(torch.zeros(2, 8, 16) if given.grad is None else given.grad, 0)
"""),
]  # fmt: skip


def test_two_stages_are_equivalent(opguard, tmp_path):
    done, verdict = compared(opguard, tmp_path, in_both=PIPELINE)
    assert (done.returncode, verdict["verdict"]) == (0, "equivalent"), done.stdout


def test_a_layer_that_is_there_twice_is_named_where_it_is_made(opguard, tmp_path):
    beside = ("        self.blocks = torch", "        self.unused = torch.nn.Parameter(torch.linspace(0.5, 1.5, 16) * 2)\n        self.blocks = torch")
    done, verdict = compared(opguard, tmp_path, [("[RANK] if WORLD > 1", "[0] if WORLD > 1")], in_both=[*PIPELINE, beside])
    pivot = verdict["pivot"]
    assert (done.returncode, pivot["kind"], pivot["b"]["line"]) == (1, "mapping", line_in(tmp_path / "b", "Block(i) for i in"))


def test_another_micro_batch_that_was_received_names_the_exchange(opguard, tmp_path):
    done, verdict = compared(opguard, tmp_path, [("inbox[number]", "inbox[0]")], in_both=PIPELINE)
    pivot = verdict["pivot"]
    assert (done.returncode, pivot["kind"], pivot["b"]["line"]) == (1, "stale", line_in(tmp_path / "b", "dist.recv(inbox"))
    assert "micro-batch 0" in pivot["why"]


SGD = ("torch.optim.AdamW(model.parameters(), lr=1e-3, eps=1e-3, foreach=False)", "torch.optim.SGD(model.parameters(), lr=0.1)")
CLIPPED = ("    optimizer.step()\n", """    grads = [p.grad for p in model.parameters()]
    scale = (0.1 / torch.nn.utils.get_total_norm(grads)).clamp(max=1.0).item()
    for p in model.parameters():
        p.grad.mul_(scale)
    optimizer.step()
""")  # fmt: skip
OWN = [
    ("torch.manual_seed(0)\n", """class Descent:
    def __init__(self, parameters):
        self.parameters = list(parameters)

    @torch.no_grad()
    def step(self):
        for p in self.parameters:
            p.sub_(p.grad, alpha=0.1)

    def zero_grad(self):
        for p in self.parameters:
            p.grad = None

def learn(loss):
    loss.backward()

torch.manual_seed(0)
"""),
    ("torch.optim.SGD(model.parameters(), lr=0.1)", "Descent(model.parameters())"),
    ("        loss.backward()\n    ", "        learn(loss)\n    "),
]  # fmt: skip


def test_an_optimizer_of_its_own_ends_steps_too(opguard, tmp_path):
    done, verdict = compared(opguard, tmp_path, OWN, run_b=ALONE, in_both=[SGD])
    assert (done.returncode, verdict["verdict"]) == (0, "equivalent"), done.stdout
    steps = {t["step"] for t in verdict["tolerance"]["placements"] if t["boundary"] == "<parameters>"}
    assert len(steps) > 1, "those behind the first update are compared"


def test_a_fault_in_an_optimizer_of_its_own_is_named(opguard, tmp_path):
    done, verdict = compared(opguard, tmp_path, [*OWN, ("alpha=0.1)", "alpha=0.1 if p.shape[0] > 16 else 0.2)")], run_b=ALONE, in_both=[SGD])
    named = {line_in(tmp_path / "b", text) for text in ("p.sub_(p.grad", "optimizer.step()")}  # both run that call
    assert done.returncode == 1 and verdict["pivot"]["b"]["line"] in named, done.stdout


def test_a_number_that_went_through_python_is_followed(opguard, tmp_path):
    done, verdict = compared(opguard, tmp_path, [("for p in model.parameters()]", "for p in list(model.parameters())[1:]]")], run_b=ALONE, in_both=[SGD, CLIPPED])
    pivot = verdict["pivot"]["b"]
    assert (done.returncode, pivot["line"]) == (1, line_in(tmp_path / "b", "scale = (0.1")), done.stdout
