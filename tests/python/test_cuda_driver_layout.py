"""Our declarations of the driver's functions and numbers (src/device/cuda_driver.h, src/inject) against NVIDIA's cuda.h, of each version that is installed:
OPGUARD_CUDA_INCLUDE as in test_cupti_layout.py, the toolkit's, Triton's and the PyPI wheels'. Skipped where there is none."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"

# The driver's ABI: integers, enumerations and pointers go in general registers, so their sizes are what counts.
SAME = """
#include <cstddef>
#include <cstdint>
#include <type_traits>
template <typename A> constexpr bool in_register = std::is_pointer_v<A> || std::is_integral_v<A> || std::is_enum_v<A>;
template <typename A, typename B> constexpr bool alike = in_register<A> && in_register<B> && sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>;
template <> inline constexpr bool alike<void, void> = true;
template <typename F, typename G> struct Same : std::false_type {};
template <typename R, typename S, typename... A, typename... B> requires(sizeof...(A) == sizeof...(B))
struct Same<R (*)(A...), S (*)(B...)> { static constexpr bool value = alike<R, S> && (alike<A, B> && ...); };
"""
NUMBERS = {
    "kCudaAttributeMultiprocessors": "CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT", "kCudaHostPortable": "CU_MEMHOSTALLOC_PORTABLE",
    "kCudaHostDeviceMap": "CU_MEMHOSTALLOC_DEVICEMAP", "kCudaCaptureActive": "CU_STREAM_CAPTURE_STATUS_ACTIVE",
    "kCudaCaptureModeRelaxed": "CU_STREAM_CAPTURE_MODE_RELAXED", "kCudaJitErrorLog": "CU_JIT_ERROR_LOG_BUFFER",
    "kCudaJitErrorLogBytes": "CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES",
}  # fmt: skip
# Functions that the interception stands before: exported by name from driver_hooks.cc.
EXPORTED = ("cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchCooperativeKernel", "cuModuleGetFunction")


def headers():
    folders = os.environ.get("OPGUARD_CUDA_INCLUDE", "").replace(";", ":").split(":")
    folders.append(os.environ.get("CUDA_HOME", "/usr/local/cuda") + "/include")
    for entry in map(Path, filter(None, sys.path)):
        folders += map(str, sorted(entry.glob("nvidia/*/include")) + sorted(entry.glob("triton/backends/nvidia/include")))
    found = {Path(folder, "cuda.h").resolve() for folder in folders if folder and Path(folder, "cuda.h").is_file()}
    return sorted(path for path in found if "define CUDA_VERSION" in path.read_text(errors="replace"))


def program(header):
    declared = set(re.findall(r"CUDAAPI (cu\w+)\(", header.read_text(errors="replace")))
    # Ours first, under other names: cuda.h declares its own.
    lines = ['#include "device/cuda_driver.h"', '#include "inject/driver.h"'] + ["#define %s %s_ours" % (name, name) for name in EXPORTED]
    lines += ['#include "inject/driver_hooks.cc"']
    lines += ["#undef " + name for name in EXPORTED]
    lines += ["#define __CUDA_API_VERSION_INTERNAL", '#include "%s"' % header, SAME]

    def same(ours, name):
        lines.append('static_assert(Same<%s, decltype(&::%s)>::value, "%s");' % (ours, name, name))

    own = (SOURCE / "device" / "cuda_driver.h").read_text()
    members = re.findall(r"int \(\*(cu\w+)\)\(", own)
    assert len(members) > 15
    for name in members:
        same("decltype(opguard::CudaDriver::%s)" % name, name)
    bound = re.findall(r'bind\(handle, "(cu\w+)", g_driver\.(\w+)\)', (SOURCE / "inject" / "driver.cc").read_text())
    assert len(bound) > 10
    for name, member in bound:
        if name in declared:  # of later versions
            same("decltype(opguard::Driver::%s)" % member, name)
    hooks = re.findall(r'follow<(\w+)>\("(cu\w+)"\)', (SOURCE / "inject" / "driver_hooks.cc").read_text())
    assert len(hooks) > 20
    lines.append("namespace opguard { namespace {")
    for tell, name in hooks:
        if name != "cuCtxSynchronize":  # its second version has a parameter more, which the first ignores
            same("decltype(&Hook<%s, 0>::call)" % tell, name + "_v2" if name + "_v2" in declared else name)
    lines += ["static_assert(offsetof(LaunchConfig, stream) == offsetof(CUlaunchConfig, hStream));"]
    lines += ["static_assert(static_cast<long>(%s) == static_cast<long>(%s));" % pair for pair in NUMBERS.items()]
    return "\n".join(lines) + "\n}}\n"


def test_declarations_are_those_of_the_installed_headers(tmp_path):
    found = headers()
    for n, header in enumerate(found):
        source = tmp_path / ("driver%d.cc" % n)
        source.write_text(program(header))
        done = subprocess.run(["c++", "-std=c++20", "-fsyntax-only", "-w", "-I", str(SOURCE), str(source)], stderr=subprocess.PIPE, universal_newlines=True)
        assert done.returncode == 0, "%s\n%s" % (header, done.stderr[:3000])
    if not found:
        pytest.skip("no cuda.h here")
    # It can fail: a parameter of another size does.
    wrong = source.read_text().replace("decltype(&::cuStreamGetId)", "decltype(&::cuDeviceGet)")
    source.write_text(wrong)
    done = subprocess.run(["c++", "-std=c++20", "-fsyntax-only", "-w", "-I", str(SOURCE), str(source)], stderr=subprocess.PIPE, universal_newlines=True)
    assert done.returncode != 0 and "cuStreamGetId" in done.stderr
