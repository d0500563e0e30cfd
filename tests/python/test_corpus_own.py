"""Programs of bench/corpus/own run alike bare, under the import hook, and patched: TorchScript, generators, patterns, recursion."""

import json
import re
import shutil
import subprocess
import sys

import pytest

from conftest import ROOT, binary, build_dir, clean_environment

torch = pytest.importorskip("torch")
OWN = ROOT / "bench" / "corpus" / "own"
PROGRAMS = [p for p in sorted(OWN.glob("*.py")) if sys.version_info >= (3, 11) or p.stem != "generators"]


def run(command, folder, **more):
    environment = {**clean_environment(), "PYTHONHASHSEED": "0", **more}
    environment["PATH"] = "%s:%s" % (build_dir() / "src" / "cli", environment["PATH"])
    return subprocess.run([*map(str, command)], cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


class Program:
    def __init__(self, path, folder):
        self.tree, self.folder, self.name = folder / "tree", folder, path.name
        self.tree.mkdir()
        shutil.copy(path, self.tree)
        self.plain = path.read_bytes()

    def bare(self):
        return run([sys.executable, self.name], self.tree)

    def instrument(self, *sites):
        made = run([binary("opguard-instrument"), self.tree, *sites, "--apply"], self.folder)
        assert made.returncode == 0, made.stderr

    def recorded(self, **more):
        done = run(["opguard", "run", "--mode", "full", "--log", self.folder / "log", "--", sys.executable, self.name], self.tree, **more)
        assert sum(f.stat().st_size for f in (self.folder / "log").rglob("*") if f.is_file()) > 1000, done.stderr
        return done

    def patched(self):
        self.instrument("--all-sites")
        return self.recorded()

    def hooked(self):
        self.instrument("--all-sites")
        probed = self.folder / self.name
        shutil.move(self.tree / self.name, probed)
        (self.tree / self.name).write_bytes(self.plain)
        hook = self.folder / "hook.json"
        hook.write_text(json.dumps({"files": {str(self.tree / self.name): str(probed)}}))
        return self.recorded(OPGUARD_HOOK=str(hook), OPGUARD_TREE=str(self.tree))


@pytest.fixture
def program(request, tmp_path):
    return Program(request.param, tmp_path)


of_each = pytest.mark.parametrize("program", PROGRAMS, indirect=True, ids=lambda p: p.stem)


def without_lines(text):
    """A patched file has one line more, its import."""
    return re.sub(r"(\.py:|, line )\d+", r"\1", text)


@of_each
def test_hooked_as_bare(program):
    bare, hooked = program.bare(), program.hooked()
    assert bare.returncode == 0, bare.stderr
    assert (hooked.stdout, hooked.returncode) == (bare.stdout, 0), hooked.stderr


@of_each
def test_patched_as_bare(program):
    bare, patched = program.bare(), program.patched()
    assert (without_lines(patched.stdout), patched.returncode) == (without_lines(bare.stdout), 0), patched.stderr


@of_each
def test_preflight_ends_as_bare(program):
    made = run(["opguard", "preflight", "--tree", ".", "-o", program.folder / "plan.json", "--", sys.executable, program.name], program.tree)
    assert made.returncode == 0, made.stderr
    assert json.loads((program.folder / "plan.json").read_text())["boundaries"]


DEPTHS = """import sys, torch

def plain(n):
    try:
        return plain(n + 1)
    except RecursionError:
        return n

def operator(x, n):
    try:
        return operator(x * 1.0, n + 1)
    except RecursionError:
        return n

class Module(torch.nn.Module):
    def forward(self, x, n):
        try:
            return self(x + 1, n + 1)
        except RecursionError:
            return n

def named(x, n=0):
    named.deepest = n
    named(x=torch.add(x, 1.0), n=n + 1)

try:
    named(torch.ones(1))
except RecursionError:
    pass
print(plain(0), operator(torch.ones(2), 0), Module()(torch.ones(1), 0), named.deepest)
"""


BELOW = """import inspect, sys, traceback, torch
print(len(inspect.stack()), sys._getframe().f_back, __name__, __spec__, __loader__.name, __file__)
try:
    torch.ones(2) @ torch.ones(3)
except RuntimeError:
    traceback.print_exc(file=sys.stdout)
sys.stdout.flush()
torch.ones(2) @ torch.ones(3)
"""


def test_nothing_lies_below_the_main_script(tmp_path):
    """Neither a frame of CPython's runpy, nor a line of it in the traceback that ends the program."""
    (tmp_path / "below.py").write_text(BELOW)
    (tmp_path / "run").mkdir()
    program = Program(tmp_path / "below.py", tmp_path / "run")
    bare, hooked = program.bare(), program.hooked()
    assert (hooked.stdout, hooked.returncode) == (bare.stdout, 1)
    assert bare.stderr in hooked.stderr and "runpy" not in hooked.stderr


def depths(text):
    return [int(n) for n in text.split()]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="3.12 counts calls by C apart")
@pytest.mark.parametrize("way", ["patched", "hooked"])
def test_depth_of_recursion(tmp_path, way):
    """An operator's probe is made by a Python function, whose frame the deepest level may lack. A hooked main script lies as deep as a plain one."""
    (tmp_path / "depth.py").write_text(DEPTHS)
    (tmp_path / "run").mkdir()
    program = Program(tmp_path / "depth.py", tmp_path / "run")
    bare, probed = depths(program.bare().stdout), depths(getattr(program, way)().stdout)
    assert len(bare) == 4 and min(bare) > 200
    assert probed[0] == bare[0] and all(b - 1 <= p <= b for b, p in zip(bare, probed) if b > 500), (bare, probed)
    # A module's call takes several levels.
    assert abs(bare[2] - probed[2]) <= 2, (bare, probed)
