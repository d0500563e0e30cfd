"""A program whose log cannot be written, or not in time, goes on as if nothing were recorded; and what is missing is told."""

import re
import resource
import signal
import struct
import subprocess
import sys

import pytest

from conftest import binary, build_dir, clean_environment
from runtime_log import PROLOGUE, Log, logs_in, run_program

pytest.importorskip("torch")

# Trains for a while; an exception in a step is the program's own affair. Every fourth event has no tensors.
TRAIN = """
import torch
torch.manual_seed(0)
w = torch.nn.Parameter(torch.randn(4, 4))
opt = torch.optim.SGD([w], lr=.1)
for i in range(400):
    try:
        loss = og("loss", (og("matmul", torch.matmul)(torch.randn(2, 4), w) ** 2).sum)()
        if og("odd", int)(i) % 7 == 3:
            raise RuntimeError("a bad batch")
        opt.zero_grad()
        og("backward", loss.backward)()
        opt.step()
    except RuntimeError:
        pass
print(repr(loss.item()), w.tolist())
"""


def train(log=None, limit=None, **options):
    """The program under a file size limit. SIGXFSZ is as Python has it, ignored."""
    prepare = limit and (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    return train_program(TRAIN, None, log, preexec_fn=prepare, **options)


def train_program(body, folder, log=None, **options):
    environment = clean_environment()
    if log:
        environment["OPGUARD_LOG"] = str(log)
    program = PROLOGUE.format(package=str(build_dir() / "python")) + body
    result = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=300,
                            cwd=folder, **options)  # fmt: skip
    assert result.returncode == 0, result.stderr
    return result


def told(stderr):
    """(lost, made) of the one warning and the one total."""
    assert stderr.count("opguard: warning:") == 1 and "the run goes on, what is lost is counted" in stderr
    return tuple(map(int, re.search(r"opguard: (\d+) of (\d+) records were lost\n", stderr).groups()))


def records(log):
    return sum(max(1, len(e.slots)) for e in log.events)


