"""opguard's pytest plugin: @pytest.mark.bitwise and opguard_certify, in sessions of their own."""
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest

from conftest import ROOT, build_dir, clean_environment

MARKED = ROOT / "tests" / "fixtures" / "testing" / "marked" / "test_marked.py"

# Stands for `opguard certify`: yes to all but two names.
CERTIFY = """#!/usr/bin/env python3
import json, sys
asked = sys.argv[1:-2]
print("resume: parameters differ at step 3" if "resume" in asked else "no opguard.toml above this folder")
if "resume" in asked:
    sys.exit(1)
if "broken" in asked:
    sys.exit(2)
assert sys.argv[-2] == "--json"
json.dump({"asked": asked}, open(sys.argv[-1], "w"))
"""


def session(folder, *words, environment=()):
    """One pytest session in `folder` -> CompletedProcess."""
    env = {**clean_environment(), "PYTHONPATH": str(build_dir() / "python"), "PYTHONDONTWRITEBYTECODE": "1", **dict(environment)}
    return subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "opguard.testing.plugin", *map(str, words)],
                          cwd=folder, env=env, capture_output=True, text=True, timeout=600)  # fmt: skip


@pytest.fixture(scope="module")
def marked(tmp_path_factory):
    """{test: (outcome, text)} of the marked tests under two workers."""
    folder = tmp_path_factory.mktemp("marked")
    (folder / "test_marked.py").write_text(MARKED.read_text())
    stub = folder / "certify"
    stub.write_text(CERTIFY)
    stub.chmod(0o755)
    (folder / "conftest.py").write_text(f"from opguard.testing import certify\n"
                                        f"certify.command = type('C', (), {{'program': staticmethod(lambda: {str(stub)!r})}})\n")  # fmt: skip
    done = session(folder, "-n", "2", f"--junitxml={folder / 'junit.xml'}", "-W", "error::pytest.PytestReturnNotNoneWarning",
                   "-W", "error::pytest.PytestUnknownMarkWarning")  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    found = {}
    for case in ElementTree.parse(folder / "junit.xml").iter("testcase"):
        outcome = next(iter(case), None)
        kind = "passed" if outcome is None or outcome.tag == "system-out" else outcome.tag
        found[case.get("name")] = (kind, (outcome.text or "") if outcome is not None else "")
    return found


def test_what_repeats_itself_passes(marked):
    passed = [name for name, (kind, _) in marked.items() if kind == "passed"]
    assert set(passed) == {"test_training", "test_more_runs[1]", "test_more_runs[5000]", "test_method", "test_unmarked", "test_certified"}, marked
    assert {name for name, (kind, _) in marked.items() if kind == "skipped"} == {"test_skipped", "test_expected_to_differ"}


@pytest.mark.parametrize(
    "test, parts",
    [
        ("test_loss", ["not bit-identical: a (run 1 of this test) and b (run 2)", "loss of backward pass 0: ", "0.bias after step 0: ",
                       "they part first at mul, forward: equal tensors, other arguments", "in train\n",
                       "loss = model(torch.randn(4, 8) + random.random()).pow(2).mean() * (1 + noise())\n" + " " * 15 + "^~~~"]),
        ("test_generator", ["returned: 3 of 3 elements differ", "they part first at randn", "in test_generator"]),
        ("test_own_failure", ["assert 1.0 == 2"]),
        ("test_object", ["returned is a builtins.object, of which no bits are known"]),
        ("test_not_certified", ["opguard certify: a check does not hold\nresume: parameters differ at step 3"]),
        ("test_not_told", ["opguard certify: could not tell\nno opguard.toml above this folder"]),
    ],
)  # fmt: skip
def test_what_does_not_is_told(marked, test, parts):
    kind, text = marked[test]
    assert kind == "failure", text
    for part in parts:
        assert part in text, text


