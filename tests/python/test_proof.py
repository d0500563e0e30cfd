"""`opguard diff` runs again to prove what is the cause (docs/design/proof.md)."""

import json
import os
import re
import subprocess
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
def halved():
    return FAULTY
def noise(x):
    return x + int.from_bytes(os.urandom(2), "big") / 65536
"""

HEALED = r"with run a's results put in place( at \d+ executions)?, every model value of run b is run a's"

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
def prove(opguard, tmp_path):
    """prove(body of a, body of b, *options) -> (JSON, the finished process); one body: both sides have it."""

    def run(a, b=None, *options, train=TRAIN, command="python train.py", code=1):
        (tmp_path / "lib").mkdir(exist_ok=True)
        (tmp_path / "lib" / "library.py").write_text(LIBRARY)
        for side, body in (("a", a), ("b", b or a)):
            tree = tmp_path / side
            tree.mkdir()
            (tree / "train.py").write_text(train.replace("{body}", textwrap.indent(body, "    ").lstrip()))
        out = tmp_path / "answer.json"
        runs = [f"SIDE={side} PYTHONPATH={tmp_path}/lib:$PYTHONPATH {command}" for side in "ab"]
        done = opguard("diff", tmp_path / "a", tmp_path / "b", "--run-a", runs[0], "--run-b", runs[1], "--json", out,
                       "--color", "never", "--work", tmp_path / "work", *options)  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(out.read_text()), done

    return run


def line_of(tmp_path, text, side="b"):
    (line,) = [i for i, line in enumerate((tmp_path / side / "train.py").read_text().splitlines(), 1) if text in line]
    return line


def test_a_value_fault_is_proven_causal(prove, tmp_path):
    answer, done = prove("h = library.gain(h)\nh = library.shift(h)")
    pivot = answer["pivot"]
    assert pivot["kind"] == "value" and pivot["b"]["line"] == line_of(tmp_path, "library.shift")
    assert pivot["causal"] is True and pivot["confirm"]
    # Forward and backward nodes: each is an execution.
    assert re.fullmatch(HEALED + " to the end of step 0", pivot["confirm"]["why"])
    assert done.stdout.startswith("diverged, proven: the loss differs\n")
    (cause,) = answer["proof"]["causes"]
    assert answer["proof"]["state"] == cause["state"] == "proven" and answer["proof"]["runs"] == 2
    assert cause["boundary"] == pivot["boundary"] and cause["place"] == f"train.py:{pivot['b']['line']}" and cause["step"] == 0
    assert 0 < cause["size"]["share"] < 1 and cause["size"]["max_ulp"] > 4 and cause["size"]["rounding"] is False
    (tensor,) = pivot["confirm"]["tensors"]
    assert tensor["name"] == "out/out0" and tensor["elements"] == 20 and 0 < tensor["differing"] < 20
    assert tensor["max_absolute"] == pytest.approx(1e-3, rel=1e-3) and len(tensor["first"]["index"]) == 2
    assert f"out/out0  float32[4, 5]: {tensor['differing']} of 20 elements differ" in done.stdout
    assert "\n  proven: with run a's results put in place" in done.stdout
    assert re.search(r"proof: run of b with \d+ values? of a in place\n", done.stderr)


def test_where_the_only_fault_is_made_good_everything_agrees(prove):
    """A fault of step 0 alone: nothing of run b is left that is not run a's."""
    answer, _ = prove("h = library.shift(h) if step == 0 else h")
    assert answer["pivot"]["causal"] is True
    assert re.match(HEALED, answer["pivot"]["confirm"]["why"])


def test_every_execution_before_the_loss_is_made_good(prove):
    answer, done = prove("for _ in range(3):\n    h = library.shift(h)")
    assert answer["pivot"]["causal"] is True, answer["pivot"]["confirm"]
    assert "put in place at " in answer["pivot"]["confirm"]["why"] and answer["proof"]["state"] == "proven"


# The last column of `t` differs between the runs and is never looked at; `h` differs and counts. Both are read by
# one operator, whose result therefore leads back to both, the harmless one first.
HARMLESS = "t = library.tail(h)\nh = library.shift(h)\nh = torch.where(first, t, h)"


def test_a_harmless_difference_before_the_cause_is_passed_over(prove, tmp_path):
    answer, done = prove(HARMLESS)
    pivot = answer["pivot"]
    assert pivot["b"]["line"] == line_of(tmp_path, "library.shift") and pivot["causal"] is True
    harmless = answer["candidates"][0]
    assert harmless["b"]["line"] == line_of(tmp_path, "library.tail")
    assert harmless["causal"] is False and "stays as it was, bit for bit" in harmless["confirm"]["why"]
    assert "proof: harmless: " in done.stderr and "proof: proven: " in done.stderr
    assert answer["proof"]["runs"] == 3 and len(answer["proof"]["causes"]) == 1
    assert "proven harmless: with run a's results put in place, the first differing model value stays as it was" in done.stdout
    # Without the proof the harmless one is named: order alone does not tell.


