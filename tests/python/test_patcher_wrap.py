"""Every site of real files wrapped at once: CPython is the judge of what the patcher writes."""

import ast
import importlib.util
import itertools
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from conftest import ROOT, binary, build_dir, clean_environment

sys.path.insert(0, str(ROOT / "bench"))
import wrap_all  # noqa: E402

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
    """And stands where it stood, by the import hook's reckoning."""
    tree, originals = wrapped
    rewrite, count = wrap_all.import_hook(), 0
    for name, original in originals.items():
        text = (tree / name).read_bytes()
        compile(text, name, "exec", dont_inherit=True)
        if text == original:
            continue  # a file without sites
        found, probes = wrap_all.plain_tree(importlib.util.decode_source(text), rewrite)
        assert wrap_all.dump(found) == wrap_all.dump(wrap_all.ast.parse(original)), name
        count += probes
    assert len(originals) > 60 and count > 20000


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


# Items of a list of expressions outside of parentheses, and where such a list may stand.
STARRED = ["*a, *(1,) * 3", "*(1,) * 3, a", "*(a or b), c", "*[1] * 3, a", "*a, *[1, 2] * n", "*f(x) * 2, 1", "*a.b * 2, 1", "*(1,), *(2,)", "*'ab' * 2, 1",
           "*rb'ab' * 2, 1", "*{1: 2} | b, c", "*(x for x in y), 1", "*a[0] * 3, *b", "*-a, b", "*~a, b", "*(yield), b", "*(lambda: 1)(), 2", "*a or b, 1",
           "*(1,)*3 + (2,)*4, *(5,)", "*(a, b)[1:], c", "*(a)(b)*2, c", "*(1,) @ m, b", "*(1,) < b, c", "*(1,) ** 2,", "*\\\n    (1,) * 3, a", "f(*(1,), *a), *(2,)",
           "a * (b), *(1,) * 2", "a ** (b), *(1,) ** 2", "(lambda *, k: k), *(1,)"]  # fmt: skip
LISTS = ["x = {}", "return {}", "yield {}", "x = y = {}", "for q in {}: pass", "x: tuple = {}", "z[{}]", "x = ({})", "x = [{}]", "f({})", "x = yield {}", "z[{}] = 1", "if x: y = {}; z = 1"]  # fmt: skip


class WithoutProbes(ast.NodeTransformer):
    def visit_Call(self, node):
        self.generic_visit(node)
        return node.args[1] if isinstance(node.func, ast.Name) and node.func.id == "og" else node


def test_stars_before_what_is_no_name(opguard, tmp_path):
    """tree-sitter-python 0.25.0 refuses most of these: valid files of megatron-core were."""
    texts = {}
    for i, (place, items) in enumerate(itertools.product(LISTS, STARRED)):
        text = "def f(a, b, c):\n    %s\n" % place.format(items)
        try:
            ast.parse(text)
        except SyntaxError:
            continue
        texts["m%03d.py" % i] = text
        (tmp_path / ("m%03d.py" % i)).write_text(text)
    assert len(texts) > 300
    done = opguard(tmp_path, "--all-sites", "--apply", program="opguard-instrument")
    assert done.returncode == 0 and "skipped" not in done.stderr, done.stderr
    for name, text in texts.items():
        probed = ast.parse((tmp_path / name).read_text())
        probed.body = [s for s in probed.body if not isinstance(s, ast.ImportFrom)]
        assert ast.dump(WithoutProbes().visit(probed)) == ast.dump(ast.parse(text)), (tmp_path / name).read_text()
    assert opguard(tmp_path, "--strip", "--apply", program="opguard-instrument").returncode == 0
    assert {name: (tmp_path / name).read_text() for name in texts} == texts
