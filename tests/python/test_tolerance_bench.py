"""bench/tolerance.py and bench/ports.py: how answers are scored, and that the cases are what they say."""
import importlib.util
import json
import shutil
import subprocess
import sys

import pytest

from conftest import ROOT, build_dir

sys.path.insert(0, str(ROOT / "bench"))
import answers  # noqa: E402
import ports  # noqa: E402
import tolerance  # noqa: E402

SOURCE = """class Row:
    def forward(self, x):
        y = x @ self.weight
        return reduce(
            y + self.bias,
            self.group)

    def other(self):
        return 0


def late():
    return 1
"""
EXPECT = {"kind": "formula", "exact": [["layers.py", "Row.forward", "return reduce("]], "near": [["layers.py", "Row.forward", ""]], "module": "layers.0.out"}


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "layers.py").write_text(SOURCE)
    return tmp_path


def at(line, function="Row.forward", kind="value", module=""):
    pivot = {"kind": kind, "boundary": "m.add:1", "step": 0, "a": None, "b": {"file": "layers.py", "line": line, "function": function}}
    placements = [{"boundary": "m.add:1", "step": 0, "state": "beyond", "module": module}]
    return {"verdict": "diverged", "pivot": pivot, "tolerance": {"placements": placements}}


@pytest.mark.parametrize("answer, wanted", [
    (at(4), "exact"),
    (at(5), "exact"),  # a later line of the statement
    (at(3), "near"),
    (at(9, "Row.other"), "module"),
    (at(13, "late"), "wrong"),
    (at(13, "late", module="layers.0.out"), "module"),
    ({**at(13, "late"), "candidates": [{"b": at(4)["pivot"]["b"]}]}, "candidate"),
    ({"verdict": "diverged", "pivot": None}, "wrong"),
    ({"verdict": "equivalent", "pivot": None}, "missed"),
    ({"verdict": "identical", "pivot": None}, "missed"),
    ({"verdict": "inconclusive", "pivot": None}, "undecided"),
])
def test_class_of_an_answer(tree, answer, wanted):
    assert tolerance.judge(EXPECT, answer, 1, tree) == wanted


def test_no_answer_is_counted_and_a_control_takes_no_finding(tree):
    control = {**EXPECT, "kind": "none"}
    assert tolerance.judge(EXPECT, None, 2, tree) == "failed" and tolerance.judge(control, None, None, tree) == "limit"
    verdicts = {v: tolerance.judge(control, {"verdict": v, "pivot": None}, 0, tree) for v in ("identical", "equivalent", "diverged", "inconclusive")}
    assert verdicts == {"identical": "right", "equivalent": "right", "diverged": "alarm", "inconclusive": "undecided"}
    assert tolerance.kind_is_right(control, at(4)) is None
    assert tolerance.kind_is_right(EXPECT, at(4)) is True and tolerance.kind_is_right(EXPECT, at(4, kind="scale")) is False


def test_the_first_answer_to_a_case_that_is_held_out_stays(tmp_path):
    kept = tmp_path / "tolerance.json"
    row = {"case": "a.b", "set": "a", "seed": 0, "held_out": True, "expected": "scale", "class": "wrong", "kind_right": False, "verdict": "diverged", "kind": "value", "b": "x.py:1"}
    answers.keep(kept, row, "one", tolerance.FIRST)
    answers.keep(kept, {**row, "class": "exact", "kind_right": True, "kind": "scale"}, "two", tolerance.FIRST)
    found = json.loads(kept.read_text())["results"]
    assert len(found) == 1 and found[0]["class"] == "exact" and found[0]["commit"] == "two"
    assert found[0]["first"] == {"class": "wrong", "kind_right": False, "verdict": "diverged", "kind": "value", "b": "x.py:1", "commit": "one"}
    text = tolerance.tables(found)
    assert "| own cases, held out | 1 | 1 | 1 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 1 |" in text
    assert "| held out, first tries | 1 | 1 | 0 | 0 | 0 | 0 | 1 | 0 | 0 | 0 | 0 |" in text


