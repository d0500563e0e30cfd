"""`opguard preflight`, `run` and `doctor`: what they start, what they say, what they give back."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from conftest import binary, build_dir, clean_environment
from cuda_doubles import doubles  # noqa: F401

pytest.importorskip("torch")
TRAIN = """import torch
x = torch.ones(2, requires_grad=True)
y = (x * 3).sum()
y.backward()
print("out", y.item())
"""


@pytest.fixture
def tree(tmp_path):
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "train.py").write_text(TRAIN)
    return folder


def test_preflight_writes_a_plan(opguard, tree, tmp_path):
    ran = opguard("preflight", "-o", tmp_path / "plan.json", "--", sys.executable, "train.py", cwd=tree)
    assert ran.returncode == 0, ran.stderr
    # The program's own output never mixes with ours.
    assert "out 6.0" in ran.stderr and "out 6.0" not in ran.stdout
    assert "coverage: " in ran.stdout and "next: opguard-instrument" in ran.stdout
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert {"x * 3", "y.backward()"} <= {b["text"] for b in plan["boundaries"]}
    assert plan["command"] == [sys.executable, "train.py"]
    assert [p.name for p in tree.iterdir()] == ["train.py"]


@pytest.mark.parametrize(
    "command,words",
    [
        ([sys.executable, "-c", "import sys; print('last words'); sys.exit(9)"], ["exit code 9", "last words"]),
        ([sys.executable, "-c", "import os; os.kill(os.getpid(), 11)"], ["signal 11"]),
        ([sys.executable, "-c", "print(1)"], ["never imported torch"]),
        ([sys.executable, "-I", "train.py"], ["started with -I", "ignores PYTHONPATH"]),
        (["no-such-program"], ["cannot run no-such-program: not found on PATH"]),
    ],
)
@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_preflight_of_a_program_that_fails(opguard, tree, tmp_path, command, words, quiet):
    ran = opguard("preflight", "-o", tmp_path / "plan.json", *quiet, "--", *command, cwd=tree)
    assert ran.returncode == 2
    for word in words:
        assert ran.stderr.count(word) >= 1, ran.stderr
    assert ran.stderr.count("opguard: error: ") == 1
    assert not (tmp_path / "plan.json").exists()


def test_preflight_leaves_no_traces_behind(opguard, tree, tmp_path):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    run = lambda *more: opguard("preflight", "-o", tmp_path / "plan.json", *more, "--", sys.executable, "train.py",
                                cwd=tree, env={"TMPDIR": str(temporary)})  # fmt: skip
    assert run().returncode == 0
    assert [p for p in temporary.iterdir() if p.name.startswith("opguard")] == []
    kept = tmp_path / "kept"
    assert run("--work", kept).returncode == 0
    assert len(list(kept.glob("trace/trace-*.json"))) == 1
    again = run("--work", kept)
    assert again.returncode == 2 and "is not empty" in again.stderr


def test_run_passes_everything_on(opguard, tree, tmp_path):
    code = "import sys; print('to out'); print('to err', file=sys.stderr); sys.exit(5)"
    ran = opguard("run", "--log", tmp_path / "log", "--", sys.executable, "-c", code, cwd=tree)
    assert ran.returncode == 5
    assert ran.stdout == "to out\n" and "to err\n" in ran.stderr
    assert ran.stderr.startswith("opguard: running: ")
    assert "no probe was reached" in ran.stderr


def test_run_records_an_instrumented_program(opguard, tree, tmp_path):
    text = TRAIN.replace("x * 3", 'og("mul:aaaa", x) * 3')
    (tree / "train.py").write_text("from opguard import og  # opguard: probes\n" + text)
    log = tmp_path / "log"
    ran = opguard("run", "--log", log, "--", sys.executable, "train.py", cwd=tree)
    assert ran.returncode == 0 and ran.stdout == "out 6.0\n"
    assert "1 processes" in ran.stderr and " 0 lost" in ran.stderr and "next: opguard align" in ran.stderr
    again = opguard("run", "--log", log, "--", sys.executable, "train.py", cwd=tree)
    assert again.returncode == 2 and "already holds logs" in again.stderr and again.stdout == ""
    off = opguard("run", "--mode", "off", "--log", tmp_path / "off", "--", sys.executable, "train.py", cwd=tree)
    assert off.stdout == "out 6.0\n" and list((tmp_path / "off").iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_the_program_too(tree, tmp_path, number):
    (tree / "wait.py").write_text("import os, time\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(100)\n")
    # A shell in between must not keep the program from the signal.
    tool = subprocess.Popen(
        [str(binary("opguard")), "run", "--log", str(tmp_path / "log"), "--", "bash", "-c", sys.executable + " wait.py; exit 4"],
        cwd=tree, env=clean_environment(), stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        # A job started in the background ignores SIGINT, and its children after it.
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )  # fmt: skip
    deadline = time.time() + 30
    while not (tree / "pid").exists() or not (tree / "pid").read_text():
        assert time.time() < deadline
        time.sleep(0.05)
    tool.send_signal(number)
    assert tool.wait(timeout=30) not in (0, 2)
    pid = int((tree / "pid").read_text())
    for _ in range(100):
        if not os.path.exists("/proc/%d" % pid):
            break
        time.sleep(0.05)
    else:
        pytest.fail("the program outlived the tool")


def test_doctor(opguard, tmp_path):
    ran = opguard("doctor", "--", sys.executable)
    assert ran.returncode == 0, ran.stdout
    assert "ok  torch  " in ran.stdout and "ok  probe" in ran.stdout and "ok  torch.compile      compiled code is recorded; Inductor makes other kernels" in ran.stdout
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    ran = opguard("doctor", "--", bare / "bin" / "python")
    assert ran.returncode == 1
    assert "NO  torch" in ran.stdout and "No module named 'torch'" in ran.stdout
    ran = opguard("doctor", "--", "no-such-python")
    assert ran.returncode == 1 and "NO  python" in ran.stdout


def test_doctor_says_what_a_newer_torch_means_for_compiled_code(opguard, tmp_path):
    (tmp_path / "sitecustomize.py").write_text('import torch\ntorch.__version__ = torch.torch_version.TorchVersion("2.15.0")\n')
    ran = opguard("doctor", "--", sys.executable, env={"PYTHONPATH": str(tmp_path)})
    assert ran.returncode == 0, ran.stdout  # everything else works
    (line,) = [line for line in ran.stdout.splitlines() if line[4:].startswith("torch.compile")]
    assert line.startswith("-  ") and "2.15.0 is newer than all that are known; compiled code runs as without opguard" in line


@pytest.mark.parametrize("state, said", [
    ("api=28", "ok  CUPTI              CUPTI API 28, "),
    ("busy", "another tool holds CUPTI"),
    ("api=16", "of a CUDA before 12"),
])  # fmt: skip
def test_doctor_tries_cupti(opguard, doubles, state, said):
    ran = opguard("doctor", "--", sys.executable, env={"CUDA_HOME": str(doubles), "LD_LIBRARY_PATH": str(doubles), "CUPTI_DOUBLE": state})
    assert ran.returncode == 0, ran.stdout
    assert said in ran.stdout and "libcupti.so.12" in ran.stdout
    assert "ok  CUDA driver        libcuda.so.1, for CUDA up to 13.1" in ran.stdout


@pytest.mark.parametrize("asked, said", [
    ("", "ok  values on CUDA     the driver takes the kernels; torch sees no GPU"),
    ("11080", "-   values on CUDA     the CUDA driver is for CUDA 11.8, 12.0 or later is needed"),
    ("cuInit=100", "-   values on CUDA     cuInit: CUDA_ERROR_100"),
    ("cuModuleLoadDataEx=222", "-   values on CUDA     the driver refuses the kernels: CUDA_ERROR_222"),
    ("cuDeviceGet=101", "-   values on CUDA     cuDeviceGet: CUDA_ERROR_101"),
])  # fmt: skip
def test_doctor_tries_the_kernels(opguard, asked, said):
    double = build_dir() / "tests" / "device" / "double"
    ran = opguard("doctor", "--", sys.executable, env={"LD_LIBRARY_PATH": str(double), "OPGUARD_CUDA_DOUBLE": asked})
    assert ran.returncode == 0 and said in ran.stdout, ran.stdout
