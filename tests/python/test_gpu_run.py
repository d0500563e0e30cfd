"""tests/gpu/run.sh and run_checks.py without a GPU: what is run, how it is bounded, and what is left when a check fails, hangs or dies."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from conftest import runs

GPU = Path(__file__).resolve().parents[1] / "gpu"

CHECKS = {
    "check_good": "import json; print(json.dumps({'check': 'good', 'passed': True, 'why': [], 'figure': 7}))",
    "check_bad": "import json, sys; print(json.dumps({'why': ['the sky is green']})); sys.exit(1)",
    "check_dies": "import os, sys; print('{\"half', flush=True); print('last words', file=sys.stderr, flush=True); os.abort()",
    "check_hangs": "import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(100)']); open(sys.argv[0] + '.pid', 'w').write(str(p.pid)); time.sleep(100)",
    "check_elsewhere": "import sys; print('skipped: no second GPU'); sys.exit(77)",
    "bandwidth": "import sys; print('a table', file=sys.stderr); print('{}')",
}


def folder_of(tmp_path, names):
    folder = tmp_path / "gpu"
    folder.mkdir()
    shutil.copy(GPU / "run_checks.py", folder)
    for name in names:
        (folder / (name + ".py")).write_text(CHECKS[name] + "\n")
    return folder


def run(folder, tmp_path, *args):
    env = {**os.environ, "OPGUARD_BUILD": str(tmp_path / "build")}
    command = [sys.executable, str(folder / "run_checks.py"), "--out", str(tmp_path), *map(str, args)]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=200)


def test_one_check_hides_no_other(tmp_path):
    folder = folder_of(tmp_path, CHECKS)
    ran = run(folder, tmp_path, "--seconds", 150, "--limit", 12, *CHECKS)
    assert ran.returncode == 1
    found = json.loads((tmp_path / "gpu.json").read_text())
    codes = {check["name"]: check["exit"] for check in found["checks"]}
    assert codes == {"check_good": 0, "check_bad": 1, "check_dies": -6, "check_hangs": 1, "check_elsewhere": 77, "bandwidth": 0}
    assert found["checks"][-1]["name"] == "bandwidth" and {c["name"]: c for c in found["checks"]}["check_good"]["figure"] == 7
    text, log = (tmp_path / "gpu.txt").read_text(), (tmp_path / "gpu.log").read_text()
    for said in ("check_bad: FAILED", "the sky is green", "check_hangs: FAILED: it was ended after 12 s", "last words", "a table",
                 "check_elsewhere: not tried: skipped: no second GPU", "check_dies: FAILED (exit -6)"):  # fmt: skip
        assert said in text, text
    assert "last words" in log and text in ran.stdout + text
    # What a check has started ends with it.
    started = (folder / "check_hangs.py.pid").read_text()
    for _ in range(100):
        if not runs(started):
            break
        time.sleep(0.1)
    assert not runs(started)
    # What comes back from a lent machine: few files, none of them large.
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_file()) == ["gpu.json", "gpu.log", "gpu.txt"]


def test_when_the_time_is_up_what_is_left_is_told(tmp_path):
    folder = folder_of(tmp_path, ["check_good", "bandwidth"])
    ran = run(folder, tmp_path, "--seconds", 5, "check_good", "bandwidth")
    assert ran.returncode == 2 and ran.stdout.count("not tried: the time is up") == 2


def test_a_run_that_is_killed_leaves_what_it_knew(tmp_path):
    folder = folder_of(tmp_path, ["check_good", "check_hangs"])
    env = {**os.environ, "OPGUARD_BUILD": str(tmp_path / "build")}
    words = [sys.executable, str(folder / "run_checks.py"), "--out", str(tmp_path), "--seconds", "100", "check_good", "check_hangs"]
    running = subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL)
    for _ in range(600):
        time.sleep(0.1)
        if (tmp_path / "gpu.json").exists() and json.loads((tmp_path / "gpu.json").read_text())["checks"]:
            break
    running.kill()
    running.wait()
    (check,) = json.loads((tmp_path / "gpu.json").read_text())["checks"]
    assert check["name"] == "check_good" and check["exit"] == 0
    pid = folder / "check_hangs.py.pid"
    if pid.exists():
        os.kill(int(pid.read_text()), 9)


def test_without_a_gpu_nothing_is_built_or_run(tmp_path):
    ran = subprocess.run(["bash", str(GPU / "run.sh")], env={**os.environ, "PYTHON": sys.executable, "OUT": str(tmp_path / "out")},
                         capture_output=True, text=True, timeout=200)  # fmt: skip
    assert ran.returncode == 77 and "nothing was run: torch sees no GPU" in ran.stdout, ran.stdout + ran.stderr
    assert not (tmp_path / "out").exists()
