"""`opguard diff --confirm`: the pivot proven causal, or harmless and the next candidate tried (docs/confirm.md)."""

import json
import textwrap

import pytest

pytest.importorskip("torch")

# What the tool does not look into, and what the two sides have of different versions: {tree} imports it.
LIBRARY = """
import os, torch
FAULTY = os.environ["SIDE"] == "b"
def gain(x):
    return x * 2
def shift(x):
    return x + 1 + (1e-3 * (x > 0) if FAULTY else 0)
def tail(x):
    y = x * 3
    if FAULTY:
        y[..., -1] += 1
    return y
def noise(x):
    return x + int.from_bytes(os.urandom(2), "big") / 65536
"""

TRAIN = """
import torch
import library
torch.manual_seed(0)
model = torch.nn.Linear(6, 5)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
first = torch.tensor([True] * 4 + [False])
for step in range(2):
    x = torch.randn(4, 6)
    h = model(x)
    {body}
    loss = h.square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(loss.item())
"""


@pytest.fixture
def confirm(opguard, tmp_path):
    """confirm(body of a, body of b, *options) -> (JSON, the finished process); one body: both sides have it."""

    def run(a, b=None, *options, train=TRAIN, command="python train.py", code=1):
        (tmp_path / "lib").mkdir()
        (tmp_path / "lib" / "library.py").write_text(LIBRARY)
        for side, body in (("a", a), ("b", b or a)):
            tree = tmp_path / side
            tree.mkdir()
            (tree / "train.py").write_text(train.replace("{body}", textwrap.indent(body, "    ").lstrip()))
        out = tmp_path / "answer.json"
        runs = [f"SIDE={side} PYTHONPATH={tmp_path}/lib:$PYTHONPATH {command}" for side in "ab"]
        done = opguard("diff", tmp_path / "a", tmp_path / "b", "--run-a", runs[0], "--run-b", runs[1], "--confirm", "--json", out,
                       "--color", "never", "--work", tmp_path / "work", *options)  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(out.read_text()), done

    return run


def line_of(tmp_path, text, side="b"):
    (line,) = [i for i, line in enumerate((tmp_path / side / "train.py").read_text().splitlines(), 1) if text in line]
    return line


def test_a_value_fault_is_proven_causal(confirm, tmp_path):
    answer, done = confirm("h = library.gain(h)\nh = library.shift(h)")
    pivot = answer["pivot"]
    assert pivot["kind"] == "value" and pivot["b"]["line"] == line_of(tmp_path, "library.shift")
    assert pivot["causal"] is True and pivot["confirm"]
    assert pivot["confirm"]["why"].startswith("with run a's results put in place, run b agrees with run a up to step ")
    (tensor,) = pivot["confirm"]["tensors"]
    assert tensor["name"] == "out/out0" and tensor["elements"] == 20 and 0 < tensor["differing"] < 20
    assert tensor["max_absolute"] == pytest.approx(1e-3, rel=1e-3) and len(tensor["first"]["index"]) == 2
    assert f"out/out0  float32[4, 5]: {tensor['differing']} of 20 elements differ" in done.stdout
    assert "\n  proven causal: with run a's results put in place" in done.stdout
    assert "SIDE=b" in done.stderr and "confirm: run of b with 1 values of a put in place" in done.stderr


def test_where_the_only_fault_is_made_good_everything_agrees(confirm):
    """A fault of step 0 alone: nothing of run b is left that is not run a's."""
    answer, _ = confirm("h = library.shift(h) if step == 0 else h")
    assert answer["pivot"]["causal"] is True
    assert answer["pivot"]["confirm"]["why"] == "with run a's results put in place, every model value of run b is run a's"


def test_every_execution_before_the_loss_is_made_good(confirm):
    answer, done = confirm("for _ in range(3):\n    h = library.shift(h)")
    assert answer["pivot"]["causal"] is True, answer["pivot"]["confirm"]
    assert "put in place at 3 executions" in answer["pivot"]["confirm"]["why"]
    assert "run b agrees with run a up to step 1, micro-batch 0, where the loss differs; without, up to step 0" in answer["pivot"]["confirm"]["why"]


# The last column of `t` differs between the runs and is never looked at; `h` differs and counts. Both are read by
# one operator, whose result therefore leads back to both, the harmless one first.
HARMLESS = "t = library.tail(h)\nh = library.shift(h)\nh = torch.where(first, t, h)"


