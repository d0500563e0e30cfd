"""Logs in object storage: what is asked for is brought, from a server that speaks S3 and through fsspec; what is wrong there is told."""

import json
import os
import random
import re
import subprocess
import sys
import time

import pytest

import runtime_log
from conftest import build_dir, clean_environment
from object_servers import KEYS, s3_server

fs = pytest.importorskip("pyarrow.fs")
pytest.importorskip("moto")

SERVE = """
import json, sys
sys.path.insert(0, {package!r})
from opguard import bring_logs
bring_logs.PART_BYTES = 100_000
bring_logs.serve(json.loads(sys.argv[1]))
"""
FILES = {"rank0-1-2.log": 700_000, "rank0-1-2.steps": 20_000, "rank0-1-2.000000.segment": 350_001, "sites.json": 4_321, "empty.txt": 0, "model.pt": 99}


@pytest.fixture(scope="module")
def server():
    with s3_server() as running:
        yield running


@pytest.fixture
def there(tmp_path):
    """A folder of files as a run leaves them, of random bytes."""
    folder, chance = tmp_path / "there", random.Random(7)
    folder.mkdir()
    for name, size in FILES.items():
        (folder / name).write_bytes(chance.randbytes(size))
    return folder


@pytest.fixture
def helper():
    """helper({folder here: url}) -> its first answer, and what asks it"""
    started = []

    def begin(folders):
        words = [sys.executable, "-c", SERVE.format(package=str(build_dir() / "python")), json.dumps({str(k): v for k, v in folders.items()})]
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**clean_environment(), **KEYS})
        started.append(process)

        def ask(pieces):
            process.stdin.write(json.dumps(pieces) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        return json.loads(process.stdout.readline()), ask

    yield begin
    for process in started:
        process.stdin.close()
        assert process.wait(60) == 0
        process.stdout.close()


def url_of(kind, there, server, name):
    if kind == "s3":
        server.put(there, "bucket/" + name)
        return server.url("bucket/" + name)
    return ("file://" if kind == "file" else "local://") + str(there)


@pytest.mark.parametrize("kind", ["s3", "file", "fsspec"])
def test_pieces_are_brought(kind, there, server, helper, tmp_path):
    here = tmp_path / "here"
    here.mkdir()
    said, ask = helper({here: url_of(kind, there, server, "runs/a")})
    logs = {name: size for name, size in FILES.items() if name != "model.pt"}
    assert said == {"bytes": sum(logs.values())}
    assert {p.name: p.stat().st_size for p in here.iterdir()} == logs
    assert (here / "sites.json").read_bytes() == (there / "sites.json").read_bytes()
    assert not any((here / "rank0-1-2.log").read_bytes())

    log, steps, segment = (str(here / name) for name in list(FILES)[:3])
    assert ask([[steps, 0, 20], [log, 250_000, 300_000], [segment, 350_000, 1]]) == {"bytes": 300_021}
    wanted = bytearray(700_000)
    wanted[250_000:550_000] = (there / "rank0-1-2.log").read_bytes()[250_000:550_000]
    assert (here / "rank0-1-2.log").read_bytes() == wanted
    assert (here / "rank0-1-2.steps").read_bytes() == (there / "rank0-1-2.steps").read_bytes()[:20].ljust(20_000, b"\0")
    assert (here / "rank0-1-2.000000.segment").read_bytes()[-1:] == (there / "rank0-1-2.000000.segment").read_bytes()[-1:]

    assert ask([[log, 0, 700_000]]) == {"bytes": 700_000}
    assert (here / "rank0-1-2.log").read_bytes() == (there / "rank0-1-2.log").read_bytes()


def test_what_changes_there_is_told(there, server, helper, tmp_path):
    here = tmp_path / "here"
    here.mkdir()
    _, ask = helper({here: url_of("s3", there, server, "runs/changing")})
    (there / "rank0-1-2.log").write_bytes(b"short")
    server.put(there, "bucket/runs/changing")
    said = ask([[str(here / "rank0-1-2.log"), 0, 700_000]])
    assert "s3://bucket/runs/changing/rank0-1-2.log: " in said["error"], said
    # The helper goes on.
    assert ask([[str(here / "rank0-1-2.steps"), 0, 20_000]]) == {"bytes": 20_000}


@pytest.mark.parametrize(
    "url, words",
    [
        ("s3://nobody:has@bucket/runs/none{query}", "s3://bucket/runs/none: holds no log"),
        ("s3://no-such-bucket/runs{query}", "no-such-bucket"),
        ("nosuch://bucket/runs", "nosuch"),
    ],
)
def test_what_is_not_there_is_told(url, words, there, server, helper, tmp_path):
    url_of("s3", there, server, "runs/a")
    here = tmp_path / "here"
    here.mkdir()
    said, _ = helper({here: url.format(query="?" + server.url("x").partition("?")[2])})
    assert words in said["error"] and "\n" not in said["error"] and "has@" not in said["error"], said
    assert not list(here.iterdir())


def test_a_library_that_is_missing_is_named(tmp_path):
    script = "import sys; sys.modules['pyarrow'] = None\n" + SERVE.format(package=str(build_dir() / "python"))
    folders = json.dumps({str(tmp_path): "s3://bucket/a"})
    ran = subprocess.run([sys.executable, "-c", script, folders], input="", capture_output=True, text=True, env=clean_environment())
    assert "pip install pyarrow" in json.loads(ran.stdout)["error"], ran.stdout + ran.stderr
    assert os.listdir(tmp_path) == []


UPLOAD = """
import sys
sys.path.insert(0, {package!r})
from opguard import upload_logs
upload_logs.LOOK_S = 0.05
upload_logs.serve(*sys.argv[1:])
"""


class Upload:
    """The helper of `opguard run --upload`."""

    def __init__(self, here, url):
        words = [sys.executable, "-c", UPLOAD.format(package=str(build_dir() / "python")), str(here), url]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**clean_environment(), **KEYS})
        self.first = json.loads(self.process.stdout.readline())

    def end(self, asked="finish\n"):
        return json.loads(self.process.communicate(asked, timeout=300)[0])


