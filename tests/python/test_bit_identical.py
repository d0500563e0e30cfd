"""opguard.testing.assert_bit_identical: what is equal passes, what is not is told with the line where it begins.

All pairs are one pytest run in a process of their own, under two workers (tests/fixtures/testing/identical)."""
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest

from conftest import ROOT, build_dir, clean_environment

PAIRS = ROOT / "tests" / "fixtures" / "testing" / "identical" / "test_pairs.py"

ENVIRONMENT = {**clean_environment(), "PYTHONPATH": str(build_dir() / "python"), "PYTHONDONTWRITEBYTECODE": "1"}

# What the failure of each pair says, beside the lines marked in it.
TOLD = {
    "test_argument": ["not bit-identical: a (Mlp) and b (Tanh)", "gelu, forward: equal tensors, other arguments", "approximate='tanh' in b",
                      "in Mlp.act", "in Tanh.act"],
    "test_statement_in_a_chain": ["rsqrt in a, sqrt in b, forward"],
    "test_negative_zero": ["out: 2 of 2 elements differ, the first at [0]: 0.0 in a, -0.0 in b", "arg1=-0.0 in b"],
    "test_in_place_on_an_input_counts": ["args[0]: 3 of 3 elements differ, the first at [0]: 2.0 in a, 1.0 in b", "only a has it"],
    "test_payload_of_a_nan": ["nan in both, in bits 0x7fc00000 in a, 0x7fc00001 in b"],
    "test_type": ["out: float32 in a, bfloat16 in b, and other numbers"],
    "test_autocast": ["linear, forward: equal inputs, a result of another type or shape", "float32[4, 6, 32] in a, bfloat16[4, 6, 32] in b"],
    "test_only_the_gradient": ["args[0].grad: ", "mul, backward", "in Square.backward"],
    "test_optimizer": ["weight: 32 of 32 elements differ", "mul_, optimizer: only b has it"],
    "test_other_weights": ["before either ran, up.weight differed already", "b.load_state_dict(a.state_dict())"],
    "test_chance": ["a differs from itself when it runs again from the same state"],
    "test_buffer_alone": ["norm.running_mean: 6 of 6", "batch_norm, forward"],
    "test_number": ["out['steps']: int 3 in a, int 4 in b"],
    "test_compiled": ["b (compiled ", "with what is compiled run eagerly they agree: compiling makes the difference"],
    "test_names_beyond_ascii": ["mul in a, add in b"],
}  # fmt: skip


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """{test: its failure, "" if it passed}"""
    folder = tmp_path_factory.mktemp("pairs")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "-p", "opguard.testing.plugin", "--rootdir", folder,
         f"--junitxml={folder / 'junit.xml'}", PAIRS],
        cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert sorted(os.listdir(folder)) == ["junit.xml"]
    cases = ElementTree.parse(folder / "junit.xml").iter("testcase")
    return {case.get("name"): "".join(failure.text for failure in case.iter("failure")) for case in cases}


def marked(test, side):
    """The (line, operator) that the test's text, or what it calls, marks as the pivot's."""
    lines = PAIRS.read_text().splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith(f"def {test}("))
    body = [first]
    while body[-1] + 1 < len(lines) and not re.match(r"\S", lines[body[-1] + 1]):
        body.append(body[-1] + 1)
    return [i + 1 for i in body if re.search(rf"# (a \w+ )?{side} \w+", lines[i])]


@pytest.mark.parametrize("test", TOLD)
def test_what_differs_is_told(told, test):
    text = told[test]
    assert "NotBitIdentical" in text, text
    for part in TOLD[test]:
        assert part in text, text
    for side in "ab":
        for line in marked(test, side):
            assert re.search(rf"^E +{side}  \S*test_pairs.py:{line}:\d+: in ", text, re.M), text
    # Nothing of the temporary logs, nothing of ours in the traceback.
    assert "opguard-test-" not in text and "identical.py" not in text


def test_values_that_a_device_reads(tmp_path):
    """Several logs in one process, whose values come late: as from a GPU, through the example plugin."""
    plugin = build_dir() / "tests" / "device" / "opguard_example_values.so"
    if not plugin.exists():
        pytest.skip("the example plugin is not built: ninja -C build/release")
    (tmp_path / "conftest.py").write_text(f"from opguard import _rt\n_rt.device_plugins({str(plugin)!r}, 5.0)\n")
    (tmp_path / "test_pairs.py").write_text(PAIRS.read_text())
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tmp_path, "-k", "argument or chain or gradient or behind"],
                          cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=600)  # fmt: skip
    assert "3 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    for part in ["gelu, forward: equal tensors, other arguments", "rsqrt in a, sqrt in b, forward", "mul, backward"]:
        assert part in done.stdout, done.stdout


def test_what_is_equal_passes(told):
    assert [name for name, text in told.items() if text and name not in TOLD] == []
    assert len(told) > len(TOLD) + 10
