"""Parts made by workers (python/opguard/on_workers.py): lost workers, parts that refuse, and Ray. The comparison itself: test_parts.py."""

import json
import os
import subprocess
import sys

import pytest

from conftest import build_dir, clean_environment

# In place of opguard: it notes each try of a part, and is killed, or refuses, as it is told.
PROGRAM = """#!{python}
import json, os, signal, sys
number, of = sys.argv[sys.argv.index("--part") + 1].split("/")
with open(os.path.join({folder!r}, "try-" + number), "a") as tries:
    tries.write("x")
    if number == "2" and tries.tell() <= {killed}:
        os.kill(os.getpid(), signal.SIGKILL)
if number == {refuses!r}:
    sys.exit("opguard: error: run_a/log: no such folder")
print(json.dumps({{"part": number, "of": of, "words": sys.argv[1:]}}))
"""
MAKE = """
import json, os, sys
sys.path.insert(0, {package!r})
{before}
from opguard import on_workers
os.mkdir("out")
print(json.dumps(on_workers.make("./program", "a", "b", "out", {where!r}, {of}, ["--read", "all"])))
"""
# What is asked of Ray, by threads of this process.
RAY = """
import concurrent.futures, types
pool, asked = concurrent.futures.ThreadPoolExecutor(2), []
class Task:
    def __init__(self, function): self.function = function
    def remote(self, command):
        return types.SimpleNamespace(future=lambda: pool.submit(self.function, command))
def init(**options): asked.append(options)
sys.modules["ray"] = types.SimpleNamespace(
    is_initialized=lambda: False, init=init, shutdown=lambda: print("shut down", asked), cluster_resources=lambda: {"CPU": 3.0},
    remote=lambda **options: (asked.append(options), Task)[1])
"""


def make(folder, where="threads", of=3, killed=0, refuses="", before="", python=sys.executable):
    """-> (how many parts, {missing: why}, {part written: its words}, tries of each part, all that was printed)"""
    program = folder / "program"
    program.write_text(PROGRAM.format(python=sys.executable, folder=str(folder), killed=killed, refuses=refuses))
    program.chmod(0o755)
    script = MAKE.format(package=str(build_dir() / "python"), before=before, where=where, of=of)
    ran = subprocess.run([python, "-c", script], cwd=folder, env=clean_environment(), capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    count, missing = json.loads(ran.stdout.splitlines()[-1])
    written = {p.stem: json.loads(p.read_text()) for p in (folder / "out").iterdir()}
    assert all((part["part"], part["of"]) == (name, str(count)) for name, part in written.items())
    tries = {p.name.removeprefix("try-"): p.stat().st_size for p in folder.glob("try-*")}
    return count, missing, written, tries, ran.stdout


def test_every_part_is_made_once(tmp_path):
    count, missing, written, tries, _ = make(tmp_path)
    assert (count, missing, tries) == (3, {}, {"1": 1, "2": 1, "3": 1})
    assert written["2"]["words"] == ["align", "a", "b", "--part", "2/3", "--read", "all"]


def test_two_parts_a_worker_where_nothing_is_said(tmp_path):
    assert make(tmp_path, of=0)[0] == 2 * len(os.sched_getaffinity(0))


def test_a_part_whose_worker_is_killed_is_made_again(tmp_path):
    _, missing, written, tries, _ = make(tmp_path, killed=2)
    assert missing == {} and sorted(written) == ["1", "2", "3"] and tries == {"1": 1, "2": 3, "3": 1}


def test_it_is_not_made_again_forever(tmp_path):
    _, missing, written, tries, _ = make(tmp_path, killed=99)
    assert missing == {"2": "ended by signal 9, 4 times"} and sorted(written) == ["1", "3"] and tries["2"] == 4


def test_what_a_part_complains_of_is_told_and_no_other_worker_is_asked(tmp_path):
    _, missing, written, tries, _ = make(tmp_path, refuses="1")
    assert missing == {"1": "error: run_a/log: no such folder"} and sorted(written) == ["2", "3"] and tries["1"] == 1


@pytest.mark.parametrize("where, cluster", [("ray", "'include_dashboard': False"), ("ray://head:10001", "'address': 'ray://head:10001'")])
def test_what_is_asked_of_ray(tmp_path, where, cluster):
    count, missing, written, tries, said = make(tmp_path, where, of=0, killed=1, before=RAY)
    assert (count, missing, tries["2"]) == (6, {}, 2) and len(written) == 6
    asked = f"[{{'log_to_driver': False, 'logging_level': 'ERROR', {cluster}}}, {{'num_cpus': 1, 'max_retries': 3}}]"
    assert f"shut down {asked}" in said


def test_without_ray_it_says_what_is_missing(tmp_path, opguard):
    for name in "ab":
        (tmp_path / name).mkdir()
    # An interpreter that has no Ray, whatever this one has.
    (tmp_path / "ray.py").write_text("raise ImportError('No module named ray')")
    done = opguard("align", tmp_path / "a", tmp_path / "b", "--on", "ray", "--python", sys.executable, env={"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 2 and "--on ray needs ray, which this interpreter does not have: pip install ray" in done.stderr, done.stderr
    bad = opguard("align", tmp_path / "a", tmp_path / "b", "--on", "slurm")
    for words, option in ((("--on", "threads", "--drill"), "--on"), (("--part", "1/2", "--prove-runs", "2"), "--part")):
        bad_words = opguard("align", tmp_path / "a", tmp_path / "b", *words)
        assert bad_words.returncode == 2 and f"{option}: compares bit by bit" in bad_words.stderr
    assert bad.returncode == 2 and "neither threads, ray nor ray://ADDRESS: slurm" in bad.stderr


def test_a_real_ray(tmp_path):
    pytest.importorskip("ray", reason="no Ray: pip install ray")
    _, missing, written, tries, _ = make(tmp_path, "ray", killed=1)
    assert missing == {} and sorted(written) == ["1", "2", "3"] and tries["2"] == 2