@pytest.fixture
def written(tmp_path):
    """The folder of a run that goes on."""
    folder = tmp_path / "log"
    folder.mkdir()
    (folder / "rank0-1-2.log.incomplete").write_bytes(b"texts")
    (folder / "rank0-1-2.steps.incomplete").write_bytes(b"digests")
    (folder / "rank0-1-2.000000.segment.incomplete").write_bytes(b"grows")
    (folder / "sites.json").write_bytes(b"{}")
    return folder


def wait_until(holds, seconds=120):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def finish(folder):
    for path in folder.glob("*.incomplete"):
        path.rename(path.with_suffix(""))


@pytest.mark.parametrize("kind", ["s3", "file", "fsspec"])
def test_segments_go_as_they_are_whole_and_the_rest_at_the_end(kind, written, server, tmp_path):
    there = tmp_path / "there" / "run"
    if kind == "s3":
        server.filesystem().create_dir("uploads")
    upload = Upload(written, server.url("uploads/a") if kind == "s3" else ("file://" if kind == "file" else "local://") + str(there))
    assert upload.first == {"bytes": 0}

    def objects():
        if kind != "s3":
            return {p.name: p.read_bytes() for p in there.iterdir()} if there.exists() else {}
        filesystem = server.filesystem()
        found = filesystem.get_file_info(fs.FileSelector("uploads/a", allow_not_found=True))
        return {info.base_name: filesystem.open_input_stream(info.path).read() for info in found}

    large = random.Random(3).randbytes(9_000_000)  # in several parts
    (written / "rank0-1-2.000000.segment.incomplete").write_bytes(large)
    (written / "rank0-1-2.000000.segment.incomplete").rename(written / "rank0-1-2.000000.segment")
    wait_until(lambda: not (written / "rank0-1-2.000000.segment").exists())
    assert objects() == {"rank0-1-2.000000.segment": large}
    (written / "rank0-1-2.000001.segment.incomplete").write_bytes(b"the last")
    finish(written)
    assert upload.end() == {"bytes": 9_000_000 + 8 + 5 + 7 + 2, "files": 5}
    assert list(written.iterdir()) == []
    assert objects() == {
        "rank0-1-2.000000.segment": large,
        "rank0-1-2.000001.segment": b"the last",
        "rank0-1-2.log": b"texts",
        "rank0-1-2.steps": b"digests",
        "sites.json": b"{}",
    }
    # What is there is another run's from now on.
    assert "already holds logs" in Upload(written, upload.process.args[-1]).first["error"]


