"""A file size limit (`ulimit -f`), a full disk: what cannot be written is said in one line, and nothing is left half written."""

import json
import re
import resource
import shutil
import subprocess
import sys

import pytest

from conftest import binary, clean_environment

pytest.importorskip("torch")

TRAIN = """
import torch

torch.manual_seed(0)
weight = torch.randn(8, 8, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
for step in range(30):
    loss = (torch.randn(4, 8) @ weight).square().mean() * 1.0
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(float(loss))
"""


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    root = tmp_path_factory.mktemp("limits")
    for name, factor in (("a", "1.0"), ("b", "1.01")):
        (root / name).mkdir()
        (root / name / "train.py").write_text(TRAIN.replace("1.0", factor))
    return root


def limited(limit, *words, cwd, stdout=subprocess.PIPE):
    def prepare():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return subprocess.run([binary("opguard"), *map(str, words)], cwd=cwd, env=clean_environment(), stdout=stdout, stderr=subprocess.PIPE, text=True,
                          preexec_fn=prepare, restore_signals=True, timeout=300)  # fmt: skip


@pytest.mark.parametrize("limit", (0, 100, 3000, 20_000, 60_000))
def test_a_diff_ends_in_a_message(trees, limit):
    work = trees / f"work-{limit}"
    reports = {kind: trees / f"{limit}.{kind}" for kind in ("json", "html", "sarif", "perfetto")}
    options = [word for kind, path in reports.items() for word in (f"--{kind}", path)]
    ran = limited(limit, "diff", "a", "b", "--work", work, *options, "--", sys.executable, "train.py", cwd=trees)
    errors = [line for line in ran.stderr.splitlines() if "error:" in line and line.startswith("opguard:")]
    assert ran.returncode == 2 and len(errors) == 1, (ran.returncode, ran.stderr)
    assert re.search(r"cannot write .*: File too large|could not write its trace \(a full disk, or a file size limit", errors[0]), errors
    for kind, path in reports.items():
        if path.exists():
            assert path.stat().st_size <= limit
            kind == "html" or json.loads(path.read_text())
    assert not [p for p in (*trees.rglob("*.opguard-*"), *trees.rglob("*.part"))]
    # What had been found by then is shown.
    if limit == 60_000:
        assert ran.stdout.startswith("diverged, proven")


def test_what_was_there_stays(trees, tmp_path):
    shutil.copytree(trees / "a", tmp_path / "a")
    ran = limited(resource.RLIM_INFINITY, "preflight", "--tree", "a", "-o", "plan.json", "--", sys.executable, "train.py", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    before = (tmp_path / "plan.json").read_bytes()
    for words in (["plan", "--static", "a", "-o", "plan.json"], ["match", "--plan", "plan.json", "a", "--json", "plan.json"]):
        ran = limited(200, *words, cwd=tmp_path)
        assert ran.returncode == 2 and re.search("cannot write (.*/)?plan.json: File too large", ran.stderr), (words, ran.stderr)
        assert (tmp_path / "plan.json").read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "plan.json"]


def test_an_output_that_is_full(trees):
    with open("/dev/full", "w") as full:
        for words in (["match", "--plan", "plan.json", "a"], ["doctor"], ["diff", "--help"]):
            if words[0] == "match":
                made = limited(resource.RLIM_INFINITY, "plan", "--static", "a", "-o", "plan.json", cwd=trees)
                assert made.returncode == 0, made.stderr
            ran = limited(resource.RLIM_INFINITY, *words, cwd=trees, stdout=full)
            assert ran.returncode == 2 and "the output could not be written" in ran.stderr, (words, ran.returncode, ran.stderr)


def test_the_program_has_its_own_signals(trees, tmp_path):
    """SIGXFSZ ends a program that did not ask otherwise, under us as without us."""
    show = "grep SigIgn /proc/self/status"
    bare = subprocess.run(["sh", "-c", show], capture_output=True, text=True, check=True).stdout
    ran = limited(resource.RLIM_INFINITY, "run", "--log", tmp_path / "log", "--", "sh", "-c", f"{show}; {sys.executable} train.py", cwd=trees / "a")
    assert ran.stdout.splitlines()[0] == bare.strip(), (ran.stdout, bare)
