"""The judge of bench/accuracy.py: a wrong judge would make every figure of docs/results/accuracy.md worthless."""
import ast
import sys

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "bench"))
from accuracy import kept  # noqa: E402
from cases import blank_docstrings, read_entries  # noqa: E402
from judging import judge, kind_is_right, loss_values, losses_equal  # noqa: E402
from single import judged  # noqa: E402
from table import expected, explain, said  # noqa: E402

STATEMENT = {"side": "b", "package": "", "file": "model/rope.py", "first_line": 7, "last_line": 8}
FUNCTION = {"side": "a", "package": "", "file": "model/rope.py", "first_line": 4, "last_line": 20}
EXPECT = {"verdict": "diverged", "kinds": ["structure"], "statements": [STATEMENT], "functions": [FUNCTION]}
CONTROL = {"verdict": "identical", "kinds": [], "statements": [], "functions": []}


def at(line, column=0, file="minigpt/model/rope.py"):
    return {"file": file, "line": line, "column": column}


def answer(a=None, b=None, candidates=(), kind="structure"):
    return {"verdict": "diverged", "pivot": {"kind": kind, "a": a, "b": b}, "candidates": list(candidates)}


@pytest.mark.parametrize("given, wanted", [
    (answer(b=at(8)), "exact"),
    (answer(b=at(9)), "wrong"),
    (answer(a=at(8)), "near"),  # the statement is named for side b only
    (answer(b=at(8, file="model/rope.py")), "exact"),
    (answer(b=at(8, file="other_model/rope.py")), "wrong"),
    (answer(b=at(9), candidates=[{"a": None, "b": at(7)}]), "candidate"),
    (answer(b=at(9), candidates=[{"a": None, "b": at(9)}] * 5 + [{"a": None, "b": at(7)}]), "wrong"),
    ({"verdict": "identical", "pivot": None}, "wrong"),
    ({"verdict": "inconclusive", "pivot": None}, "wrong"),
    (None, "wrong"),
])
def test_class_of_an_answer(given, wanted):
    assert judge(EXPECT, given) == wanted


def test_columns_count_where_a_line_holds_several_statements():
    expect = dict(EXPECT, functions=[], statements=[dict(STATEMENT, last_line=7, first_column=50, last_column=94)])
    assert judge(expect, answer(b=at(7, 50))) == "exact"
    assert judge(expect, answer(b=at(7, 94))) == "exact"
    assert judge(expect, answer(b=at(7, 4))) == "wrong"
    assert judge(expect, answer(b=at(7, 95))) == "wrong"


def test_a_control_takes_identical_only():
    assert judge(CONTROL, {"verdict": "identical", "pivot": None}) == "right"
    assert judge(CONTROL, {"verdict": "inconclusive", "pivot": None}) == "wrong"
    assert judge(CONTROL, answer(b=at(7))) == "wrong"
    assert judge(CONTROL, None) == "wrong"


def test_the_kind_is_scored_apart():
    assert kind_is_right(EXPECT, answer(b=at(99))) is True
    assert kind_is_right(EXPECT, answer(b=at(7), kind="value")) is False
    assert kind_is_right(EXPECT, None) is False
    assert kind_is_right(CONTROL, answer()) is None


def test_losses_are_compared_in_each_ranks_order_without_timings():
    bare = "rank 1 loss 2.5\nrank 0 loss 2.25\n{'train_runtime': 0.69, 'train_loss': 4.5}\nready\n"
    other = "warming up\nrank 0 loss 2.25rank 1 loss 2.5\n\n{'train_runtime': 0.71, 'train_loss': 4.5}\n"
    assert losses_equal(bare, other) is True
    assert losses_equal(bare, other.replace("2.25", "2.2500001")) is False
    assert losses_equal("nothing\n", "nothing\n") is None
    assert loss_values(bare) == {"rank 1": ["2.5"], "rank 0": ["2.25"], "": ["4.5"]}
    steps = "rank 0 step 1 loss 3.5\nrank 1 step 1 loss 4.5\nrank 0 step 2 loss 2.5\nrank 1 step 2 loss 1.5\n"
    lines = steps.splitlines()
    assert losses_equal(steps, "\n".join([lines[1], lines[3], lines[0], lines[2]])) is True
    # Two steps, or two ranks, that exchange their losses.
    assert losses_equal(steps, steps.replace("3.5", "x").replace("2.5", "3.5").replace("x", "2.5")) is False
    assert losses_equal(steps, steps.replace("3.5", "x").replace("4.5", "3.5").replace("x", "4.5")) is False
    assert losses_equal("loss 1.5\nloss 2.5\n", "loss 2.5\nloss 1.5\n") is False


def test_blanked_docstrings_keep_every_position():
    text = (
        'r"""Ünder\nthe hood: the fault is in f."""\n'
        "x = 'kept'\n\n\n"
        "def f():\n"
        "    'also a hint'\n"
        "    '''not a docstring'''\n"
        "    return 1\n\n\n"
        "class C:\n"
        '    """a\n'
        '    b"""; y = 2\n'
    )
    blank = blank_docstrings(text)
    assert "hint" not in blank and "fault" not in blank and "hood" not in blank
    assert "kept" in blank and "not a docstring" in blank
    assert [len(line) for line in blank.split("\n")] == [len(line) for line in text.split("\n")]
    places = [[(type(n).__name__, n.lineno) for n in ast.walk(ast.parse(t)) if isinstance(n, ast.stmt)]
              for t in (text, blank)]
    assert places[0] == places[1]