def test_what_cannot_be_moved_stays(written, tmp_path):
    """Nor does a log go before its segments."""
    there = tmp_path / "there"
    upload = Upload(written, "file://" + str(there))
    finish(written)
    (there / "rank0-1-2.000000.segment").mkdir()  # in its place
    said = upload.end()
    assert said["files"] == 4 and "rank0-1-2.000000.segment: " in said["error"], said
    assert sorted(p.name for p in written.iterdir()) == ["rank0-1-2.000000.segment", "rank0-1-2.log", "rank0-1-2.steps", "sites.json"]


def test_where_opguard_is_killed_the_program_is_uploaded_to_its_end(written, tmp_path):
    program = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    (written / "rank0-1-2.log.incomplete").rename(written / ("rank0-1-%d.log.incomplete" % program.pid))
    upload = Upload(written, "file://" + str(tmp_path / "there"))
    upload.process.stdin.close()
    upload.process.stdout.close()
    (written / "rank0-1-2.000000.segment.incomplete").rename(written / "rank0-1-2.000000.segment")
    wait_until(lambda: not (written / "rank0-1-2.000000.segment").exists())
    assert upload.process.poll() is None and (written / "sites.json").exists()
    program.communicate(b"\n")
    assert upload.process.wait(120) == 0
    assert list(written.iterdir()) == [] and len(list((tmp_path / "there").iterdir())) == 4


def test_a_store_that_cannot_be_written_to_is_told_at_once(written, server):
    assert "s3://no-such-bucket/a cannot be written to: " in Upload(written, server.url("no-such-bucket/a")).first["error"]
    assert len(list(written.iterdir())) == 4


# Two ranks. In the step CHANGED rank 1 scales what it has otherwise.
PROGRAM = """
import os
import torch
torch.manual_seed(0)
rank = int(os.environ["RANK"])
weight = torch.nn.Parameter(torch.ones(8))
optimizer = torch.optim.SGD([weight], lr=0.01)
for step in range(60):
    h = weight * 1.0
    for i in range(160):
        h = og("train.mul:aaaa", torch.mul)(h, 1.01 if (rank, step, i) == (1, CHANGED, 80) else 1.0)
    loss = og("train.sum:bbbb", h.sum)()
    optimizer.zero_grad()
    og("train.backward:cccc", loss.backward)()
    og("train.step:dddd", optimizer.step)()
"""
BOTH_RANKS = """
import os, subprocess, sys
for rank in "01":
    subprocess.run([sys.executable, *sys.argv[1:]], env={**os.environ, "RANK": rank, "WORLD_SIZE": "2"}, check=True)
"""


def record(opguard, folder, changed, *words):
    """Both ranks of a job, one after the other, by `opguard run`."""
    pytest.importorskip("torch")
    program = folder.with_suffix(".py")
    program.write_text(runtime_log.PROLOGUE.format(package=str(build_dir() / "python")) + PROGRAM.replace("CHANGED", str(changed)))
    ran = opguard("run", "--log", folder, *words, "--", sys.executable, "-c", BOTH_RANKS, program, env=KEYS)
    assert ran.returncode == 0, ran.stderr
    return ran


@pytest.fixture(scope="module")
def runs(opguard, server, tmp_path_factory):
    """{name: (folder here, URL of the same logs)}; "up" was uploaded as it ran, of the same program as "a"."""
    base, found = tmp_path_factory.mktemp("runs"), {}
    server.filesystem().create_dir("logs")
    for name, changed in (("a", -1), ("same", -1), ("b", 52)):
        record(opguard, base / name, changed)
        server.put(base / name, "logs/" + name)
        found[name] = base / name, server.url("logs/" + name)
    found["up"] = base / "up", server.url("logs/up")
    ran = record(opguard, *found["up"][:1], -1, "--upload", found["up"][1], "--python", sys.executable)
    assert "uploaded " in ran.stderr and " to s3://logs/up" in ran.stderr and " 0 lost" in ran.stderr, ran.stderr
    assert list(found["up"][0].iterdir()) == []
    return found


