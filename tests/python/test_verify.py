"""`opguard-instrument --verify`: a program bare and instrumented, and which probe is to blame where they differ."""
import json
import sys
import textwrap

import pytest

TRAINING = """
import sys
import torch
from torch import nn

torch.manual_seed(3)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
data = torch.randn(3, 5, 4)


def transform(x):
    return x


for batch in data:
    optimizer.zero_grad()
    loss = model(transform(batch * 2.0)).square().mean()
    loss.backward()
    optimizer.step()
"""

# What a function gets depends on the instructions of its caller: libraries that look a name up there do that.
LOOKS_AT_CALLER = """
def caller_code():
    return sys._getframe(1).f_code


def transform(x):
    x = x + 1.0
    return shifted(x)


def shifted(x):
    return x + 0.001 * len(caller_code().co_code)  # here
"""

REFUSES_PROBES = """
def transform(x):
    if "og" in sys._getframe(0).f_code.co_names:
        raise RuntimeError("my code was changed")
    return x.relu()  # here
"""


@pytest.fixture
def program(tmp_path):
    """program(transform="...", more="...") -> a tree with train.py, its function `transform` replaced, lines added at its end."""

    def make(transform=None, more="", text=TRAINING):
        tree = tmp_path / "tree"
        tree.mkdir()
        if transform is not None:
            text = text.replace("def transform(x):\n    return x\n", transform.strip("\n") + "\n")
        (tree / "train.py").write_text(text + textwrap.dedent(more))
        return tree

    return make


def marked_line(tree):
    lines = [i for i, line in enumerate((tree / "train.py").read_text().splitlines(), 1) if line.endswith("# here")]
    assert len(lines) == 1
    return lines[0]


@pytest.fixture
def verify(opguard, tmp_path):
    """verify(tree, *options, command=) -> (exit code, JSON or None, the finished process)."""

    def run(tree, *options, command=(sys.executable, "train.py")):
        out = tmp_path / "verification.json"
        done = opguard(tree, "--verify", "--json", out, *options, "--", *command, program="opguard-instrument")
        return done.returncode, json.loads(out.read_text()) if out.exists() else None, done

    return run


def test_a_program_that_stays_bit_equal(verify, program):
    code, found, done = verify(program())
    assert code == 0, done.stdout + done.stderr
    assert found["verdict"] == "equal" and found["runs"] == 2
    # Per step: 4 parameters' gradients; parameters before and after.
    assert found["equal"]["steps"] == 3 and found["equal"]["losses"] == 3
    assert found["equal"]["gradients"] == 3 * 4 and found["equal"]["parameters"] == 2 * 3 * 4
    assert found["boundaries"] > 5 and found["log"]["events"] > 20
    assert found["log"]["lost_records"] == 0 and found["log"]["faults"] == 0
    assert done.stdout.startswith("equal: losses, gradients and parameters are bit-equal\n")


def test_a_plan_needs_no_preflight(verify, opguard, program, tmp_path):
    tree, plan = program(), tmp_path / "plan.json"
    made = opguard("preflight", "-o", plan, "--tree", tree, "--", sys.executable, "train.py")
    assert made.returncode == 0, made.stderr
    code, found, done = verify(tree, "--plan", plan)
    assert code == 0, done.stdout + done.stderr
    assert found["boundaries"] == len(json.loads(plan.read_text())["boundaries"])


def test_probes_on_disk_are_taken_out_of_the_bare_run(verify, opguard, program, tmp_path):
    tree = program()
    done = opguard(tree, "--apply", "--", sys.executable, "train.py", program="opguard-instrument")
    assert done.returncode == 0 and "og(" in (tree / "train.py").read_text(), done.stderr
    code, found, done = verify(tree, "--work", tmp_path / "work")
    assert code == 0, done.stdout + done.stderr
    plan = json.loads((tmp_path / "work" / "plan.json").read_text())
    ids = [boundary["id"].encode() for boundary in plan["boundaries"]]
    bare, instrumented = (
        next((tmp_path / "work" / run / "log").glob("*.log")).read_bytes() for run in ("bare", "instrumented")
    )
    assert not any(i in bare for i in ids)
    assert all(i in instrumented for i in ids)


def test_the_probe_that_changes_a_value_is_named(verify, program):
    tree = program(LOOKS_AT_CALLER)
    code, found, done = verify(tree)
    assert code == 1, done.stdout + done.stderr
    assert found["verdict"] == "different" and found["why"] == "the loss differs"
    assert found["difference"]["step"] == 0 and found["difference"]["what"] == "loss"
    assert found["culprit"]["found"] and found["culprit"]["alone"] and found["culprit"]["only"]
    site = found["culprit"]["site"]
    assert (site["file"], site["line"]) == ("train.py", marked_line(tree))
    assert f"train.py:{marked_line(tree)}:" in done.stdout


