"""`opguard export` of logs that were cut, flipped, emptied: one clear error, or what can be read with its loss told. Never a traceback, never half a file."""
import json
import random
import sys

import pytest

from runtime_log import record

pytest.importorskip("torch")
parquet = pytest.importorskip("pyarrow.parquet")

TRAIN = """
import torch
torch.manual_seed(0)
w = torch.nn.Parameter(torch.randn(4, 4))
for i in range(30):
    og("train.backward", (og("model.product", torch.matmul)(torch.randn(2, 4), w) ** 2).sum().backward)()
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return record(TRAIN, tmp_path_factory.mktemp("log")).path.read_bytes()


@pytest.fixture
def exported(opguard, tmp_path):
    """exported(bytes, rows) -> (exit code, lines of what it said, the table or None); of a log of these bytes."""

    def export(content, *rows):
        log, out = tmp_path / "rank0-1-1.log", tmp_path / "out.parquet"
        log.write_bytes(content)
        out.unlink(missing_ok=True)
        done = opguard("export", log, "-o", out, "--python", sys.executable, *rows)
        assert "Traceback" not in done.stderr and not list(tmp_path.glob("*.incomplete"))
        table = parquet.read_table(out) if out.exists() else None
        assert (done.returncode == 0) == (table is not None), done.stderr
        return done.returncode, done.stderr.splitlines(), table

    return export


def about(table):
    (process,) = json.loads(table.schema.metadata[b"opguard"])
    return process


@pytest.mark.parametrize("rows", [[], ["--events"]])
def test_a_whole_log_says_nothing(exported, whole, rows):
    code, said, table = exported(whole, *rows)
    assert (code, said) == (0, []) and about(table)["damage"] == "" and about(table)["closed"]


def test_what_a_cut_leaves_is_exported_and_told(exported, whole):
    code, _, full = exported(whole)
    assert code == 0
    kept = set()
    for share in (0.999, 0.9, 0.6, 0.3):
        code, said, table = exported(whole[: int(len(whole) * share)])
        assert code == 0 and table.equals(full.slice(0, len(table))), share
        # One line, of where it ends; the file says the same to whoever reads it.
        assert len(said) == 1 and said[0].startswith("opguard: warning: ") and "(byte " in said[0], said
        assert about(table)["damage"] in said[0] and not about(table)["closed"]
        kept.add(len(table))
    assert max(kept) <= len(full) and min(kept) < len(full)


def test_flipped_bits_are_told_and_invent_nothing(exported, whole):
    _, _, full = exported(whole)
    rows = {json.dumps(row, default=str) for row in full.to_pylist()}
    draw = random.Random(5)
    refused = told = 0
    for _ in range(12):
        at = draw.randrange(len(whole))
        code, said, table = exported(whole[:at] + bytes([whole[at] ^ 1 << draw.randrange(8)]) + whole[at + 1 :])
        assert len(said) == 1, (at, said)
        if code == 0:
            told += 1
            assert said[0].startswith("opguard: warning: ") and about(table)["damage"]
            assert {json.dumps(row, default=str) for row in table.to_pylist()} <= rows, at
        else:
            refused += 1
            assert code == 2 and said[0].startswith("opguard: error: "), at
    assert told + refused == 12 and told > 0


@pytest.mark.parametrize("content", [b"\0" * 100, b"no log at all\n" * 50])
def test_what_is_no_log_is_one_error(exported, content):
    code, said, table = exported(content)
    assert code == 2 and table is None
    assert len(said) == 1 and said[0].startswith("opguard: error: ") and "rank0-1-1.log" in said[0], said


def test_a_header_cut_in_two_is_one_error_or_an_empty_table(exported, whole):
    # A process that was killed before the first chunk leaves as much, or nothing.
    for size in (0, 1, 7, 8, 20, 40):
        code, said, table = exported(whole[:size])
        assert len(said) == 1 and code in (0, 2), (size, said)
        assert table is None or (len(table) == 0 and about(table)["damage"] and not about(table)["closed"])


def test_one_damaged_rank_of_two(opguard, tmp_path, whole):
    folder, out = tmp_path / "log", tmp_path / "out.parquet"
    folder.mkdir()
    (folder / "rank0-1-1.log").write_bytes(whole)
    (folder / "rank1-1-2.log").write_bytes(whole[: len(whole) // 2])
    done = opguard("export", folder, "-o", out, "--python", sys.executable)
    assert done.returncode == 0 and len(done.stderr.splitlines()) == 1 and "rank1-1-2.log" in done.stderr
    damage = [p["damage"] for p in json.loads(parquet.read_table(out).schema.metadata[b"opguard"])]
    assert sorted(map(bool, damage)) == [False, True]


def test_an_output_that_cannot_be_written_is_one_error(opguard, tmp_path, whole):
    (tmp_path / "rank0-1-1.log").write_bytes(whole)
    done = opguard("export", tmp_path / "rank0-1-1.log", "-o", tmp_path / "missing" / "out.parquet", "--python", sys.executable)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and done.stderr.startswith("opguard: error: ")
