"""bench/rooms.py: floors, arrows, circles and comments of a tree made for it."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import rooms

TREE = {
    "src/cli/main.cc": '#include "align/judge.h"\n#include "align/judge.h"\n// Why.\n\nint main() {}  // not alone\n',
    "src/align/judge.h": '#include "record/event.h"\n',
    "src/align/judge.cc": '#include "align/judge.h"\n',
    "src/record/event.h": "// what a record is\nstruct Event;\n",
    "python/opguard/a.py": '"""A module."""\nfrom opguard import b\n\n\ndef f():\n    """Two\n\n    lines."""\n    return b  # not alone\n',
    "python/opguard/b.py": "# one\nX = '# none'\n",
}


def measured(tmp_path, more=None):
    tree = {**TREE, **(more or {})}
    for file, text in tree.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    return rooms.measure(tmp_path, sorted(tree))


def test_a_room_stands_above_those_it_uses(tmp_path):
    found = measured(tmp_path)
    assert {name: r["floor"] for name, r in found["rooms"].items()} == {"cli": 3, "align": 2, "python": 1, "record": 1}
    assert (found["floors"], found["arrows"], found["upward"], found["circles"]) == (3, 2, [], [])
    assert found["rooms"]["cli"]["uses"] == {"align": 1}


def test_the_thinnest_arrow_of_a_circle_is_upward(tmp_path):
    found = measured(tmp_path, {
        "src/record/dump.cc": '#include "align/judge.h"\n',
        "src/align/more.cc": '#include "record/event.h"\n',
    })  # fmt: skip
    assert found["upward"] == ["record -> align"]
    assert found["rooms"]["align"]["floor"] == 2 and found["circles"] == []


def test_files_that_import_each_other_are_a_circle_unless_within_a_function(tmp_path):
    late = "def f():\n    from opguard import a\n    return a\n"
    assert measured(tmp_path, {"python/opguard/b.py": late})["circles"] == []
    at_once = "from opguard.a import f\n"
    assert measured(tmp_path, {"python/opguard/b.py": at_once})["circles"] == [["python/opguard/a.py", "python/opguard/b.py"]]


def test_comments_are_whole_lines_and_doc_strings(tmp_path):
    found = measured(tmp_path)["rooms"]
    assert (found["cli"]["comments"], found["cli"]["lines"]) == (1, 4)
    assert (found["record"]["comments"], found["record"]["lines"]) == (1, 2)
    assert (found["python"]["comments"], found["python"]["lines"]) == (4, 8)