def test_a_search_cut_short_gives_the_range(verify, program):
    tree = program(LOOKS_AT_CALLER)
    code, found, _ = verify(tree, "--runs", "1")
    assert code == 1
    culprit = found["culprit"]
    assert not culprit["found"] and culprit["site"] is None
    assert culprit["first"]["line"] <= marked_line(tree)


def test_the_probe_that_breaks_the_program_is_named(verify, program):
    tree = program(REFUSES_PROBES)
    code, found, done = verify(tree)
    assert code == 1, done.stdout + done.stderr
    assert found["why"] == "the instrumented program fails" and "my code was changed" in found["failure"]
    assert found["culprit"]["site"]["line"] == marked_line(tree)


def test_a_program_that_differs_from_itself_blames_no_probe(verify, program):
    tree = program("import os\n\n\ndef transform(x):\n    return x + int.from_bytes(os.urandom(4), 'big') / 2**32")
    code, found, done = verify(tree)
    assert code == 2, done.stdout + done.stderr
    assert found["verdict"] == "inconclusive" and found["culprit"] is None
    assert "the program itself is not deterministic" in found["why"]
    assert found["noise"]["what"] == "loss" and found["noise"]["step"] == 0
    assert found["runs"] == 3


def test_compiled_graphs_are_counted(verify, program):
    # A list's length is a guard: the second call compiles again.
    compiled = """
@torch.compile(backend="aot_eager")
def joined(parts):
    total = parts[0] * 2.0
    for part in parts[1:]:
        total = total + part.relu()
    return total


def transform(x):
    return joined([x]) + joined([x, x])
"""
    code, found, done = verify(program(compiled))
    assert code == 0, done.stdout + done.stderr
    bare, instrumented = found["compile"]["bare"], found["compile"]["instrumented"]
    assert bare == instrumented == {"graphs": 2, "graph_breaks": 0, "recompiles": 1}


def test_a_program_that_fails_at_times_blames_no_probe(verify, program, tmp_path):
    # Its second run fails, the first one with probes; runs before and after it do not.
    count = f"""
    seen = open({str(tmp_path / "runs")!r}, "a+")
    seen.write("x")
    seen.flush()
    seen.seek(0)
    if len(seen.read()) == {{failing}}:
        sys.exit(3)
    """
    tree = program(more=count.format(failing=3))  # the preflight, bare, instrumented
    code, found, done = verify(tree)
    assert code == 2, done.stdout + done.stderr
    assert found["verdict"] == "inconclusive" and found["culprit"] is None and found["runs"] == 4
    assert "of two instrumented runs only one fails" in found["why"] and "exit code 3" in done.stdout


def test_without_training_there_is_nothing_to_say(verify, program):
    code, found, done = verify(program(text="import torch\nx = torch.ones(3) * 2\nprint(x.sum())\n"))
    assert code == 2, done.stdout + done.stderr
    assert "nothing" in found["why"] or "no backward pass" in found["why"]


def test_a_program_that_fails_by_itself(verify, program):
    code, found, done = verify(program(more="sys.exit(3)\n"))
    assert code == 2 and found is None
    assert "exit code 3" in done.stderr


def test_two_ranks(verify, program):
    ranks = """
    import os
    import torch.distributed as dist

    dist.init_process_group("gloo")
    model = nn.parallel.DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(data[dist.get_rank()]).sum().backward()
    optimizer.step()
    dist.destroy_process_group()
    sys.stdout.flush()
    os._exit(0)  # torch 2.13's gloo threads abort one process in forty that ends behind them, without opguard too
    """
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "train.py")
    code, found, done = verify(program(more=ranks), command=torchrun)
    assert code == 0, done.stdout + done.stderr
    assert found["log"]["processes"] == 2 and found["equal"]["losses"] == 2 * 4


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--verify"], "--verify runs the program"),
        (["--json", "x.json", "--", "true"], "--verify"),
        (["--verify", "--apply", "--", "true"], "--apply"),
        (["--verify", "--strip", "--", "true"], "--strip"),
        (["--verify", "--json", "no/such/x.json", "--", "true"], "no such folder"),
        (["--verify", "--plan", "no-plan.json", "--", "true"], "no-plan.json"),
        (["--verify", "--work", ".", "--", "true"], "not empty"),
        (["--verify", "--", "no-such-program"], "no-such-program"),
    ],
)
def test_bad_command_lines(opguard, program, arguments, message):
    tree = program()
    done = opguard(tree, *arguments, program="opguard-instrument", cwd=tree)
    assert done.returncode == 2
    assert message in done.stderr + done.stdout