def align(opguard, a, b, *words):
    return opguard("align", a, b, *words, "--python", sys.executable, env=KEYS)


@pytest.mark.parametrize("b", ["same", "b", "up"])
def test_the_verdict_is_that_of_logs_here(b, runs, opguard, tmp_path):
    wanted = opguard("align", runs["a"][0], runs["same" if b == "up" else b][0], "--read", "differing", "--json", tmp_path / "here.json")
    got = align(opguard, runs["a"][1], runs[b][1], "--read", "differing", "--json", tmp_path / "there.json")
    assert got.returncode == wanted.returncode == (1 if b == "b" else 0), got.stdout + got.stderr
    assert re.search(r"note: brought \S+ \S+ of \S+ \S+ in \d+ round trips?", got.stderr), got.stderr
    here, there = (json.loads((tmp_path / name).read_text()) for name in ("here.json", "there.json"))
    assert here.get("pivot") == there.get("pivot") and here["verdict"] == there["verdict"]
    text = (tmp_path / "there.json").read_text() + got.stdout + got.stderr
    assert "endpoint_override" not in text and "/tmp/opguard-" not in text


def test_digests_tell_where_without_the_events(runs, opguard, tmp_path):
    def digest(*folders):
        return opguard("digest", *folders, "--python", sys.executable, env=KEYS)

    same = digest(runs["a"][1], runs["up"][1])
    assert same.returncode == 0 and same.stdout.startswith("equal  "), same.stdout + same.stderr
    ran = digest(runs["a"][1], runs["b"][1])
    assert ran.returncode == 1 and "part in step 52, in 1 log; there first " in ran.stdout and "rank 1: " in ran.stdout, ran.stdout + ran.stderr
    assert re.search(r"note: brought \S+ kB of \S+ MB in \d+ round trips", ran.stderr), ran.stderr
    assert opguard("digest", runs["a"][0]).stdout.split(":")[0] == digest(runs["a"][1]).stdout.split(":")[0]


def test_one_side_may_be_here(runs, opguard):
    ran = align(opguard, runs["a"][0], runs["b"][1])
    assert ran.returncode == 1 and "train.mul" in ran.stdout and "note: brought" in ran.stderr, ran.stdout + ran.stderr


def test_parts_and_workers_read_the_store(runs, opguard, tmp_path):
    ran = align(opguard, runs["a"][1], runs["b"][1], "--on", "threads", "--parts", "2", "--json", tmp_path / "fleet.json")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    fleet = json.loads((tmp_path / "fleet.json").read_text())
    assert (fleet["rank"], fleet["pivot"]["boundary"], fleet["pivot"]["step"]) == (1, "train.mul:aaaa", 52)


def test_whoever_reads_whole_logs_brings_them(runs, opguard, tmp_path):
    """The same as of the logs here, under the name that was given."""
    here, url = runs["a"]
    words = ["--python", sys.executable]

    def same(command, *more, status=0):
        wanted = opguard(*command, here, *more)
        got = opguard(*command, url, *more, *words, env=KEYS)
        assert got.returncode == wanted.returncode == status, got.stdout + got.stderr
        assert "endpoint_override" not in got.stdout + got.stderr and "/tmp/opguard-" not in got.stdout + got.stderr
        assert got.stdout.replace("s3://logs/a", str(here)) == wanted.stdout
        return got

    assert same(["dump"], "--step", "3").stdout.count("train.mul:aaaa") > 300
    same(["dump"], "--format", "csv", "--rank", "1", "--step", "2-3")
    same(["align", "--single"], status=2)  # of mode default
    for name, place, more in (("here", here, []), ("there", url, words)):
        ran = opguard("export", place, "-o", tmp_path / f"{name}.parquet", "--python", sys.executable, env=KEYS)
        assert ran.returncode == 0 and re.search(r": \d{2},\d{3} records\n$", ran.stdout), ran.stdout + ran.stderr
    import pyarrow.parquet

    tables = [pyarrow.parquet.read_table(tmp_path / f"{name}.parquet") for name in ("here", "there")]
    assert tables[0].equals(tables[1])
    kept = [str(table.schema.metadata) for table in tables]
    assert kept[1].replace("s3://logs/a", str(here)) == kept[0] and "/tmp/opguard-" not in kept[1]
    paired = opguard("dump", url, runs["b"][1], *words, env=KEYS)
    assert paired.returncode == 0 and paired.stdout == opguard("dump", here, runs["b"][0]).stdout


