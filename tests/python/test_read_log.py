"""opguard.read_log against the second reader (runtime_log.py), column by column."""

import gc
import json
import subprocess
import sys
import warnings
import weakref

import pytest

from conftest import ROOT, build_dir, clean_environment
from log_rows import both, compare, expected, expected_records, folder, second  # noqa: F401  fixtures
from runtime_log import record, run_program

numpy = pytest.importorskip("numpy")
pytest.importorskip("torch")


@pytest.fixture(scope="module")
def package():
    sys.path.insert(0, str(build_dir() / "python"))
    try:
        import opguard
    finally:
        sys.path.pop(0)
    return opguard


@both
def test_numpy(package, folder, second, rows):
    table = getattr(package.read_log(folder), rows)
    wanted, arrays = expected(second, rows), table.to_numpy()
    assert len(table) == len(wanted) and tuple(arrays) == table.columns
    compare(arrays, wanted, lambda name: arrays[name].tolist())
    for name, array in arrays.items():
        missing = [row[name] is None for row in wanted]
        if array.dtype != object:
            assert isinstance(array, numpy.ma.MaskedArray) == any(missing), name
            assert not numpy.asarray(array).flags.writeable or isinstance(array, numpy.ma.MaskedArray)
    # What the program does is in the comparison.
    if rows == "records":
        for name in ("unreadable", "model_value", "parameter", "mask", "raised", "in_graph", "wants_gradient"):
            assert 0 < arrays[name].sum() < len(table), name
        assert arrays["h"].mask.sum() == arrays["unreadable"].sum()


def test_columns_can_be_chosen(package, folder):
    records = package.read_log(folder).records
    assert tuple(records.to_numpy(["m", "step"])) == ("m", "step")
    assert (records["step"] == records.to_numpy()["step"]).all()
    for choose in (records.to_numpy, records.__getitem__):
        with pytest.raises(KeyError, match="fingerprint"):
            choose(["fingerprint"] if choose == records.to_numpy else "fingerprint")


def test_arrays_outlive_the_log(package, folder):
    log = package.read_log(folder)
    alive = weakref.ref(log)
    step, want = log.records["step"], log.records["step"].tolist()
    del log
    gc.collect()
    assert alive() is None
    assert step.tolist() == want


def test_the_parts_cannot_be_made_by_hand(package, folder):
    table = package.read_log(folder).records._table
    for part in (table, table.array("step")[0]):
        with pytest.raises(TypeError):
            type(part)()
    with pytest.raises(TypeError):
        table.stream(3)
    with pytest.raises(KeyError):
        table.stream([None])


@both
def test_pandas(package, folder, second, rows):
    pandas = pytest.importorskip("pandas")
    frame, wanted = getattr(package.read_log(folder), rows).to_pandas(), expected(second, rows)
    compare(frame.columns, wanted, lambda name: [None if not isinstance(v, tuple) and pandas.isna(v) else v for v in frame[name].tolist()])
    assert frame["boundary"].dtype == "category" and frame["sequence"].dtype == "UInt32"
    if rows == "records":
        assert frame["h"].dtype == "UInt64", "as float64 the last bits would be gone"
        assert max(frame["h"].dropna()) > 1 << 63


@both
def test_arrow(package, folder, second, rows):
    pyarrow = pytest.importorskip("pyarrow")
    table, wanted = getattr(package.read_log(folder), rows), expected(second, rows)
    for arrow in (table.to_arrow(), pyarrow.table(table)):
        arrow.validate(full=True)
        compare(arrow.column_names, wanted, lambda name: [tuple(v) if isinstance(v, list) else v for v in arrow[name].to_pylist()])
    assert pyarrow.schema(table) == arrow.schema
    assert table.to_arrow(["rank", "boundary"]).column_names == ["rank", "boundary"]
    # A stream that is taken in part, or never, leaves nothing behind that is used again.
    reader = pyarrow.RecordBatchReader.from_stream(table)
    batch = reader.read_next_batch()
    del reader, table
    gc.collect()
    assert batch["boundary"].to_pylist() == [row["boundary"] for row in wanted]


