"""Every site of real files wrapped at once: CPython is the judge of what the patcher writes."""
import ast
import subprocess
import sysconfig
from pathlib import Path

import pytest

from conftest import binary, build_dir, clean_environment

AUGMENT = {
    "iadd": ast.Add, "isub": ast.Sub, "imul": ast.Mult, "imatmul": ast.MatMult, "itruediv": ast.Div,
    "ifloordiv": ast.FloorDiv, "imod": ast.Mod, "ipow": ast.Pow, "ilshift": ast.LShift, "irshift": ast.RShift,
    "iand": ast.BitAnd, "ixor": ast.BitXor, "ior": ast.BitOr,
}  # fmt: skip


class Unwrap(ast.NodeTransformer):
    """Takes the probes out of a syntax tree, by what docs/architecture.md says they mean."""

    def __init__(self, name):
        self.name = name
        self.count = 0

    def is_probe(self, node):
        if not isinstance(node, ast.Call):
            return False
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr == "aug":
            function = function.value
        return isinstance(function, ast.Name) and function.id == self.name

    def visit_Call(self, node):
        if not self.is_probe(node):
            return self.generic_visit(node)
        (boundary, operand), self.count = node.args, self.count + 1
        assert isinstance(boundary.value, str) and not node.keywords
        return self.visit(operand)

    def visit_Assign(self, node):
        call = node.value
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
            return self.generic_visit(node)
        if call.func.attr not in AUGMENT or not self.is_probe(call.func.value):
            return self.generic_visit(node)
        self.count += 1
        (target,), (value,) = node.targets, call.args
        assert ast.dump(call.func.value.args[1]) == ast.dump(ast.Name(target.id, ast.Load()))
        return ast.AugAssign(target, AUGMENT[call.func.attr](), self.visit(value))


def unwrapped(text):
    """The syntax tree without import line and probes, and how many there were."""
    tree = ast.parse(text)
    (own,) = [s for s in tree.body if isinstance(s, ast.ImportFrom) and s.module == "opguard"]
    tree.body.remove(own)
    unwrap = Unwrap(own.names[0].asname or own.names[0].name)
    return unwrap.visit(tree), unwrap.count


@pytest.fixture(scope="module")
def instrument():
    program = binary("opguard-instrument")
    if program is None:
        pytest.fail(f"no opguard-instrument in {build_dir()}: build it first (scripts/setup.sh), or set OPGUARD_BUILD")

    def run(*args, code=0):
        done = subprocess.run([str(program), *map(str, args)], capture_output=True, env=clean_environment(), timeout=300)
        assert done.returncode == code, done.stderr.decode()
        return done.stdout

    return run


@pytest.fixture(scope="module")
def wrapped(tmp_path_factory, instrument):
    """A tree of about a hundred files of the standard library with a probe at every site, and their originals."""
    tree = tmp_path_factory.mktemp("stdlib")
    library = Path(sysconfig.get_path("stdlib"))
    files = [f for f in sorted(library.glob("*.py")) + sorted(library.glob("asyncio/*.py")) if f.stat().st_size > 4000]
    originals = {}
    for file in files[:: max(1, len(files) // 100)]:
        originals[file.name] = file.read_bytes()
        (tree / file.name).write_bytes(originals[file.name])
    instrument(tree, "--all-sites", "--apply")
    return tree, originals


def test_every_file_compiles_and_means_the_same(wrapped):
    tree, originals = wrapped
    count = 0
    for name, original in originals.items():
        text = (tree / name).read_bytes()
        compile(text, name, "exec", dont_inherit=True)
        if text == original:
            continue  # a file without sites
        found, probes = unwrapped(text)
        assert ast.dump(found) == ast.dump(ast.parse(original)), name
        count += probes
    assert len(originals) > 60 and count > 10000


def test_lines_keep_their_number_but_for_the_import(wrapped):
    tree, originals = wrapped
    for name, original in originals.items():
        text = (tree / name).read_bytes()
        assert text.count(b"\n") - original.count(b"\n") == (text != original), name


def test_a_second_run_is_empty_and_strip_gives_every_byte_back(wrapped, instrument):
    tree, originals = wrapped
    assert instrument(tree, "--all-sites") == b""
    assert instrument(tree, "--strip") != b""
    instrument(tree, "--strip", "--apply")
    for name, original in originals.items():
        assert (tree / name).read_bytes() == original, name
    assert instrument(tree, "--strip") == b""
