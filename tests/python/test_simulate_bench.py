"""bench/simulate.py: how answers are scored, and that the cases are what they say."""
import ast
import sys

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "bench"))
import simulate  # noqa: E402

ARITHMETIC = {"says": "arithmetic", "ranks": 2, "at": []}
CONFIGURATION = {"says": "configuration", "ranks": 2, "at": ["lr=1e-2 / o.tp"]}
REFUSED = {"says": "refused", "ranks": 2, "at": ["by hand"]}


def told(answer, *verdicts):
    return {"answer": answer, "ranks": [{"rank": i, "verdict": verdict} for i, verdict in enumerate(verdicts)]}


def pivot(line):
    return {"pivot": {"b": {"file": "train.py", "line": line, "path": ""}}}


@pytest.mark.parametrize(
    "case, answer, code, said, found, wanted",
    [
        (ARITHMETIC, told("arithmetic", "identical", "identical"), 0, "", {}, "right"),
        (ARITHMETIC, told("arithmetic", "identical"), 0, "", {}, "wrong"),  # a rank was not compared
        (ARITHMETIC, told("not told", "identical", "inconclusive"), 2, "", {}, "wrong"),
        (ARITHMETIC, told("configuration", "identical", "diverged"), 1, "", pivot(2), "wrong"),
        (ARITHMETIC, {}, 2, "", {}, "failed"),
        (ARITHMETIC, {}, None, "", {}, "limit"),
        (CONFIGURATION, told("configuration", "diverged", "diverged"), 1, "", pivot(2), "place"),
        (CONFIGURATION, told("configuration", "diverged", "diverged"), 1, "", pivot(1), "right"),
        (CONFIGURATION, told("arithmetic", "identical", "identical"), 0, "", {}, "wrong"),
        (REFUSED, {}, 2, "opguard: error: run b is not simulated: parallel by hand", {}, "right"),
        (REFUSED, {}, 2, "opguard: error: something else", {}, "wrong"),
        (REFUSED, told("arithmetic", "identical", "identical"), 0, "by hand", {}, "wrong"),
    ],
)
def test_class_of_an_answer(tmp_path, case, answer, code, said, found, wanted):
    (tmp_path / "train.py").write_text("model = make()\noptimizer = adam(model, lr=1e-2 / o.tp)\n")
    assert simulate.judge(case, answer, code, said, found, tmp_path) == wanted


@pytest.mark.parametrize("name", simulate.CASES)
def test_a_case_is_a_program_with_its_edits(tmp_path, name):
    case = simulate.CASES[name]
    simulate.make_own(case, tmp_path / "good", False)
    simulate.make_own(case, tmp_path / "faulty", True)
    good, faulty = ((tmp_path / tree / "train.py").read_text() for tree in ("good", "faulty"))
    ast.parse(faulty)
    assert (good != faulty) == bool(case["edits"])
    if case["says"] == "configuration":
        assert any(text in faulty and text not in good for text in case["at"])


def test_the_table_counts_every_run():
    rows = [
        {
            "case": "a",
            "set": "own",
            "seed": seed,
            "held_out": False,
            "says": "arithmetic",
            "class": klass,
            "text": "The arithmetic",
            "seconds": 3.0,
        }
        for seed, klass in enumerate(("right", "right", "wrong"))
    ]
    table = simulate.tables(rows)
    assert "| own, looked at | 3 | 2 of 3 | - | - | - | 3 |" in table
    assert "| a, seed 2 | arithmetic | wrong | The arithmetic |" in table