def test_every_case_has_its_places_and_a_kind_that_is_known(tmp_path):
    found = ports.tables()
    assert len(found) == 162
    for name, case in found.items():
        ports.make(case, tmp_path / name, True)  # fails where an edit's text is not there once
        assert case["kind"] == "none" or (case["edits"] and case["exact"] and case["near"]), name
        assert case["kind"] == "none" or case["kind"] in tolerance.KINDS, name
        for file, function, _ in case["exact"] + case["near"]:
            source = (tmp_path / name / file).read_text()
            assert f"def {function.rpartition('.')[2]}(" in source, (name, function)


def test_every_port_is_right_once_and_most_of_its_faults_are_held_out():
    found = ports.tables()
    for port, faults, held_out in (*((port, 6, 4) for port in ("bert", "gpt2", "llama", "mamba", "t5", "vit")), ("mixtral", 4, 4)):
        of = [case for name, case in found.items() if name.startswith(port + ".")]
        assert sum(case["kind"] != "none" for case in of) == faults
        assert sum(case["kind"] != "none" and case["held_out"] for case in of) == held_out
        assert any(case["kind"] == "none" for case in of)


@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="transformers is not installed: the ports have no reference")
def test_a_port_is_its_reference_within_rounding_and_its_fault_is_not():
    found, references = ports.tables(["gpt2"]), {}
    assert ports.check("gpt2.control", found["gpt2.control"], sys.executable, references)["right"]
    assert ports.check("gpt2.gelu_erf", found["gpt2.gelu_erf"], sys.executable, references)["right"]


@pytest.mark.skipif(not (build_dir() / "build.ninja").is_file() or not shutil.which("ninja"), reason="no build folder of ninja")
def test_logs_of_a_made_up_parallel_run(tmp_path):
    """Its ranks' pieces, sums, layers and micro-batches are the reference's; a fault is found where it was put."""
    path = tmp_path / "scale.json"
    subprocess.run([sys.executable, ROOT / "bench" / "tolerance_scale.py", "--build", build_dir(), "--records", "3000", "--layers", "4", "--layouts",
                    "2 2 1,1 2 2", "--work", tmp_path, "--json", path], capture_output=True, text=True)  # fmt: skip
    rows = json.loads(path.read_text())["rows"]
    assert [(r["layout"], r["change"], r["now"]["exit"]) for r in rows] == [
        ("2 2 1", "equal", 0), ("2 2 1", "faulty", 1), ("1 2 2", "equal", 0), ("1 2 2", "faulty", 1)]  # fmt: skip
    assert all(r["records"] >= 3000 for r in rows)


@pytest.mark.parametrize("name", ["parallel.control_scatter", "parallel.control_pp_uneven", "parallel.control_checkpoint", "plain.control_flash", "plain.control_together"])
def test_a_layout_or_form_that_is_right_is_its_reference_within_rounding(name):
    assert ports.check(name, ports.tables([name.partition(".")[0]])[name], sys.executable, {})["right"]


def test_uneven_stages_have_every_layer_once_or_are_refused():
    program = """
from groups import Group
from model import stage_layers
for size, in_first in ((1, 3), (2, 0), (2, 3), (4, 1), (2, 4), (3, 1), (2, -1)):
    try:
        print([list(stage_layers(Group(size, rank, []), in_first)) for rank in range(size)])
    except ValueError as error:
        print(error)
"""
    said = subprocess.run([sys.executable, "-B", "-c", program], cwd=ROOT / "bench" / "parallel", capture_output=True, text=True, check=True).stdout.splitlines()
    assert said[:4] == ["[[0, 1, 2, 3]]", "[[0, 1], [2, 3]]", "[[0, 1, 2], [3]]", "[[0], [1], [2], [3]]"]
    assert said[4:] == [f"4 layers, {n} of them in the first of {size} stages: the others cannot have as many each" for size, n in ((2, 4), (3, 1), (2, -1))]