def test_a_harmless_difference_before_the_cause_is_passed_over(confirm, tmp_path):
    answer, done = confirm(HARMLESS)
    pivot = answer["pivot"]
    assert pivot["b"]["line"] == line_of(tmp_path, "library.shift") and pivot["causal"] is True
    harmless = answer["candidates"][0]
    assert harmless["b"]["line"] == line_of(tmp_path, "library.tail")
    assert harmless["causal"] is False and "stays as it was, bit for bit" in harmless["confirm"]["why"]
    assert "candidate 1 of 2: harmless: " in done.stderr and "candidate 2 of 2: causal: " in done.stderr
    assert "proven harmless: with run a's results put in place, the first differing model value stays as it was" in done.stdout
    # Without the proof the harmless one is named: order alone does not tell.


def test_the_first_candidate_is_the_harmless_one_without_confirm(opguard, confirm, tmp_path):
    confirm(HARMLESS)
    out = tmp_path / "plain.json"
    assert opguard("align", tmp_path / "work/run_a/log", tmp_path / "work/run_b/log", "--json", out).returncode == 1
    answer = json.loads(out.read_text())
    assert answer["pivot"]["b"]["line"] == line_of(tmp_path, "library.tail") and "causal" not in answer["pivot"]


def test_a_scalar_fault(confirm, tmp_path):
    answer, _ = confirm("h = torch.clamp(h, max=0.5)", "h = torch.clamp(h, max=0.4)")
    assert answer["pivot"]["kind"] == "scalar" and answer["pivot"]["causal"] is True, answer["pivot"]["confirm"]


def test_a_view_is_made_good_without_touching_what_it_views(confirm):
    """Run a's columns written through run b's view would change `h` itself, which is read again."""
    answer, _ = confirm("k = h[:, :2]\nh = h.sum() + k.exp()", "k = h[:, 1:3]\nh = h.sum() + k.exp()")
    assert answer["pivot"]["causal"] is True, answer["pivot"]["confirm"]


def test_an_operator_of_one_run_alone_is_proven_by_what_reads_it(confirm, tmp_path):
    answer, _ = confirm("h = torch.tanh(h)", "h = h.bfloat16()\nh = torch.tanh(h).float()\n")
    assert answer["pivot"]["kind"] == "structure"
    assert answer["pivot"]["causal"] is True, answer["pivot"]["confirm"]
    assert "run a's results of the operators that read it" in answer["pivot"]["confirm"]["why"]


def test_what_has_another_shape_is_made_good_where_the_shapes_are_one_again(confirm):
    answer, done = confirm("h = h[:, :3]", "h = h[:, :4]")
    assert answer["pivot"]["kind"] == "scalar" and answer["pivot"]["b"]["text"] == "h[:, :4]"
    assert answer["pivot"]["causal"] is True
    assert "run a's results of the operators that read it" in answer["pivot"]["confirm"]["why"]


def test_a_program_that_does_not_repeat_itself_proves_nothing(confirm):
    answer, _ = confirm("h = library.noise(h)")
    assert answer["pivot"]["causal"] is None
    assert "does not repeat itself: " in answer["pivot"]["confirm"]["why"]


@pytest.mark.slow
def test_a_compiled_graph_takes_no_value(confirm):
    train = TRAIN.replace("for step", "@torch.compile(backend='aot_eager')\ndef f(h):\n    return torch.clamp(h, max=LIMIT)\nfor step")
    answer, done = confirm("LIMIT = 0.5\nh = f(h)", "LIMIT = 0.4\nh = f(h)", train=train)
    assert answer["pivot"]["causal"] is None
    assert "inside a compiled graph" in answer["pivot"]["confirm"]["why"]
    assert "\n  not proven: the value could not be put in place: " in done.stdout


RANKS = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = torch.nn.Linear(6, 5)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(2):
    x = torch.randn(4, 6, generator=torch.Generator().manual_seed(10 * step + rank))
    h = model(x)
    {body}
    loss = h.square().mean()
    loss.backward()
    for p in model.parameters():
        dist.all_reduce(p.grad)
    optimizer.step()
    optimizer.zero_grad()
dist.barrier()
dist.destroy_process_group()
"""


@pytest.mark.slow
def test_a_fault_of_one_rank_of_two(confirm):
    answer, _ = confirm("h = torch.clamp(h, max=0.5)", "h = torch.clamp(h, max=0.5 - 0.1 * rank)", train=RANKS,
                        command="python -m torch.distributed.run --standalone --nproc-per-node 2 train.py")  # fmt: skip
    assert answer["pivot"]["rank"] == 1 and answer["pivot"]["causal"] is True, answer["pivot"]["confirm"]


def test_identical_runs_are_not_run_again(confirm):
    answer, done = confirm("h = library.gain(h)", None, code=0)
    assert answer["verdict"] == "identical" and "confirm" not in done.stderr.replace("--confirm", "")
