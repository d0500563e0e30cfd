"""Small logs made to cost much (bench/bombs.py): every reader bounds its time and memory by the size of the file."""

import json
import subprocess
import sys

import pytest

from conftest import ROOT, binary, build_dir, clean_environment

pytest.importorskip("pyarrow")
sys.path.insert(0, str(ROOT / "bench"))
import bombs  # noqa: E402


def test_every_reader_of_every_bomb(tmp_path):
    figures = tmp_path / "bombs.json"
    ran = subprocess.run([sys.executable, ROOT / "bench/bombs.py", "--build", build_dir(), "--bytes", "60000", "--seconds", "20", "--json", figures],
                         capture_output=True, text=True)  # fmt: skip
    assert ran.returncode == 0, "\n".join(line for line in ran.stdout.splitlines() if not line.startswith("ok")) + ran.stderr
    read = json.loads(figures.read_text())["results"]
    assert {(r["bomb"], r["reader"]) for r in read} == {(b, r) for b in bombs.BOMBS for r in bombs.READERS}
    # All but one are whole logs, and are read to their end; the one is said to be damaged.
    assert {(r["bomb"], r["status"]) for r in read if r["reader"] == "dump" and r["status"] != 0} == {("dims_refused", 2)}
    assert max(r["written"] for r in read) < 400e6


def dumped(tmp_path, data, *options):
    path = tmp_path / "a.log"
    path.write_bytes(data)
    ran = subprocess.run([binary("opguard"), "dump", *options, path], capture_output=True, text=True, env=clean_environment())
    return ran.stdout, ran.stderr


def of_shape(*dims):
    slots = [bombs.slot(1)]
    return bombs.log_bytes([bombs.strings("a.add:k"), bombs.metas(bombs.meta(*dims)), bombs.events(bombs.event(slots=slots))], 1, 1)


def test_a_long_shape_is_shown_in_part(tmp_path):
    text, _ = dumped(tmp_path, of_shape(*range(1, 17)))
    assert "float32[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16] " in text
    text, _ = dumped(tmp_path, of_shape(*range(1, 70)))
    assert "float32[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, and 53 more] " in text


@pytest.mark.parametrize("dims, known", [(64, True), (65, False)])
def test_a_shape_in_a_table(tmp_path, dims, known):
    text, _ = dumped(tmp_path, of_shape(*[1] * dims), "--format", "json")
    row = json.loads(text.splitlines()[1])
    assert row["dtype"] == "float32" and row["shape"] == ([1] * dims if known else None)


@pytest.mark.parametrize("dims, refused", [(1024, False), (1025, True)])
def test_a_shape_of_more_dimensions_than_a_log_holds(tmp_path, dims, refused):
    text, _ = dumped(tmp_path, of_shape(*[1] * dims))
    assert ("the chunk of metas is refused: a shape of more than 1024 dimensions" in text) == refused
    assert ("pid 1, 1 events, 1 records" in text) != refused


def test_long_texts_that_differ_stay_different(tmp_path):
    texts = ["x" * 5000 + end for end in "ab"] + ["y" * 1100]
    slots = [bombs.slot(i, name=i) for i in range(3)]
    log = bombs.log_bytes([bombs.strings(*texts), bombs.metas(bombs.meta(4)), bombs.events(bombs.event(slots=slots))], 1, 3)
    text, _ = dumped(tmp_path, log, "--format", "json")
    names = [json.loads(line)["slot_name"] for line in text.splitlines()[1:]]
    assert len(set(names)) == 3 and names[2] == texts[2]
    assert all(name.startswith("x" * 1024 + "...#") and len(name) == 1024 + 20 for name in names[:2])