def test_every_shared_case_becomes_an_entry(shared_cases, tmp_path):
    entries = {e.name: e for e in read_entries(shared_cases, tmp_path / "venvs", tmp_path / "work")}
    assert sum(e.suite == "minitrain" for e in entries.values()) == 17
    assert sum(e.suite == "library" for e in entries.values()) == 8
    # A race differs from itself; every other case has itself as a control.
    assert "minitrain.staging_race.self_b" not in entries
    own = entries["minitrain.resume_rng.self_b"]
    assert own.expect["verdict"] == "identical" and own.faults == ("resume_rng", "resume_rng")
    assert "CKPT" not in own.run_a and own.run_a != own.run_b
    assert "DIR" not in entries["timm_rmsnorm.self_a"].run_b


@pytest.mark.parametrize("racing, compared, findings, wanted", [
    ("b", 9, [{}], "found"), ("b", 9, [], "missed"), ("", 9, [{}], "alarm"), ("", 9, [], "silent"), ("", 0, [], "blind")])  # fmt: skip
def test_a_run_held_against_itself(racing, compared, findings, wanted):
    result = {"racing": racing, "sides": {"a": None, "b": {"compared": compared, "reads": 9, "findings": findings}}}
    assert list(judged(result)) == [("a", "blind"), ("b", wanted)]


def test_operators_that_share_a_site_are_counted_by_execution_and_by_step():
    import coverage as bench_coverage

    def site(line, calls, activities, backward=None):
        return {"file": "m.py", "line": line, "callee": "f", "calls": calls, "activities": activities, "backward": backward or {}}

    # Two steps. The tracer's marks are no operators; a site that never computed has none to share.
    plan = {"boundaries": [site(1, 4, {"aten::mul": 4}), site(2, 2, {"aten::bmm": 6, "aten::view": 4, "opguard::checkpoint": 2}, {"aten::bmm": 10}),
                           site(3, 2, {"opguard::backward": 2}), site(4, 0, {}, {"aten::sum": 2})]}  # fmt: skip
    found = bench_coverage.sharing(plan)
    assert found["sites"] == 3
    assert found["execution"] == {"median": 5, "p95": 5, "worst": 5, "site": "m.py:2 f"}
    assert found["step"] == {"median": 2, "p95": 10, "worst": 10, "site": "m.py:2 f"}
    assert bench_coverage.sharing({"boundaries": []}) is None
    row = " | ".join(bench_coverage.sharing_cells({"name": "small", "sharing": found}))
    assert row == "small | 3 | 5 / 5 / 5 | `m.py:2 f` | 2 / 10 / 10 | `m.py:2 f`"


def test_versions_of_torch_are_judged_by_what_was_named():
    from torch_versions import answer, answers, bits, passes, with_earlier

    def program(kind="eager", line=7, file="forms.py", same=True):
        at = {"verdict": "diverged", "kind": "value", "phase": "forward", "file": file, "line": line, "why": ""}
        return {"program": "forms", "kind": kind, "right": [7], "readers": [20] if kind == "compiled" else [], "pivot": {"full": at},
                "bits": {"full": same, "default": True}, "events": {"full": {"written": 5, "lost": 0, "closed": True}}}  # fmt: skip

    def row(*programs, handlers=""):
        return {"handlers": handlers, "programs": list(programs)}

    assert answer(program(), "full") == "yes" and answer(program(file="other.py"), "full") == "diverged other.py:7"
    assert passes(row(program())) and not passes(row(program(line=8))) and not passes(row(program(same=False)))
    # The reader of a compiled function's result is enough where its graph holds no probes, and only there.
    behind = program("compiled", line=20)
    assert answer(behind, "full") == "its reader" and passes(row(behind, handlers="no handlers")) and not passes(row(behind))
    lossy = program()
    lossy["events"]["full"]["lost"] = 1
    assert not passes(row(lossy)) and not passes(row({"program": "forms", "kind": "eager", "error": "bare: exit code 1"}))
    assert answers(row(program(), program(line=8)), "eager") == "1 of 2 yes, 1 of 2 diverged forms.py:8"
    assert bits(row(program(same=False)), "eager") == "1 of 2: not forms (full)"
    assert [p["kind"] for p in with_earlier([behind], [program(), program("compiled", line=8)])] == ["eager", "compiled"]


def test_what_is_kept_of_an_answer_names_no_machine_and_fills_the_same_row():
    pivot = {"kind": "value", "operator": "m.add", "phase": "forward", "step": 0, "why": "w", "a": at(8, file="/home/me/case/model/rope.py"), "b": None, "more": "x" * 9}
    result = {"case": "c", "expected": EXPECT, "answer": {**answer(), "pivot": pivot, "command": ["/home/me/opguard"], "why": ""}, "exit": 1, "tool": "f00"}
    small = kept(result)
    assert "/home/me" not in str(small) and "tool" not in small and said(small) == said(result)
    assert explain(small) == explain(result) and expected(small) == expected(result)
    called = kept({**result, "answer": {**answer(), "pivot": {**pivot, "b": {**at(3), "operator_at": at(9)}}}})
    assert explain(called).endswith("the operator in it stands at model/rope.py:9")
    assert kept({**result, "answer": None})["answer"] is None