@both
def test_parquet(package, folder, second, rows, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    getattr(package.read_log(folder), rows).to_parquet(tmp_path / "log.parquet")
    back, wanted = parquet.read_table(tmp_path / "log.parquet"), expected(second, rows)
    compare(back.column_names, wanted, lambda name: [tuple(v) if isinstance(v, list) else v for v in back[name].to_pylist()])
    about = json.loads(back.schema.metadata[b"opguard"])
    assert [p["rank"] for p in about] == [0, 1] and about[0]["closed"] and about[0]["settings"]["torch"]
    assert [p.name for p in tmp_path.iterdir()] == ["log.parquet"]
    with pytest.raises(OSError):
        package.read_log(folder).records.to_parquet(tmp_path / "absent" / "log.parquet")


def test_polars(package, folder, second):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(package.read_log(folder).records)
    compare(frame.columns, expected_records(second), lambda name: [tuple(v) if isinstance(v, list) else v for v in frame[name].to_list()])


def test_a_missing_library_is_named(folder):
    program = (
        "import sys; sys.path.insert(0, %r)\nimport opguard\n"
        "for name in ('numpy', 'pandas', 'pyarrow'): sys.modules[name] = None\n"
        "records = opguard.read_log(%r).records\n"
        "for method, name in (('to_numpy', 'numpy'), ('to_pandas', 'numpy'), ('to_arrow', 'pyarrow')):\n"
        "    try: getattr(records, method)()\n"
        "    except ImportError as e: assert method in str(e) and 'pip install ' + name in str(e), e\n"
        "    else: raise AssertionError(method)\n"
        "assert len(records) > 0 and 'boundary' in records.columns\n" % (str(build_dir() / "python"), str(folder))
    )
    done = subprocess.run([sys.executable, "-c", program], env=clean_environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_import_loads_nothing_of_it():
    program = "import sys; sys.path.insert(0, %r); import opguard; assert not {'opguard.logs', 'json', 'numpy'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", program % str(build_dir() / "python")], env=clean_environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_a_log_says_of_itself(package, folder, second):
    log = package.read_log(folder)
    assert [p.rank for p in log.processes] == [0, 1] and log.closed and log.lost == 0 and log.damage == ""
    with pytest.raises(AttributeError, match="2 processes"):
        log.rank
    single = package.read_log(second[1].path)
    assert (single.rank, single.world, single.pid, single.start_ns) == (1, 2, second[1].pid, second[1].start_ns)
    assert single.path == str(second[1].path) and single.settings == second[1].settings
    assert {b: (at.path, at.line, at.function) for b, at in single.locations.items()} == second[1].locations
    assert "rank 1 of 2" in repr(single) and "not closed" not in repr(single)
    (folder / "sites.json").write_text(json.dumps({"opguard_sites": 1, "sites": {"train.mul:ffff": {"file": "t.py", "line": 7, "text": "y * y"}}}))
    try:
        at = package.read_log(folder).locations["train.mul:ffff"]
        assert (at.file, at.line, at.text, at.column) == ("t.py", 7, "y * y", 0)
        (folder / "sites.json").write_text("{")
        with pytest.raises(ValueError, match="sites.json"):
            package.read_log(folder)
    finally:
        (folder / "sites.json").unlink()


def test_a_damaged_log_gives_what_was_read(package, second, tmp_path):
    whole = second[0].path.read_bytes()
    path = tmp_path / "rank0.log.incomplete"
    path.write_bytes(whole[: len(whole) - 30])
    with pytest.warns(UserWarning, match="rank0.log.incomplete: record .*byte") as caught:
        log = package.read_log(path)
    assert caught[0].filename == __file__
    assert not log.closed and "record" in log.damage and "not closed" in repr(log)
    table = log.records.to_numpy()
    wanted = expected_records(second)
    for name in ("h", "boundary", "start_ns"):
        assert table[name].tolist() == [row[name] for row in wanted[: len(log.records)]]
    # A log cut right after its header: tables without rows.
    path.write_bytes(whole[:16])
    with pytest.warns(UserWarning):
        empty = package.read_log(tmp_path)
    assert len(empty.records) == len(empty.events) == 0
    assert all(len(column) == 0 for column in empty.records.to_numpy().values())


def test_an_empty_table_everywhere(package, second, tmp_path):
    pyarrow, pandas = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
    (tmp_path / "rank0.log").write_bytes(second[0].path.read_bytes()[:16])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        records = package.read_log(tmp_path).records
    assert records.to_arrow().num_rows == 0 and records.to_arrow().column_names == list(records.columns)
    assert isinstance(records.to_pandas(), pandas.DataFrame) and pyarrow.schema(records)
    records.to_parquet(tmp_path / "empty.parquet")


def test_what_is_no_log_is_refused(package, tmp_path):
    (tmp_path / "notes.log").write_text("nothing recorded here")
    for path in (tmp_path / "notes.log", tmp_path):
        with pytest.raises(ValueError, match="notes.log: not an opguard log"):
            package.read_log(path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="holds no log"):
        package.read_log(tmp_path / "empty")
    with pytest.raises(FileNotFoundError):
        package.read_log(tmp_path / "absent.log")
    with pytest.raises(TypeError):
        package.read_log(None)


def test_bench_prints_its_figures(tmp_path):
    command = [sys.executable, ROOT / "bench" / "read_log.py", "--package", build_dir() / "python", "--records", "9000"]
    done = subprocess.run([*command, "--json", tmp_path / "f.json"], env=clean_environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1), done.stderr
    figures = json.loads((tmp_path / "f.json").read_text())
    (row,) = figures["rows"]
    assert row["records"] == 9000 <= row["records_made"] and row["read_s"] > 0 and row["file_bytes"] > 0 and row["numpy_s"] > 0


WHILE_RECORDING = """
import torch, opguard
og("complex", torch.abs)(torch.ones(3, dtype=torch.complex64))
og("eighths", torch.isnan)(torch.ones(3).to(torch.float8_e5m2).float())
print(len(opguard.read_log(EARLIER).events))
"""


def test_a_program_that_records_can_read_a_log(tmp_path):
    """A value without a DLPack code (a random state) once wrote before the table of number types."""
    earlier = tmp_path / "earlier"
    record("import torch\nog('one', torch.sin)(torch.ones(2))", earlier)
    said = run_program(WHILE_RECORDING.replace("EARLIER", repr(str(earlier))), tmp_path / "now").stdout
    assert int(said) >= 2
