"""Of what a program adds, tests and prints only that is wrapped which was a tensor's, and nothing of it is missed."""
import re
import sys

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="up to 3.10 a line is all that is known")

PROGRAM = """import torch


class Corpus:
    def __init__(self):
        self.data = torch.arange(6.0)


class Scale(torch.nn.Parameter):
    def put(self, value):
        self.data = value * 2


def main(lr=0.1, name="run"):
    scale = Scale(torch.ones(()))
    scale.put(torch.tensor(3.0))
    loss = Corpus().data.sum() * scale
    steps = 3 * len(name) + 1
    note = "step %d" % steps + name
    if name and loss > steps and lr < 1:
        print(f"{name} lr {lr:.3f} loss {loss:{steps}.{len(name)}f} {note}")
    assert steps < 100 and loss.isfinite() and name, f"{steps}"
    while lr > 1 or loss > 1e9:
        pass
    return f"{steps:{len(note)}}"


print(main())
"""


@pytest.fixture(scope="module")
def diff(opguard, tmp_path_factory):
    tree = tmp_path_factory.mktemp("tree")
    (tree / "train.py").write_text(PROGRAM)
    done = opguard("instrument", tree, "--", sys.executable, "train.py", cwd=tree)
    assert done.returncode == 0, done.stderr
    return "".join(line for line in done.stdout.splitlines(keepends=True) if line.startswith("+"))


def test_numbers_and_texts_stay_as_they_are(diff):
    for text in ("name", "lr", "steps", "note", "len(name)", "len(note)", "lr < 1", "steps < 100", "3", "lr > 1"):
        for quote in "\"'":
            assert f"{quote}, {text})" not in diff, text
    assert "steps = " not in diff and "note = " not in diff


def test_each_tensor_is_wrapped(diff):
    for pattern in (
        r'og\("train.gt:\w+", loss\) > steps', r'og\("train.bool:\w+", og\("train.gt:\w+", loss\) > steps\)',
        r'og\("train.bool:\w+", og\("train.isfinite:\w+", loss.isfinite\)\(\)\)', r"\{og\('train.format:\w+', loss\):\{steps\}",
        r'or og\("train.bool:\w+", og\("train.gt:\w+", loss\) > 1e9\)', r'og\("train.set_data:\w+", self\).data = og\("train.mul:\w+", value\) \* 2',
    ):  # fmt: skip
        assert re.search(pattern, diff), f"{pattern}\n{diff}"


def test_a_data_set_is_no_parameter(diff):
    assert 'self.data = og("train.arange' in diff