def test_the_first_candidate_is_the_harmless_one_without_confirm(opguard, prove, tmp_path):
    prove(HARMLESS)
    out = tmp_path / "plain.json"
    assert opguard("align", tmp_path / "work/run_a/log", tmp_path / "work/run_b/log", "--json", out).returncode == 1
    answer = json.loads(out.read_text())
    assert answer["pivot"]["b"]["line"] == line_of(tmp_path, "library.tail") and "causal" not in answer["pivot"]


def test_a_scalar_fault(prove, tmp_path):
    answer, _ = prove("h = torch.clamp(h, max=0.5)", "h = torch.clamp(h, max=0.4)")
    assert answer["pivot"]["kind"] == "scalar" and answer["pivot"]["causal"] is True, answer["pivot"]["confirm"]


def test_a_view_is_made_good_without_touching_what_it_views(prove):
    """Run a's columns written through run b's view would change `h` itself, which is read again."""
    answer, _ = prove("k = h[:, :2]\nh = h.sum() + k.exp()", "k = h[:, 1:3]\nh = h.sum() + k.exp()")
    assert answer["pivot"]["causal"] is True, answer["pivot"]["confirm"]


def test_an_operator_of_one_run_alone_is_proven_by_its_text(prove, tmp_path):
    answer, _ = prove("h = torch.tanh(h)", "h = h.bfloat16()\nh = torch.tanh(h).float()\n")
    assert answer["pivot"]["kind"] == "structure"
    assert answer["pivot"]["causal"] is True, answer["pivot"]["confirm"]
    assert "train.py:11 as in a" in answer["pivot"]["confirm"]["why"] and answer["proof"]["runs"] == 1


def test_an_operator_of_one_run_alone_is_proven_by_what_reads_it(prove, tmp_path):
    """Both programs have one text, and another library decides: values are all that can be put in place."""
    answer, _ = prove("if library.halved():\n    h = h.bfloat16()\nh = torch.tanh(h).float()\n")
    assert answer["pivot"]["kind"] == "structure"
    assert answer["pivot"]["causal"] is True, answer["pivot"]["confirm"]
    assert "run a's results of the operators that read it" in answer["pivot"]["confirm"]["why"]


def test_what_has_another_shape_is_made_good_where_the_shapes_are_one_again(prove):
    answer, done = prove("h = h[:, :3]", "h = h[:, :4]")
    assert answer["pivot"]["kind"] == "scalar" and answer["pivot"]["b"]["text"] == "h[:, :4]"
    assert answer["pivot"]["causal"] is True
    assert "run a's results of the operators that read it" in answer["pivot"]["confirm"]["why"]


def test_a_program_that_does_not_repeat_itself_proves_nothing(prove):
    answer, done = prove("h = library.noise(h)")
    assert answer["proof"]["state"] == "indicated" and not any(c["state"] == "proven" for c in answer["proof"]["causes"])
    assert "does not repeat itself: " in answer["proof"]["why"]
    assert "diverged, indicated: " in done.stdout and "does not repeat itself: " in done.stdout.splitlines()[0]


def test_a_compiled_graph_takes_no_value_what_reads_its_results_does(prove, tmp_path):
    train = TRAIN.replace("for step", "@torch.compile(backend='aot_eager')\ndef f(h, limit):\n    return torch.clamp(h, max=limit)\nfor step")
    answer, done = prove("h = f(h, 0.5 if library.FAULTY else 0.4)", train=train)
    assert "inside a compiled graph" in done.stderr and answer["proof"]["asked"]["not_reached"] > 0
    (cause,) = answer["proof"]["causes"]
    assert cause["state"] == "proven" and cause["place"] == f"train.py:{line_of(tmp_path, 'torch.clamp')}"
    assert "with run a's values put in place at 3 executions, every model value" in cause["why"]


def test_a_compiled_graph_takes_other_text(prove, tmp_path):
    train = TRAIN.replace("for step", "@torch.compile(backend='aot_eager')\ndef f(h):\n    return torch.clamp(h, max=LIMIT)\nfor step")
    answer, done = prove("LIMIT = 0.5\nh = f(h)", "LIMIT = 0.4\nh = f(h)", train=train)
    assert answer["proof"]["state"] == "proven" and answer["pivot"]["text"]["b"]["line"] == line_of(tmp_path, "LIMIT = 0.4")


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


def test_a_fault_of_one_rank_of_two(prove):
    answer, _ = prove("h = torch.clamp(h, max=0.5)", "h = torch.clamp(h, max=0.5 - 0.1 * rank)", train=RANKS,
                        command="python -m torch.distributed.run --standalone --nproc-per-node 2 train.py")  # fmt: skip
    assert answer["pivot"]["rank"] == 1 and answer["proof"]["state"] == "proven", answer["proof"]


def test_identical_runs_are_not_run_again(prove):
    answer, done = prove("h = library.gain(h)", None, code=0)
    assert answer["verdict"] == "identical" and "proof" not in done.stderr and answer["proof"]["state"] == "none"