@pytest.fixture(scope="module")
def bare():
    return train().stdout


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Records of a run of which nothing is lost."""
    folder = tmp_path_factory.mktemp("whole")
    train(folder)
    return records(logs_in(folder)[0])


@pytest.mark.parametrize("limit", [10, 40_000])
def test_file_size_limit(tmp_path, bare, whole, limit):
    result = train(tmp_path, limit)
    assert result.stdout == bare
    lost, made = told(result.stderr)
    # What a lost event would have led to, its autograd nodes above all, is made and lost as well.
    assert made == whole
    if limit < 1000:
        assert lost == made and not logs_in(tmp_path)
        return
    (log,) = logs_in(tmp_path)
    assert log.closed and log.lost == lost and records(log) + lost == made and log.path.stat().st_size <= limit


def test_full_disk(tmp_path, bare):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "opguard", disk], capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    try:
        result = train(disk)
        assert result.stdout == bare
        lost, made = told(result.stderr)
        (log,) = logs_in(disk)
        assert log.closed and 0 < lost == log.lost and records(log) + lost == made
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_hole_is_told_and_nothing_is_certified_across_it(tmp_path):
    def run(name, limit=None):
        program = tmp_path / "train.py"
        program.write_text(PROLOGUE.format(package=str(build_dir() / "python")) + TRAIN)
        prepare = limit and (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        return subprocess.run([binary("opguard"), "run", "--log", tmp_path / name, "--", sys.executable, program], text=True,
                              capture_output=True, env=clean_environment(), preexec_fn=prepare)  # fmt: skip

    def align(a, b):
        result = subprocess.run([binary("opguard"), "align", tmp_path / a, tmp_path / b], capture_output=True, text=True)
        return result.returncode, result.stdout + result.stderr

    whole, again, short = run("whole"), run("again"), run("short", 40_000)
    assert "records missing" not in whole.stderr and ", 0 lost" in whole.stderr
    assert re.search(r"records missing at 1 places of .*, the first before event \d+ of \d+; nothing is certified", short.stderr)
    assert align("whole", "again")[0] == 0
    status, text = align("whole", "short")
    assert status == 2 and "lost" in text
    # One flipped bit in the middle of the other log.
    (path,) = (tmp_path / "again").glob("*.log")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 16
    path.write_bytes(data)
    status, text = align("whole", "again")
    assert status == 2 and "is damaged (checksum); missing there" in text
    dumped = subprocess.run([binary("opguard"), "dump", "--salvage", path], capture_output=True, text=True)
    assert dumped.returncode == 1 and re.search(r"\ngap before event \d+: \d+ records are missing\n", dumped.stdout)


@pytest.mark.parametrize("change", ["dropped", "doubled", "moved"])
def test_a_whole_chunk_that_is_not_where_it_was(tmp_path, change):
    """Every checksum is good. Settings, which nothing refers to: only the end of the log knows of them."""
    for name in "ab":
        run_program("import torch\nog('sum', torch.ones(3).sum)()\n", tmp_path / name)
    (path,) = (tmp_path / "b").glob("*.log")
    data, at, chunks = path.read_bytes(), 20, []
    while at < len(data):
        end = at + 20 + struct.unpack_from("<I", data, at + 4)[0]
        chunks.append(data[at:end])
        at = end
    settings = next(i for i, chunk in enumerate(chunks) if chunk[3] == 2)
    align = [binary("opguard"), "align", tmp_path / "a", tmp_path / "b"]
    assert subprocess.run(align, capture_output=True).returncode == 0
    chunk = chunks.pop(settings)
    if change != "dropped":
        chunks[settings:settings] = [chunk, chunk] if change == "doubled" else [chunks.pop(settings), chunk]
    path.write_bytes(data[:20] + b"".join(chunks))
    ran = subprocess.run(align, capture_output=True, text=True)
    assert ran.returncode == 2 and "the chunk of end is refused: it binds" in ran.stdout + ran.stderr, ran.stdout


# The descriptors a program does not know are closed, and its next files get their numbers; as python-daemon and many launchers do it.
CLOSING = TRAIN.replace("for i in range(400):", "for i in range(400):\n    if i == 200: close_all()").replace("import torch\n", """
import os, sys, torch
def close_all():
    os.closerange(3, 4096)
    global mine
    mine = [open("mine%d" % i, "r+b") for i in range(600)]  # past every number that was closed
