"""bench/figures.py, said.py and marks.py: tables of documents from what the programs of bench/ keep."""
import json
import re
import subprocess
import sys

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "bench"))
import coverage
import figures
import marks
import results
import said

PAGES = [ROOT / command[1] for _, command in results.WRITERS if command[0] == "bench/figures.py"]


def test_only_what_lies_between_the_marks_is_written(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- a -->\nold\n<!-- /a -->\nafter\n<!-- b -->\n<!-- /b -->\n")
    marks.put(page, "a", marks.table(("x", "y"), [["1", "2"]]))
    assert page.read_text() == "before\n<!-- a -->\n| x | y |\n|---|---|\n| 1 | 2 |\n<!-- /a -->\nafter\n<!-- b -->\n<!-- /b -->\n"


@pytest.mark.parametrize("path", sorted((ROOT / "bench" / "results").glob("*.json")), ids=lambda path: path.name)
def test_what_is_kept_names_no_machine(path):
    assert re.findall(r"(?<![\w.-])/(?:work|tmp|root|home)/\S*", path.read_text()) == []


def test_what_is_kept_takes_the_place_of_what_was_written_down(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "ROOT", tmp_path)
    row = {"last": "2 of 2", "measured": {}, "json": "environments.json", "say": "environments"}
    assert figures.cell(row, "last") == "2 of 2"
    made = {"python": "3.11", "exit_code": 1, "pivot": "rope.py:7", "losses_equal": True}
    (tmp_path / "environments.json").write_text(json.dumps([made, {**made, "losses_equal": False}]))
    assert figures.cell(row, "last") == "1 of 2"


def test_a_test_that_was_not_run_keeps_what_was_written_down(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "ROOT", tmp_path)
    (tmp_path / "torture.json").write_text(json.dumps([{"test": "read", "bad": 0, "text": "seconds 2"}]))
    row = {"last": "0 of 1,000", "measured": {}, "json": "torture.json"}
    assert figures.cell({**row, "say": "torture kills"}, "last") == "0 of 1,000"
    assert figures.cell({**row, "say": "torture read"}, "last") == "seconds 2: 0 bad"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_a_row_is_made_from_results_or_says_when_it_was_measured(page):
    found = json.loads(page.read_text())
    for row in found["rows"]:
        assert set(found["columns"]) - {found["said"]} <= set(row)
        kept = figures.kept(row)
        if "json" in row:
            assert hasattr(said, row["say"].split()[0]), row
        if not kept:
            assert row[found["said"]] and ("measured" in row or page.name == "gpu-page.json"), row
        else:
            assert "measured" not in row, row


def test_of_torture_the_words_and_the_count_of_what_was_bad():
    found = [{"test": "kills", "bad": 0, "text": "kills 10, events 3455"}, {"test": "disks", "skipped": "no mount"}, {"test": "cuts", "bad": 2, "text": "cuts 7 "}]
    assert said.torture(found, "kills", "cuts") == "kills 10, events 3455: 0 bad; cuts 7: 2 bad"
    assert said.torture(found, "disks") == "disks skipped: no mount"


def test_programs_not_measured_this_time_stay(tmp_path):
    file = tmp_path / "coverage.json"
    file.write_text(json.dumps({"versions": "old", "rows": [{"name": "vit", "plan": 1, "measured": {}}, {"name": "llama", "plan": 2}]}))
    found = coverage.kept(file, "new", [{"name": "vit", "sharing": 3}])
    assert found["versions"] == "new"
    assert found["rows"] == [{"name": "llama", "plan": 2}, {"name": "vit", "plan": 1, "sharing": 3}]


def test_make_results_changes_nothing():
    before = {document: (ROOT / document).read_text() for document, _ in results.WRITERS}
    times = {document: (ROOT / document).stat().st_mtime_ns for document in before}
    done = subprocess.run([sys.executable, ROOT / "bench" / "results.py"], capture_output=True, text=True)
    after = {document: (ROOT / document).read_text() for document in before}
    for document, text in before.items():
        if after[document] != text:
            (ROOT / document).write_text(text)
    assert (done.returncode, done.stdout) == (0, "") and after == before
    # opguard holds its pages: it would be linked again, while other tests run it.
    assert {document: (ROOT / document).stat().st_mtime_ns for document in before} == times
