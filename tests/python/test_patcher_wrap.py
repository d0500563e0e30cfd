"""Every site of real files wrapped at once: CPython is the judge of what the patcher writes."""

import importlib.util
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
