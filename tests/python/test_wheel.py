"""The wheel: one build puts the commands on PATH and serves every Python; it links no libtorch."""
import importlib.util
import os
import subprocess
import sys
import zipfile

import pytest

from conftest import ROOT, clean_environment

pytestmark = pytest.mark.slow


def run(*command, **kwargs):
    # The compilers by the names CMake finds them by: what the build has compiled already comes out of ccache.
    env = {"CC": "cc", "CXX": "c++", **clean_environment()}
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, env=env, **kwargs)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
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


def test_the_wheel_is_abi3_and_complete(wheel):
    assert wheel.name.startswith("opguard_instrument-") and "-cp310-abi3-" in wheel.name
    names = zipfile.ZipFile(wheel).namelist()
    # The extension, and what is loaded into programs, which is none of Python's.
    assert {n for n in names if n.endswith(".so")} == {"opguard/_rt.abi3.so", "opguard/opguard_inject.so", "opguard/opguard_keep.so"}
    assert "opguard/__init__.py" in names and "opguard/boot/sitecustomize.py" in names
    assert any(n.startswith("opguard/templates/") and n.endswith(".json") for n in names)
    scripts = {n.rsplit("/", 1)[1] for n in names if ".data/scripts/" in n}
    assert {"opguard", "opguard-instrument"} <= scripts
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
