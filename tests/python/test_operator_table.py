"""The table of operators: its form, what C++ and Python answer of it, and what documents say of it."""

import json
import os
import re
import subprocess
import sys

import pytest
from conftest import ROOT, build_dir

sys.path.insert(0, str(ROOT / "src" / "operators"))
import generate  # noqa: E402

SOURCE = ROOT / "src" / "operators" / "operators.txt"
TABLE = dict(generate.rows(SOURCE.read_text()))


def has(row, column, *values):
    return bool(set(row.get(column, ())) & set(values))


def test_cpp_and_python_give_the_same_answers():
    answers = build_dir() / "tests" / "operators" / "opguard_operator_answers"
    words = [
        "",
        "sample_actions",
        "downsample",
        "gelu",
        "torch.cat",
        "np.random.power",
        "random.gauss",
        "add_",
        "x.copy_",
        "FrozenBatchNorm2d",
    ]
    asked = [*TABLE, *(name + "_" for name in TABLE), *words]
    told = subprocess.run(
        [answers], input="\n".join(asked) + "\n", capture_output=True, text=True, check=True
    ).stdout.splitlines()
    found = {name: set(line[len(name) :].split()) for name, line in zip(asked, told, strict=True)}
    assert {"cat": {"moves_bytes"}, "np.random.power": {"draws_random", "may_draw"}}.items() <= found.items()
    code = """if True:
        import json, sys
        from opguard import operators
        from opguard.operator_table import TABLE
        answers = {n: [operators.leaves_garbage(n), operators.only_looks(n)] for n in json.load(sys.stdin)}
        print(json.dumps([TABLE, answers]))
    """
    env = {**os.environ, "PYTHONPATH": str(build_dir() / "python")}
    made, queries = json.loads(
        subprocess.run(
            [sys.executable, "-c", code], input=json.dumps(asked), capture_output=True, text=True, check=True, env=env
        ).stdout
    )
    assert made == {name: {column: list(values) for column, values in row.items()} for name, row in TABLE.items()}
    for name in TABLE:
        row = TABLE[name]
        expected = {
            "moves_bytes": has(row, "moves", "view", "either", "copy"),
            "leaves_garbage": has(row, "allocates", "garbage"),
            "may_leave_garbage": has(row, "allocates", "garbage", "resized"),
            "makes_room": "allocates" in row,
            "seeds_random": "seeds" in row,
            "draws_random": has(row, "draws", "torch", "numpy", "python"),
            "may_draw": has(row, "draws", "torch", "numpy", "python", "asked"),
            "updates_statistics": has(row, "uncounted", "statistics"),
            "converts_module": has(row, "uncounted", "module"),
            "replaces_parameters": has(row, "uncounted", "parameters"),
            "lists_parameters": "parameters" in row,
            "clips_gradients": has(row, "parameters", "clips"),
            "touches_no_element": has(row, "elements", "none"),
            "reads_form_alone": has(row, "elements", "form"),
            "hands_array": has(row, "elements", "array"),
            "overwrites:self": has(row, "overwrites", "self"),
            "overwrites:arg0": has(row, "overwrites", "first"),
            "overwrites:arg0[0]": has(row, "overwrites", "list"),
        }
        said = {word for word in found[name] if not word.startswith("python:")}
        assert said == {question for question, answer in expected.items() if answer}, name
    for name in asked:
        looks = {"touches_no_element", "may_leave_garbage"} & found[name] or "view" in TABLE.get(name, {}).get(
            "moves", ()
        )
        assert queries[name] == ["leaves_garbage" in found[name], bool(looks)], name
        operator = [word[7:] for word in found[name] if word.startswith("python:")]
        if name in TABLE and "python" in TABLE[name]:
            assert operator == list(TABLE[name]["python"])


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a moves=view\nb mov=view\n", "2:3: error: no column 'mov'"),
        ("a moves=views\n", "1:3: error: moves is one of: view either copy"),
        ("b moves=view\na moves=view\n", "2:1: error: 'a' stands behind 'b'"),
        ("a moves=view\na moves=view\n", "2:1: error: 'a' stands behind 'a'"),
        ("a\n", "1:1: error: a row is a name and its properties"),
        ("a moves=view moves=copy\n", "1:14: error: 'moves' is given twice"),
        ("a moves=view,copy\n", "1:3: error: moves has one value"),
        ("a draws=none,torch\n", "1:3: error: draws has one value"),
    ],
)
def test_a_bad_row_is_told_with_its_place_and_nothing_is_written(text, fault, tmp_path):
    table = tmp_path / "operators.txt"
    table.write_text(text)
    made = [tmp_path / "out.inc", tmp_path / "out.py"]
    result = subprocess.run([sys.executable, generate.__file__, table, *made], capture_output=True, text=True)
    assert result.returncode != 0 and f"{table}:{fault}" in result.stderr and not any(path.exists() for path in made)


def test_the_head_of_the_table_defines_every_column_and_value():
    head = SOURCE.read_text().split("\n\n")[0]
    parts = dict(part.split(" ", 1) for part in re.split(r"\n# (?=[a-z])", head)[1:])
    for column, (_, values) in generate.COLUMNS.items():
        part = parts[column]
        assert "Not so" in part or "none" in values.split()
        if column not in ("python", "seeds"):
            assert [value for value in values.split() if f"\n#   {value} " not in part] == [], column
    assert all(len(line) <= 120 for line in SOURCE.read_text().splitlines())


def test_the_documents_list_of_movers_is_the_tables():
    text = (ROOT / "docs" / "design" / "runtime.md").read_text()
    listed = re.search(r"## What `trusted` skips\n.*?:\n`([^`]*)`", text, re.S)[1]
    assert listed.split() == [name for name, row in TABLE.items() if "moves" in row and name != "getitem"]