def test_a_run_is_held_against_logs_that_lie_there(runs, opguard, tmp_path):
    program = tmp_path / "b.py"
    program.write_text(runtime_log.PROLOGUE.format(package=str(build_dir() / "python")) + PROGRAM.replace("CHANGED", "31"))
    words = ["--against", runs["a"][1], "--python", sys.executable]
    # Each waits for what the other has compared.
    at_once = BOTH_RANKS.replace("subprocess.run(", "ranks.append(subprocess.Popen(").replace(", check=True)", "))").replace("for rank", "ranks = []\nfor rank")
    at_once += "sys.exit(max(rank.wait() for rank in ranks))\n"
    ran = opguard("run", "--log", tmp_path / "log", *words, "--", sys.executable, "-c", at_once, program, env=KEYS)
    assert "rank 1 parts from the earlier run in step 31" in ran.stderr, ran.stdout + ran.stderr
    assert ran.returncode == 1 and "train.mul" in ran.stdout and "step 31" in ran.stdout, ran.stdout + ran.stderr
    assert "endpoint_override" not in ran.stdout + ran.stderr


def test_an_interpreter_for_nothing_is_told(runs, opguard, tmp_path):
    for command in (["dump", runs["a"][0]], ["align", "--single", runs["a"][0]], ["digest", runs["a"][0]], ["run", "--log", tmp_path / "log"]):
        tail = ["--", "true"] if command[0] == "run" else []
        ran = opguard(*command, "--python", sys.executable, *tail)
        assert ran.returncode == 2 and "--python: nothing needs it" in ran.stderr, ran.stderr


def test_a_store_that_cannot_be_written_to_ends_the_run_before_it_begins(opguard, server, tmp_path):
    program = "open('began', 'w')"
    url = server.url("no-such-bucket/a")
    ran = opguard("run", "--log", tmp_path / "log", "--upload", url, "--python", sys.executable, "--", sys.executable, "-c", program, cwd=tmp_path, env=KEYS)
    assert ran.returncode == 2 and "--upload: s3://no-such-bucket/a cannot be written to" in ran.stderr, ran.stderr
    assert not (tmp_path / "began").exists()


def test_a_comparison_within_rounding_brings_its_logs(opguard, server, tmp_path):
    pytest.importorskip("torch")
    program = tmp_path / "train.py"
    program.write_text(runtime_log.PROLOGUE.format(package=str(build_dir() / "python")) + PROGRAM.replace("CHANGED", "-1").replace("range(60)", "range(3)"))
    for name, words in (("ref", ()), ("other", ()), ("noise", ("--jitter", "1"))):
        ran = opguard("run", "--log", tmp_path / name, "--mode", "sketch", *words, "--", sys.executable, program, env={"RANK": "0"})
        assert ran.returncode == 0, ran.stderr
        server.put(tmp_path / name, "logs/sketch_" + name)

    def compared(*folders):
        a, b, noise = folders
        return opguard("align", "--tolerance", a, b, "--noise", noise, *(["--python", sys.executable] if "://" in str(a) else []), env=KEYS)

    here = compared(*(tmp_path / name for name in ("ref", "other", "noise")))
    there = compared(*(server.url("logs/sketch_" + name) for name in ("ref", "other", "noise")))
    assert there.returncode == here.returncode == 0, there.stdout + there.stderr + here.stdout + here.stderr
    assert there.stdout == here.stdout and "endpoint_override" not in there.stderr
