"""How the tool gets into the Pythons below a command whatever its launch script does to the environment, and what the
program sees of that (src/keep, boot/sitecustomize.py)."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import build_dir, clean_environment

LIBRARY = build_dir() / "python" / "opguard" / "opguard_keep.so"

# One line a process: whether we are in it.
PROBE = "import sys\nprint('reached', 'opguard' in sys.modules, *sys.argv[1:])\n"

LAUNCH = """
import multiprocessing, os, subprocess, sys

def work(way):
    print('reached', 'opguard' in sys.modules, way, flush=True)

if __name__ == '__main__':
    probe = [sys.executable, 'probe.py']
    def run(way, **options):
        subprocess.run(probe + [way], check=True, **options)
    run('subprocess-env', env={'PYTHONPATH': '/x'})
    run('subprocess-none', env={})
    run('subprocess-same')
    run('subprocess-copy', env=dict(os.environ))
    os.waitpid(os.posix_spawn(sys.executable, probe + ['posix_spawn'], {}), 0)
    if os.fork() == 0:
        os.execve(sys.executable, probe + ['execve'], {'PYTHONPATH': '/x'})
    os.wait()
    if os.fork() == 0:
        os.execlpe(sys.executable, sys.executable, 'probe.py', 'execlpe', {})
    os.wait()
    os.environ.clear()
    os.environ['PYTHONPATH'] = '/x'
    os.system(sys.executable + ' probe.py system')
    run('subprocess-cleared')
    for method in ('spawn', 'forkserver', 'fork'):
        process = multiprocessing.get_context(method).Process(target=work, args=(method,))
        process.start()
        process.join()
"""

# Every line starts one Python, whose last argument names the way.
SCRIPT = """
set -e
export PYTHONPATH=/x:$PYTHONPATH
python probe.py export
PYTHONPATH=/x python probe.py prefix
PYTHONPATH=/x {python} probe.py absolute
PYTHONPATH= python probe.py empty
env -u PYTHONPATH python probe.py env-u
env -i PATH="$PATH" python probe.py env-i
env -i {python} probe.py env-i-absolute
env -u LD_PRELOAD PYTHONPATH=/x python probe.py env-u-preload
LD_PRELOAD={other} python probe.py preload
nohup env PYTHONPATH=/x timeout 60 python probe.py nested
( unset LD_PRELOAD; PYTHONPATH=/x sh -c 'exec python probe.py shell' )
( exec -c {python} probe.py exec-c )
PYTHONPATH=/x {static} {python} probe.py static
LD_PRELOAD= {static} {python} probe.py static-preload
python launch.py
"""

# A launcher without the loader: nothing is preloaded into it, its environment is passed on.
STATIC = """
#include <unistd.h>
int main(int count, char** words) { return execv(words[1], words + 1); }
"""


@pytest.fixture(scope="module")
def other_library(tmp_path_factory):
    """A library of the user's that a launch script preloads."""
    folder = tmp_path_factory.mktemp("other")
    (folder / "other.c").write_text("int other_library;\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "other.so", folder / "other.c"], check=True)
    return folder / "other.so"


@pytest.fixture
def tree(tmp_path):
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "probe.py").write_text(PROBE)
    (folder / "launch.py").write_text(LAUNCH)
    return folder


def run_under(opguard, tree, tmp_path, *command, env=None):
    """What `command` prints below the preflight; the probes import no torch, so there is no trace."""
    ran = opguard("preflight", "-o", tmp_path / "plan.json", "--", *command, cwd=tree, env=env)
    assert ran.returncode == 2 and "no trace" in ran.stderr, ran.stderr
    return ran.stderr


def test_every_way_to_start_a_python_is_followed(opguard, tree, tmp_path, other_library):
    (tmp_path / "static.c").write_text(STATIC)
    subprocess.run(["cc", "-static", "-o", tmp_path / "static", tmp_path / "static.c"], check=True)
    text = SCRIPT.format(python=shlex.quote(sys.executable), other=other_library, static=tmp_path / "static")
    (tree / "run.sh").write_text(text)
    said = run_under(opguard, tree, tmp_path, "bash", "run.sh")
    lines = [line.split() for line in said.splitlines() if line.startswith("reached")]
    ways = {words[2]: words[1] for words in lines}
    started = [line.split("probe.py ")[1].split()[0].rstrip("'") for line in text.splitlines() if "probe.py" in line]
    started += ["subprocess-env", "subprocess-none", "subprocess-same", "subprocess-copy", "posix_spawn", "execve", "execlpe", "system",
                "subprocess-cleared", "spawn", "forkserver", "fork"]  # fmt: skip
    assert ways == {way: "True" for way in started}, said


# What a program can see of its environment, and what a child is given that is no Python.
SEEN = """
import json, os, subprocess, sys
child = subprocess.run(["env", "-0"], stdout=subprocess.PIPE).stdout.decode().split("\\0")
again = subprocess.run([sys.executable, "-c", "import os, sys, json; print(json.dumps([sys.path[1:], dict(os.environ)]))"], stdout=subprocess.PIPE)
print("seen", json.dumps({"path": sys.path, "environment": dict(os.environ), "again": json.loads(again.stdout),
                          "child": dict(entry.split("=", 1) for entry in child if entry)}))
"""


