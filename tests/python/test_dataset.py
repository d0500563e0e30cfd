"""Runs as a folder of Parquet files (`opguard export --dataset`), and the questions of docs/formats/reading.md asked of them."""

import json
import re
import sys

import pytest

from conftest import ROOT
from log_rows import PROGRAM, compare, expected_records, folder, second  # noqa: F401  fixtures
from runtime_log import run_program

parquet = pytest.importorskip("pyarrow.parquet")
dataset = pytest.importorskip("pyarrow.dataset")
pytest.importorskip("torch")

# In run b the second step of rank 0 scales what the model gives. The last layer is not trained in either.
SCALED = ('og("train.mul:ffff", y) * y', 'og("train.mul:ffff", torch.mul)(y, SCALE if step == 1 else 1.0)')
FROZEN = ("model.parameters(), lr=0.1", "[{'params': model[0].parameters()}, {'params': model[2].parameters(), 'lr': 0.0}], lr=0.1")


@pytest.fixture(scope="module")
def runs(tmp_path_factory, opguard):
    """The folder of a dataset `runs` of two runs."""
    out = tmp_path_factory.mktemp("dataset")
    for name, scale in (("a", "1.0"), ("b", "2.0")):
        for rank in (0, 1):
            source = PROGRAM.replace(*SCALED).replace("SCALE", scale if rank == 0 else "1.0")
            source = source.replace(*FROZEN)
            run_program(source, out / name / "log", env={"RANK": str(rank), "WORLD_SIZE": "2"})
        done = opguard("export", out / name / "log", "--dataset", out / "runs", "--python", sys.executable)
        assert done.returncode == 0 and " records of 2 logs in " in done.stdout, done.stdout + done.stderr
    return out


def test_every_row_is_in_its_folder(folder, second, opguard, tmp_path):
    done = opguard("export", folder, "--dataset", tmp_path / "runs", "--run", "one", "--python", sys.executable)
    assert done.returncode == 0, done.stderr
    (run,) = (tmp_path / "runs").iterdir()
    assert run.name == "run=one" and [p["rank"] for p in json.loads((run / "_opguard.json").read_text())] == [0, 1]
    wanted = expected_records(second)
    table = dataset.dataset(run, partitioning="hive").to_table().sort_by([("process", "ascending"), ("event", "ascending")])
    assert table.num_rows == len(wanted)
    assert {(r, s) for r, s in zip(table["rank"].to_pylist(), table["step"].to_pylist())} == {(row["rank"], row["step"]) for row in wanted}
    names = [name for name in wanted[0] if name not in ("rank", "step")]
    compare(names, [{k: row[k] for k in names} for row in wanted], lambda name: [tuple(v) if isinstance(v, list) else v for v in table[name].to_pylist()])


@pytest.mark.parametrize("library", ["duckdb", "polars"])
def test_the_documents_questions(runs, library, monkeypatch):
    pytest.importorskip(library)
    text = (ROOT / "docs" / "formats" / "reading.md").read_text()
    (block,) = [b for b in re.findall(r"```python\n(.*?)```", text, re.S) if "import " + library in b]
    monkeypatch.chdir(runs)
    names = {}
    exec(block, names)  # noqa: S102  the document's own
    found = {name: [tuple(row) for row in (names[name].fetchall() if library == "duckdb" else names[name].rows())] for name in ("first", "apart", "frozen")}
    ((rank, step, _, boundary, slot),) = found["first"]
    assert (rank, step, boundary, slot) == (0, 1, "train.mul:ffff", "out0")
    assert {(step, rank) for step, rank, _ in found["apart"]} == {(1, 0), (2, 0)}
    assert found["frozen"] == [("param:2.bias",), ("param:2.weight",)]


def test_a_run_is_added_once(runs, opguard):
    before = sorted(p.relative_to(runs) for p in (runs / "runs").rglob("*"))
    again = opguard("export", runs / "a" / "log", "--dataset", runs / "runs", "--python", sys.executable)
    assert again.returncode == 2 and "run=a: the dataset has this run already" in again.stderr
    assert sorted(p.relative_to(runs) for p in (runs / "runs").rglob("*")) == before


def test_what_is_no_log_leaves_no_run(opguard, tmp_path):
    (tmp_path / "empty").mkdir()
    for path, said in ((tmp_path / "empty", "holds no log"), (tmp_path / "none", "no such file or folder")):
        done = opguard("export", path, "--dataset", tmp_path / "runs", "--python", sys.executable)
        assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr
        assert not (tmp_path / "runs").exists() or not list((tmp_path / "runs").iterdir())
    done = opguard("export", tmp_path)
    assert done.returncode == 2 and "--dataset" in done.stderr