""", 1) + """
for file in mine: file.close()
print(sum(os.path.getsize("mine%d" % i) for i in range(600)), {open("mine%d" % i, "rb").read() for i in range(600)})
"""


@pytest.mark.parametrize("forked", [False, True])
def test_the_users_files_are_never_the_log(tmp_path, forked):
    for i in range(600):
        (tmp_path / f"mine{i}").write_bytes(b"the user's")
    body = CLOSING
    if forked:
        body = body.replace("    if i == 200: close_all()", "    if i == 200:\n        if os.fork(): os.wait(); os._exit(0)\n        close_all()")
    bare, probed = train_program(body, tmp_path), train_program(body, tmp_path, tmp_path / "log")
    assert probed.stdout == bare.stdout and "6000 {b\"the user's\"}" in bare.stdout
    whole = [log for log in logs_in(tmp_path / "log") if log.closed]
    assert len(whole) == 1 + forked and not any(log.lost for log in whole) and not probed.stderr
    assert min(map(records, whole)) > 1000


GOES_AWAY = {"delete": "shutil.rmtree(LOG)", "replace": "shutil.rmtree(LOG); os.mkdir(LOG)", "move": "os.rename(LOG, LOG + '-moved')"}


@pytest.mark.parametrize("how", ["delete", "replace", "move"])
def test_a_log_folder_that_goes_away(tmp_path, bare, how):
    body = TRAIN.replace("for i in range(400):", f"import os, shutil\nLOG = os.environ.get('OPGUARD_LOG')\nfor i in range(400):\n    if i == 200 and LOG: {GOES_AWAY[how]}")
    result = train_program(body, tmp_path, tmp_path / "log")
    assert result.stdout == bare
    if how == "move":
        (log,) = logs_in(tmp_path / "log-moved")
        assert log.closed and log.lost == 0 and not result.stderr
        return
    lost, made = told(result.stderr)
    assert lost == made > 1000 and "is gone: deleted, cut or replaced while the program ran" in result.stderr


@pytest.mark.parametrize("how, said", [
    ("delete", "the log folder was deleted while the program ran, and what had been recorded with it"),
    ("replace", "the log folder was deleted while the program ran, and what had been recorded with it"),
    ("move", "the log folder was moved while the program ran"),
])  # fmt: skip
def test_opguard_run_says_where_its_log_folder_is(opguard, tmp_path, how, said):
    (tmp_path / "train.py").write_text(f"import os, shutil, torch\nfrom opguard import og\nLOG = os.environ['OPGUARD_LOG']\nog('sum', torch.ones(3).sum)()\n{GOES_AWAY[how]}\n"
                                       "og('sum', torch.ones(3).sum)()\n")  # fmt: skip
    ran = opguard("run", "--log", "log", "--", sys.executable, "train.py", cwd=tmp_path)
    assert ran.returncode == 0 and said in ran.stderr and "no probe was reached" not in ran.stderr
    if how == "move":
        assert "1 processes, " in ran.stderr and " 0 lost" in ran.stderr and f"align {tmp_path}/log-moved OTHER" in ran.stderr


THREADS = """
import glob, os, time, torch
def ours(count):
    # A thread that has ended may be listed for a moment.
    for _ in range(1000):
        names = []
        for path in glob.glob("/proc/self/task/*/comm"):
            try: names.append(open(path).read().strip())
            except OSError: pass
        if names.count("opguard-log") == count: return True
        time.sleep(.001)
"""


def test_no_thread_of_ours_is_forked(tmp_path):
    run_program(THREADS + """
og("before", torch.ones(3).sum)()
assert ours(1)
child = os.fork()
if child == 0:
    assert ours(0)
    og("child", torch.ones(3).sum)()
    assert ours(1)
    os._exit(0)
assert ours(0)
assert os.waitpid(child, 0)[1] == 0
og("after", torch.ones(3).sum)()
assert ours(1)
""", tmp_path)  # fmt: skip
    parent, child = sorted(logs_in(tmp_path), key=lambda log: log.start_ns)
    assert parent.boundaries() == ["before", "after"] and child.boundaries() == ["child"]
    assert parent.closed and child.closed


@pytest.mark.parametrize("leave, status", [
    ("os._exit(4)", [4]),
    # Python 3.11 ends a daemon thread inside of torch by unwinding: torch alone aborts so in 39 of 40 runs.
    ("raise SystemError", [1, -signal.SIGABRT]),
    ("import signal; signal.signal(signal.SIGTERM, lambda *_: os._exit(5)); os.kill(os.getpid(), signal.SIGTERM)", [5]),
])  # fmt: skip
def test_every_way_to_end_closes_the_log(tmp_path, leave, status):
    """While a daemon thread goes on recording."""
    result = run_program(THREADS + """
import threading, time
def work():
    while True:
        og("thread", torch.ones(3).sum)()
        time.sleep(.001)
threading.Thread(target=work, daemon=True).start()
for _ in range(100): og("main", torch.ones(3).sum)()
""" + leave, tmp_path, status=status)  # fmt: skip
    (log,) = logs_in(tmp_path)
    assert log.closed and log.lost == 0 and len(log.of("main")) == 100
    assert "opguard" not in result.stderr


def test_exec_leaves_what_was_flushed(tmp_path):
    """The log is not closed, and says so; what is a second old is there."""
    run_program(THREADS + """
import sys, time
for _ in range(100): og("main", torch.ones(3).sum)()
time.sleep(2.5)
os.execv(sys.executable, [sys.executable, "-c", "pass"])
""", tmp_path)  # fmt: skip
    (path,) = tmp_path.glob("*.log.incomplete")
    log = Log(path)
    assert not log.closed and len(log.of("main")) == 100
