"""What bench/wraps.py counts in a diff, and how it says it."""
import sys

from conftest import ROOT

sys.path.insert(0, str(ROOT / "bench"))
import wraps  # noqa: E402

DIFF = """--- a/m.py
+++ b/m.py
@@ -1,4 +1,5 @@
+from opguard import og as og_1  # opguard: probes, isort: skip
-x = relu(y + z)
+x = og_1("m.relu:aaaa", relu)(og_1("m.add:bbbb", y) + z)
-s = f"{x}"
-t += x
+s = f"{og_1('m.format:cccc', x)}"
+t = og_1.name("m.iadd:dddd", t).iadd(x)
 og("m.no:eeee", it)(1)
"""
PLAN = {"boundaries": [{"id": "m.relu:aaaa", "form": "call"}, {"id": "m.add:bbbb", "form": "binary"},
                       {"id": "m.format:cccc", "form": "format"}, {"id": "m.iadd:dddd", "form": "augment"}]}  # fmt: skip
COUNTS = {"probes": 4, "operands": 3, "lines": 3}


def test_a_callee_is_no_wrapped_operand_and_the_import_no_changed_line():
    assert wraps.counted(DIFF, PLAN) == COUNTS


def test_a_program_that_did_not_run_is_in_no_sum():
    row = {"name": "net", "packages": ["timm"], "error": None, "before": {**COUNTS, "probes": 8}, "after": COUNTS,
           "ratios": {key: [1.5, 1.0, 1.2] for key in ("before/bare", "after/bare", "after/before")}}  # fmt: skip
    text = wraps.markdown({"commit": "9e783f3", "python": "3.11", "machine": "2 cores",
                           "rows": [row, {"name": "broken", "packages": [], "error": "exit code 2"}]})  # fmt: skip
    for part in ("| net (timm) | 8 -> 4 | 3 -> 3 | 3 -> 3 |", "| broken | did not run |", "probes 8 -> 4 (-50.0 %)", "1.200 (1.000 to 1.500)"):
        assert part in text, text