@pytest.mark.parametrize(
    "body, words",
    [
        ("@pytest.mark.bitwise(runs=1)\ndef test_x(): pass", "bitwise(runs=1): two runs at least are compared"),
        ("@pytest.mark.bitwise(seed=-1)\ndef test_x(): pass", "bitwise(seed=-1): a seed is a whole number from 0"),
        ("@pytest.mark.bitwise(times=2)\ndef test_x(): pass", "bitwise takes runs=, seed= and deterministic=, not times"),
        ("@pytest.mark.bitwise(2)\ndef test_x(): pass", "bitwise takes runs=, seed= and deterministic=, not 2"),
        ("@pytest.mark.bitwise\nasync def test_x(): pass", "bitwise cannot run an async test twice"),
        ("import unittest\n@pytest.mark.bitwise\nclass TestX(unittest.TestCase):\n    def test_x(self): pass", "bitwise marks test functions and methods, not TestCaseFunction"),
    ],
)  # fmt: skip
def test_a_marker_that_cannot_be_kept_is_refused(tmp_path, body, words):
    (tmp_path / "test_x.py").write_text("import pytest\n" + body + "\n")
    done = session(tmp_path)
    assert done.returncode == 4 and words in done.stdout + done.stderr, done.stdout + done.stderr


def test_unused_it_costs_no_torch(tmp_path):
    package = tmp_path / "lib" / "mine" / "tests"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").write_text("")
    (package / "test_x.py").write_text("import sys\ndef test_x():\n    assert 'torch' not in sys.modules and 'opguard.testing.plugin' in sys.modules\n"
                                       "    assert 'opguard.testing.bits' not in sys.modules\n")  # fmt: skip
    path = f"{tmp_path / 'lib'}:{build_dir() / 'python'}"
    done = session(tmp_path, "--pyargs", "mine.tests", "--strict-markers", environment={"PYTHONPATH": path})
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr


def test_a_session_finds_it_by_its_entry_point(tmp_path):
    entry = '[project.entry-points.pytest11]\nopguard = "opguard.testing.plugin"\n'
    assert entry in (ROOT / "pyproject.toml").read_text()
    # As an installed wheel leaves it.
    about = tmp_path / "site" / "opguard_instrument-0.1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: opguard-instrument\nVersion: 0.1.0\n")
    (about / "entry_points.txt").write_text(entry.replace("project.entry-points.", "").replace('"', ""))
    env = {**clean_environment(), "PYTHONPATH": f"{tmp_path / 'site'}:{build_dir() / 'python'}"}
    for words, found in ((["--markers"], True), (["--markers", "-p", "no:opguard"], False)):
        done = subprocess.run([sys.executable, "-m", "pytest", *words], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and ("@pytest.mark.bitwise(runs=2" in done.stdout) == found, done.stdout + done.stderr


def test_pytest_finds_the_plugin_by_the_packages_metadata(tmp_path):
    """As an installation leaves it: the metadata of this tree's wheel, made without building, beside the package."""
    backend = pytest.importorskip("scikit_build_core.build")
    site, here = tmp_path / "site", os.getcwd()
    site.mkdir()
    os.chdir(ROOT)
    try:
        info = site / backend.prepare_metadata_for_build_wheel(str(site))
    finally:
        os.chdir(here)
    assert "opguard=opguard.testing.plugin" in (info / "entry_points.txt").read_text().replace(" ", "")
    (site / "opguard").symlink_to(build_dir() / "python" / "opguard")
    asked = [sys.executable, "-m", "pytest", "--markers", "-p", "no:cacheprovider"]
    environment = {**clean_environment(), "PYTHONPATH": str(site)}
    done = subprocess.run(asked, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and "@pytest.mark.bitwise" in done.stdout, done.stdout + done.stderr
    # Without the metadata nobody names it.
    (info / "entry_points.txt").unlink()
    done = subprocess.run(asked, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and "@pytest.mark.bitwise" not in done.stdout, done.stdout