def without_ours(environment):
    left = {k: v for k, v in environment.items() if not k.startswith("OPGUARD_")}
    preload = [p for p in left.pop("LD_PRELOAD", "").split(":") if p and p != str(LIBRARY)]
    if preload:
        left["LD_PRELOAD"] = ":".join(preload)
    for name in ("TORCHDYNAMO_DISABLE", "CUDA_INJECTION64_PATH", "_", "SHLVL"):  # of the preflight, and of the shell
        left.pop(name, None)
    return left


@pytest.mark.parametrize("shell", ["", "export PYTHONPATH=/x:$PYTHONPATH;", "export PYTHONPATH=;", "unset PYTHONPATH;"])
@pytest.mark.parametrize("path", [None, "", "/given", "/given:"])
def test_the_program_sees_its_own_environment(opguard, tree, tmp_path, other_library, shell, path):
    (tree / "seen.py").write_text(SEEN)
    command = ["bash", "-c", shell + " python seen.py"]
    env = {"LD_PRELOAD": str(other_library)}
    if path is not None:
        env["PYTHONPATH"] = path
    bare = subprocess.run(command, cwd=tree, env={**clean_environment(), **env}, capture_output=True, text=True)
    said = run_under(opguard, tree, tmp_path, *command, env=env)
    bare, under = (json.loads(text.split("seen ", 1)[1].splitlines()[0]) for text in (bare.stdout, said))
    assert under["path"] == bare["path"]
    assert under["again"][0] == bare["again"][0]
    for seen in (bare, under):
        seen["again"] = without_ours(seen["again"][1])
        seen["environment"] = without_ours(seen["environment"])
        seen["child"] = without_ours(seen["child"])
    assert under == bare
    assert under["environment"]["LD_PRELOAD"] == str(other_library)


@pytest.mark.parametrize("flag,words", [("-I", "ignores PYTHONPATH"), ("-E", "ignores PYTHONPATH"), ("-S", "imports no sitecustomize")])
def test_a_python_that_shuts_us_out_is_refused_at_once(opguard, tree, tmp_path, flag, words):
    (tree / "train.py").write_text("open('ran', 'w')\n")
    for arguments in (["preflight", "-o", tmp_path / "plan.json"], ["run", "--log", tmp_path / "log"]):
        ran = opguard(*arguments, "--", sys.executable, flag + "u", "train.py", cwd=tree)
        assert ran.returncode == 2
        assert f"started with {flag}" in ran.stderr and words in ran.stderr and "train.py" in ran.stderr
        assert ran.stderr.count("error:") == 1
    assert not (tree / "ran").exists(), "the program was started"


def test_one_that_a_script_starts_is_named(opguard, tree, tmp_path):
    (tree / "run.sh").write_text("PYTHONPATH=/x python -uI probe.py\n")
    said = run_under(opguard, tree, tmp_path, "bash", "run.sh")
    assert "a Python that could not be entered was started with -I, with which it ignores PYTHONPATH: python -uI probe.py" in said
    said = opguard("run", "--log", tmp_path / "log", "--", "bash", "run.sh", cwd=tree).stderr
    assert "python -uI probe.py" in said
    # The program's own flags are none of Python's.
    (tree / "run.sh").write_text("python probe.py -I\n")
    assert "could not be entered was" not in run_under(opguard, tree, tmp_path, "bash", "run.sh")


def test_the_library_needs_the_c_library_alone():
    needed = subprocess.run(["readelf", "-d", LIBRARY], capture_output=True, text=True, check=True).stdout
    assert [line.split("[")[1].rstrip("]") for line in needed.splitlines() if "(NEEDED)" in line] == ["libc.so.6"]


TRAIN = """
import megatron_like
import torch
torch.manual_seed(0)
w = torch.nn.Parameter(torch.ones(4))
optimizer = torch.optim.SGD([w], lr=0.1)
for step in range(2):
    loss = (w * megatron_like.scale()).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("step", step, "loss", loss.item())
"""


@pytest.mark.parametrize("launch", ["python train.py", "torchrun --nproc-per-node 1 train.py", "env -i PATH=\"$PATH\" PYTHONPATH=$PYTHONPATH python train.py", "uv run --offline --no-project --python {python} train.py"])
def test_a_launch_script_with_its_own_path_is_compared(opguard, tmp_path, launch):
    """As Megatron's scripts do: the code is found through the PYTHONPATH that the script sets."""
    pytest.importorskip("torch")
    for side, scale in (("a", "2.0"), ("b", "3.0")):
        folder = tmp_path / side
        (folder / "lib").mkdir(parents=True)
        (folder / "train.py").write_text(TRAIN)
        (folder / "lib" / "megatron_like.py").write_text(f"import torch\ndef scale():\n    return torch.tensor(1.0) * {scale}\n")
        command = launch.replace("{python}", shlex.quote(sys.executable))
        (folder / "run.sh").write_text(f"export PYTHONPATH=$PWD/lib:$PYTHONPATH\n{command}\n")
    out = tmp_path / "answer.json"
    ran = opguard("diff", tmp_path / "a", tmp_path / "b", "--json", out, "--", "bash", "run.sh")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    pivot = json.loads(out.read_text())["pivot"]
    assert (Path(pivot["b"]["file"]).name, pivot["b"]["line"]) == ("megatron_like.py", 3), pivot
