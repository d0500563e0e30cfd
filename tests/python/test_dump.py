"""`opguard dump` and `opguard export` of logs: the rows of opguard.read_log's tables, by the same names."""

import csv
import io
import json
import shutil
import subprocess
import sys

import pytest

from log_rows import both, expected, expected_records, folder, second  # noqa: F401  fixtures

pytest.importorskip("torch")


def as_text(row):
    """A row as JSON lines show it."""
    hexadecimal = ("h", "m", "flat", "digest", "pattern")
    row = {name: "%016x" % v if name in hexadecimal and v is not None else v for name, v in row.items()}
    return {name: list(v) if isinstance(v, tuple) else v for name, v in row.items()}


def dump(opguard, *args):
    done = opguard("dump", *args)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout


@both
def test_dump_json_and_csv(opguard, folder, second, rows):
    options = [folder, *(["--events"] if rows == "events" else [])]
    wanted = [as_text(row) for row in expected(second, rows)]
    assert [json.loads(line) for line in dump(opguard, *options, "--format", "json").splitlines()[1:]] == wanted
    word = {None: "", True: "true", False: "false"}
    cell = lambda v: word[v] if v is None or isinstance(v, bool) else str(v)
    found = list(csv.DictReader(io.StringIO(dump(opguard, *options, "--format", "csv"), newline="")))
    assert found == [{name: cell(v) for name, v in row.items()} for row in wanted]


def test_json_says_first_what_printed_it_and_of_what(opguard, folder, second, tmp_path):
    version = opguard("--version").stdout.split()[1]
    for path in (folder, second[0].path):
        first = json.loads(dump(opguard, path, "--format", "json", "--limit", "1").splitlines()[0])
        assert first["opguard"]["version"] == version and first["schema"] == 1 and first["date"].endswith("Z")
        assert first["command"] == f"opguard dump {path} --format json --limit 1" and first["run"]["revision"] == ""
        assert first["run"]["started"].endswith("Z")
    copy = tmp_path / "of_a_revision"
    shutil.copytree(folder, copy)
    (copy / "run.json").write_text(json.dumps({"opguard_run": 1, "tree": "/t", "home": "/h", "repository": "/h", "revision": "v1",
                                               "commit": "9488786f21ab", "changed": False, "remote": "", "command": "python x.py"}))
    run = json.loads(dump(opguard, copy, "--format", "json").splitlines()[0])["run"]
    assert (run["revision"], run["commit"], run["command"]) == ("v1", "9488786f21ab", "python x.py")


def test_dump_selects(opguard, folder, second):
    wanted = [as_text(row) for row in expected_records(second)]

    def check(condition, *options):
        lines = dump(opguard, folder, "--format", "json", *options).splitlines()[1:]
        chosen = [row for row in wanted if condition(row)]
        assert 0 < len(chosen) < len(wanted) and [json.loads(line) for line in lines] == chosen

    check(lambda r: r["boundary"] == "train.mul:ffff", "--boundary", "train.mul:ffff")
    check(lambda r: r["boundary"][:7] in ("train.m", "train.f"), "--boundary", "train.m*", "--boundary", "*full:????")
    check(lambda r: r["boundary"] == "train.mul:ffff" and r["step"] == 1, "--boundary", "train.mul:ffff,step=1")
    check(lambda r: r["step"] == 1, "--step", "1")
    check(lambda r: r["step"] in (1, 2) and r["rank"] == 0, "--step=1-2", "--rank", "0")
    check(lambda r: r["phase"] in ("backward", "optimizer"), "--phase", "backward", "--phase", "optimizer")
    check(lambda r: r in wanted[:9], "--limit", "9")
    text = dump(opguard, folder, "--rank", "1", "--boundary", "train.mul:ffff", "--limit", "2")
    lines = text.splitlines()
    assert lines[0] == f"{second[1].path}:" and lines[1].startswith("log rank 1 of 2") and "setting" not in text
    assert [line.split()[0] for line in lines if "train.mul:ffff" in line] == [str(e.index) for e in second[1].events if e.boundary == "train.mul:ffff"][:2]


def test_dump_of_a_damaged_log(opguard, second, tmp_path):
    path = tmp_path / "rank0.log"
    path.write_bytes(second[0].path.read_bytes()[:-30])
    done = opguard("dump", path, "--format", "json")
    assert done.returncode == 2 and done.stderr.startswith(f"opguard: warning: {path}: record ")
    done = opguard("dump", path)
    assert done.returncode == 2 and "damage: record " in done.stdout
    # What was saved is no whole log.
    done = opguard("dump", path, "--salvage")
    assert done.returncode == 1 and "damage: record " in done.stdout


def test_a_few_events_come_without_settings(opguard, second):
    lines = opguard("dump", second[0].path, "--limit", "2").stdout.splitlines()
    assert lines[0].startswith("log rank 0") and not [line for line in lines if line.startswith(("setting", "location"))]
    assert "setting " in opguard("dump", second[0].path).stdout


@pytest.mark.parametrize("options", [["--step", "one"], ["--step", "2-"], ["--step", "3-1"], ["--step", "-1"], ["--phase", "warmup"], ["--rank", "a"],
                                     ["--boundary", "train.mul:ffff,pase=backward"],
                                     ["--limit", "-1"], ["--format", "xml"], ["--events"]], ids=" ".join)  # fmt: skip
def test_dump_refuses(opguard, folder, options):
    done = opguard("dump", folder, *options)
    assert done.returncode == 2 and options[0].strip("-") in done.stderr and done.stdout == ""


def test_dump_selects_only_in_logs(opguard, tmp_path):
    (tmp_path / "plan.json").write_text('{"opguard_plan": 1}')
    done = opguard("dump", tmp_path / "plan.json", "--step", "1")
    assert done.returncode == 2 and "is no log" in done.stderr


@both
def test_export(opguard, folder, second, rows, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    out = tmp_path / "log.parquet"
    done = opguard("export", folder, "-o", out, "--python", sys.executable, *(["--events"] if rows == "events" else []), cwd=tmp_path)
    wanted = expected(second, rows)
    assert done.returncode == 0 and done.stdout == f"{out}: {len(wanted):,} {rows}\n", done.stderr
    assert parquet.read_table(out)["boundary"].to_pylist() == [row["boundary"] for row in wanted]


def test_export_without_pyarrow(opguard, folder, tmp_path):
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    done = opguard("export", folder, "-o", tmp_path / "x.parquet", "--python", bare / "bin" / "python")
    assert done.returncode == 2 and "pip install pyarrow" in done.stderr and len(done.stderr.splitlines()) == 1
    for path, words in ((tmp_path / "absent", "no such file"), (tmp_path, "holds no log")):
        done = opguard("export", path, "-o", tmp_path / "x.parquet", "--python", sys.executable)
        assert done.returncode == 2 and words in done.stderr and len(done.stderr.splitlines()) == 1
    done = opguard("export", folder, "-o", tmp_path / "x.parquet", "--python", tmp_path / "no-python")
    assert done.returncode == 2 and "no-python" in done.stderr
    assert not (tmp_path / "x.parquet").exists()


def test_dump_of_two_folders_shows_every_pair(opguard, folder):
    lines = dump(opguard, folder, folder).splitlines()
    pairs = [line.split() for line in lines if line.startswith("= ")]
    assert pairs and all(a == b for _, a, b, *_ in pairs)
    assert lines[-1] == f"pairs {len(pairs)}, unequal 0, certified {len(pairs)}"
    assert not [line for line in lines if line[:2] in ("< ", "> ")]
