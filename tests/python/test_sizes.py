"""The choice of the tests that every commit runs."""
import pytest

import sizes
from sizes import chosen, read_costs


def test_cheap_and_unknown_tests_always_run():
    names = ["test_a.py::new", "test_a.py::cheap"]
    assert chosen(names, {"test_a.py::cheap": sizes.CHEAP}, budget=0) == set(names)


def test_dear_cases_are_taken_breadth_first_within_the_budget():
    names = ["t.py::f[1]", "t.py::f[2]", "t.py::g[1]", "t.py::g[2]", "t.py::h"]
    costs = dict.fromkeys(names, 8.0)
    assert chosen(names, costs, budget=20) == {"t.py::f[1]", "t.py::g[1]"}
    assert chosen(names, costs, budget=32) == {"t.py::f[1]", "t.py::g[1]", "t.py::h", "t.py::f[2]"}
    # A dear one that does not fit leaves room to a later one that does.
    assert chosen(names, {**costs, "t.py::g[1]": 30.0}, budget=20) == {"t.py::f[1]", "t.py::h"}


def test_no_file_goes_unseen():
    costs = {"a.py::f": 500.0, "b.py::f": 500.0, "b.py::g": 400.0}
    assert chosen(list(costs), costs, budget=20) == {"a.py::f", "b.py::g"}


def test_the_dearest_file_comes_first_and_keeps_its_order():
    named = [(1, "a.py::f"), (2, "a.py::g"), (3, "b.py::f"), (4, "b.py::new"), (5, "c.py::f")]
    assert sizes.dearest_file_first(named, {"a.py::g": 2.0, "b.py::f": 5.0}) == [3, 4, 1, 2, 5]


def test_a_bad_line_is_named(tmp_path):
    (tmp_path / "costs.tsv").write_text("# seconds, test\n7.5\ta.py::f\n7.5 a.py::g\n")
    with pytest.raises(ValueError, match=r"costs.tsv:3: expected SECONDS<tab>TEST"):
        read_costs(tmp_path / "costs.tsv")


def test_what_was_not_measured_keeps_its_cost_where_asked(tmp_path, monkeypatch):
    kept, measured = tmp_path / "costs.tsv", tmp_path / "measured"
    measured.write_text("9.0\tt.py::now\n0.5\tt.py::cheaper\n2.0\tt.py::now_too\n4.5\tt.py::now_too\n")
    monkeypatch.setattr(sizes, "COSTS", kept)
    for words, others in ([], {}), (["--keep"], {"t.py::left_out": 7.5}):
        kept.write_text("7.5\tt.py::left_out\n8.0\tt.py::cheaper\n")
        monkeypatch.setattr("sys.argv", ["sizes.py", str(measured), *words])
        sizes.main()
        assert read_costs(kept) == {"t.py::now": 9.0, "t.py::now_too": 4.5, **others}
