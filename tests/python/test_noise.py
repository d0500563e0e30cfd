"""`opguard noise` on programs that differ from run to run, and comparisons beside the rules it writes.

Each program trains a small model deterministically; its noise is what the case adds.
"""
import json
import re

import pytest

PROGRAM = """
import {imports}
import torch

torch.manual_seed(0)
weight = torch.nn.Parameter(torch.randn(8, 8))
optimizer = torch.optim.SGD([weight], lr=0.1)
{before}
for step in range(3):
    x = torch.randn(4, 8)
    y = torch.relu(x @ weight)
    loss = (y * y).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
{noise}
    print("step", step, "loss", loss.item())
"""

NOISE = {
    # The time of day, and a number made from it that reaches Python.
    "clock": dict(imports="time", noise=["stamp = torch.full((2,), time.time(), dtype=torch.float64)", "age = stamp - 1.0",
                                         "print('age', float(age.sum()))"],
                  first="torch.full(", why="wall clock"),
    # A generator that nobody seeds.
    "generator": dict(imports="random", noise=["jitter = torch.tensor(random.random())", "wide = jitter * 2"],
                      first="torch.tensor(", why="random"),
    # What torch.empty left: memory freed by somebody else, since fresh memory is often zero.
    "garbage": dict(imports="ctypes, os",
                    before="""
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]


def soil():
    blocks = [libc.malloc(4160) for _ in range(256)]
    for block in blocks:
        ctypes.memset(block, 1 + os.urandom(1)[0] % 120, 4160)
    for block in blocks:
        libc.free(block)
""",
                    noise=["soil()", "scratch = torch.empty(1024)", "used = scratch + 1"],
                    first="scratch + 1", why="uninitialised memory"),
    # Two threads that fill one list in an order of their own.
    "threads": dict(imports="os, threading, time",
                    before="""
def fill(into, number):
    time.sleep(0.001 * (os.urandom(1)[0] % 64))
    into.append(number)
""",
                    noise=["parts = []", "workers = [threading.Thread(target=fill, args=(parts, n)) for n in range(16)]",
                           "[w.start() for w in workers]; [w.join() for w in workers]", "order = torch.tensor(parts)", "shown = order + 1"],
                    first="torch.tensor(parts)", why="a number from outside"),
}


def write(tree, name, kind=None, **extra):
    case = dict(imports="os", before="", noise=["pass"]) if kind is None else dict(NOISE[kind])
    case.update(extra)
    tree = tree / name
    tree.mkdir()
    lines = "\n".join("    " + line for line in case["noise"])
    (tree / "train.py").write_text(PROGRAM.format(imports=case["imports"], before=case.get("before", ""), noise=lines))
    return tree


@pytest.fixture
def noise(opguard, tmp_path):
    """noise(tree, *options) -> (the finished process, text of the rules or None)."""

    def run(tree, *options):
        out = tmp_path / "noise.rules"
        done = opguard("noise", tree, "-o", out, "--color", "never", *options, "--", "python", "train.py")
        return done, out.read_text() if out.exists() else None

    return run


def rules_of(text):
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def test_a_deterministic_program_has_none(noise, tmp_path):
    done, text = noise(write(tmp_path, "plain"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "agree in every record" in done.stdout
    # Nobody seeds Python's generator, and nobody draws from it.
    assert all(rule.startswith("<state>:") and "nobody draws from it" in rule for rule in rules_of(text)), text


@pytest.mark.parametrize("name", NOISE)
def test_the_first_is_named_and_hidden(name, noise, opguard, tmp_path):
    tree = write(tmp_path, "tree", name)
    done, text = noise(tree)
    assert done.returncode == 1, done.stdout + done.stderr
    # The first nondeterministic operator, in the source.
    assert NOISE[name]["first"] in done.stdout, done.stdout
    # Narrow: a boundary, a part of it and a phase, each with its reason.
    rules = [rule for rule in rules_of(text) if not rule.startswith("<")]
    assert rules and all(re.match(r"^\S+:\S+:(in|out|scalar|result|written)/\S+,kind=op,phase=forward -- why: .+", r) for r in rules), text
    assert NOISE[name]["why"] in rules[0], text
    assert "reaches the model values" not in text

    # An unchanged tree is identical beside the rules.
    answer_file = tmp_path / "answer.json"
    options = ["--ignore-file", tmp_path / "noise.rules", "--json", answer_file, "--color", "never"]
    done = opguard("diff", tree, tree, *options, "--", "python", "train.py")
    answer = json.loads(answer_file.read_text())
    assert done.returncode == 0, done.stdout + done.stderr
    assert answer["verdict"] == "identical"
    assert sum(rule["hidden"] for rule in answer["rules"]) > 0
    assert answer["unequal_pairs"] == 0, done.stdout
    assert "hides" in done.stdout and "why: " in done.stdout
    # A fault beside the noise is found.
    other = write(tmp_path, "other", name)
    source = (other / "train.py").read_text()
    assert source.count("(y * y).mean()") == 1
    (other / "train.py").write_text(source.replace("(y * y).mean()", "(y * y).sum()"))
    done = opguard("diff", tree, other, "--no-prove", *options, "--", "python", "train.py")
    answer = json.loads(answer_file.read_text())
    assert done.returncode == 1 and answer["verdict"] == "diverged"
    assert "(y * y)" in json.dumps([answer["pivot"]["a"], answer["pivot"]["b"]]), answer["pivot"]


def test_noise_that_reaches_the_loss_is_not_hidden(noise, opguard, tmp_path):
    tree = write(tmp_path, "tree", None, imports="random", noise=["weight.data.add_(random.random() / 1000)"])
    done, text = noise(tree)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "reaches the model values" in done.stdout and "reaches the model values" in text
    done = opguard("diff", tree, tree, "--ignore-file", tmp_path / "noise.rules", "--color", "never", "--", "python", "train.py")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "hides" in done.stdout


def test_a_faulty_rule_stops_before_anything_runs(opguard, tmp_path):
    tree = write(tmp_path, "tree")
    (tmp_path / "bad.rules").write_text("# a comment\na.b:*,opertor=x -- why: y\n")
    mark = tmp_path / "ran"
    for command in ("noise", "diff"):
        done = opguard(command, tree, "--ignore-file", tmp_path / "bad.rules", "--ignore", "x:*", "--", "touch", mark)
        assert done.returncode == 2
        assert "bad.rules:2:7: error: unknown key 'opertor'\na.b:*,opertor=x -- why: y\n      ^~~~~~~\n" in done.stderr
        assert "did you mean 'operator'?" in done.stderr
        assert "--ignore:1:4: error: the reason is missing" in done.stderr
        assert not mark.exists()
