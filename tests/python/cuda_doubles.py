"""NVIDIA's libraries without a GPU: the sources of tests/inject, compiled once a session."""

import subprocess
from pathlib import Path

import pytest

from conftest import build_dir

TESTS = Path(__file__).resolve().parents[1]
INJECT = build_dir() / "python" / "opguard" / "opguard_inject.so"


def compile_library(source, out, *flags):
    command = ["cc", "-shared", "-fPIC", "-w", "-O1", "-I", str(TESTS.parent / "src"), "-o", str(out), str(source), *map(str, flags)]
    subprocess.run(command + ["-lpthread", "-ldl"], check=True)
    return out


@pytest.fixture(scope="session")
def doubles(tmp_path_factory):
    """A folder with libcuda.so.1, libcudart.so.12, program.so, which is linked with the runtime, and CUPTI as in a
    toolkit (CUDA_HOME)."""
    folder = tmp_path_factory.mktemp("doubles")
    inject = TESTS / "inject"
    compile_library(inject / "cuda_double.c", folder / "libcuda.so.1", "-Wl,-soname,libcuda.so.1")
    cupti = folder / "extras" / "CUPTI" / "lib64"
    cupti.mkdir(parents=True)
    compile_library(inject / "cupti_double.c", cupti / "libcupti.so.12")
    versions = folder / "cudart.map"
    versions.write_text("libcudart.so.12 { global: *; };\n")  # as NVIDIA's: names have a version
    runtime = folder / "libcudart.so.12"
    compile_library(inject / "cudart_double.c", runtime, "-Wl,-soname,libcudart.so.12", f"-Wl,--version-script={versions}")
    compile_library(inject / "program.c", folder / "program.so", runtime, folder / "libcuda.so.1", f"-Wl,-rpath,{folder}")
    return folder


@pytest.fixture(scope="session")
def example_plugin(tmp_path_factory):
    out = tmp_path_factory.mktemp("plugin") / "example_activities.so"
    return compile_library(TESTS / "device" / "example_plugin" / "example_activities.c", out)