# The review's program E: a wrong mask makes a token count, and the loss is divided by it.
COUNT = """
import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0); torch.set_num_threads(1)
emb = nn.Embedding(32, 16); out = nn.Linear(16, 32)

def tokens(labels):
    return (labels {body}).sum()

def rows(labels):
    return torch.tensor(labels.shape[1])

opt = torch.optim.SGD([*emb.parameters(), *out.parameters()], lr=0.1)
for step in range(2):
    ids = torch.randint(0, 32, (2, 24))
    labels = ids.roll(-1, 1)
    labels[:, 12:] = -100
    width = rows(labels)
    logits = out(emb(ids))
    total = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
    count = tokens(labels)
    half = count // 2
    full = torch.full((), 48)
    loss = total / count
    loss.backward(); opt.step(); opt.zero_grad()
    print("step", step, "loss", loss.item(), int(width), int(half), int(full))
"""


def test_a_consequence_is_never_proven(prove, tmp_path):
    answer, done = prove("!= -100", "> -200", train=COUNT)
    assert answer["pivot"]["b"]["text"] == "labels > -200", answer["pivot"]
    assert answer["proof"]["state"] == "proven" and answer["proof"]["runs"] <= 3, answer["proof"]
    assert {cause["place"] for cause in answer["proof"]["causes"]} == {"train.py:7"}
    for candidate in answer["candidates"]:
        assert candidate["causal"] is not True, candidate


TWO = "h = library.tail(h)\nh = h.sin()\nk = torch.clamp(h, max=LIMIT)\nh = k.tanh()"


def test_two_independent_causes_are_both_proven(prove, tmp_path):
    """By default: b with LIMIT as in a is the first run, as the text differs. It heals not everything."""
    answer, done = prove("LIMIT = 0.5\n" + TWO, "LIMIT = 0.4\n" + TWO)
    assert answer["proof"]["state"] == "proven", (answer["proof"], done.stderr)
    lines = [cause["place"] for cause in answer["proof"]["causes"]]
    assert lines == [f"train.py:{line_of(tmp_path, text)}" for text in ("library.tail", "torch.clamp")]
    assert all(cause["state"] == "proven" for cause in answer["proof"]["causes"])
    assert "proven, one of 2 causes" in done.stdout


def test_no_prove_makes_no_further_run(prove):
    answer, done = prove("h = library.shift(h)", None, "--no-prove")
    assert answer["proof"] == {"state": "none", "why": "no further run was made", "runs": 0, "causes": [], "asked": None, "repetition": None}
    assert done.stdout.startswith("diverged: the loss differs\n") and "causal" not in answer["pivot"]


def test_the_budget_is_kept(prove, tmp_path):
    """One run writes run a's tensors, the second puts them into run b: a single run of values can prove nothing."""
    answer, _ = prove("h = library.shift(h)", "h = library.shift(h)", "--prove-runs", "1")
    assert answer["proof"]["runs"] == len(list((tmp_path / "work").glob("run_*/proof_*"))) == 0
    assert answer["proof"]["state"] != "proven" and answer["pivot"]["b"]["text"] == "library.shift(h)"


def test_a_single_run_is_one_of_text(prove, tmp_path):
    """Where the operator's own line is another one in the two programs."""
    answer, _ = prove("!= -100", "> -200", "--prove-runs", "1", train=COUNT)
    work = tmp_path / "work"
    assert answer["proof"]["runs"] == len(list(work.glob("run_*/text_*"))) == 1 and not list(work.glob("run_*/proof_*"))
    assert answer["proof"]["state"] == "proven" and answer["pivot"]["b"]["text"] == "labels > -200"


def test_a_rerun_ends_with_the_judged_step(prove, tmp_path):
    train = TRAIN.replace("range(2)", "range(50)").replace("print(loss.item())", "print(loss.item(), flush=True)")
    answer, _ = prove("h = library.shift(h)", train=train)
    assert answer["proof"]["state"] == "proven"
    steps = {path.parent.parent.name + path.parent.name: len(path.read_text().splitlines()) for path in (tmp_path / "work").glob("run_*/proof_*/output.txt")}
    assert len(steps) == 2 and all(count <= 1 for count in steps.values()), steps
    assert len((tmp_path / "work/run_b/output.txt").read_text().splitlines()) == 50


LOADER = TRAIN.replace("range(2)", "range(20)").replace("model = ", """
class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 80
    def __getitem__(self, i):
        return torch.full((6,), float(i))
loader = iter(torch.utils.data.DataLoader(Rows(), batch_size=4, num_workers=2))
model = """, 1).replace("x = torch.randn(4, 6)", "x = next(loader) / 80")


def test_no_worker_of_a_loader_is_left_behind(prove, tmp_path):
    answer, done = prove("h = h * 2", "h = h * 3", train=LOADER)
    assert answer["proof"]["state"] == "proven", (answer["proof"], done.stderr)
    left = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True).stdout
    mine = [line for line in left.splitlines() if str(tmp_path) in line and str(os.getpid()) not in line.split()[0]]
    assert not [line for line in mine if "train.py" in line], mine
