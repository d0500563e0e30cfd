"""Our declarations of CUPTI's records (src/inject/cupti_api.h) against NVIDIA's own headers, of each version that is
installed: OPGUARD_CUDA_INCLUDE (folders, ':' between them, those of one version together, ';' between versions), the
toolkit's, and the PyPI wheels of this interpreter. Skipped where there are none."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from test_cuda_driver_layout import SAME

SOURCE = Path(__file__).resolve().parents[2] / "src"

# Our struct: (NVIDIA's by name, the last number of them that exists is taken too), {our field: NVIDIA's}
RECORDS = {
    "KernelRecord": ("CUpti_ActivityKernel", 9, dict(kind="kind", start_ns="start", end_ns="end", device="deviceId", context="contextId", stream="streamId", grid="gridX", block="blockX", correlation="correlationId", name="name", graph_node="graphNodeId", graph="graphId")),
    "MemcpyRecord": ("CUpti_ActivityMemcpy", 5, dict(kind="kind", copy_kind="copyKind", bytes="bytes", start_ns="start", end_ns="end", device="deviceId", stream="streamId", correlation="correlationId", graph_node="graphNodeId", graph="graphId")),
    "MemcpyPeerRecord": ("CUpti_ActivityMemcpyPtoP", 4, dict(kind="kind", copy_kind="copyKind", bytes="bytes", start_ns="start", end_ns="end", device="deviceId", stream="streamId", correlation="correlationId", graph_node="graphNodeId", graph="graphId")),
    "MemsetRecord": ("CUpti_ActivityMemset", 4, dict(kind="kind", bytes="bytes", start_ns="start", end_ns="end", device="deviceId", stream="streamId", correlation="correlationId", graph_node="graphNodeId", graph="graphId")),
    "SynchronizationRecord": ("CUpti_ActivitySynchronization", 1, dict(kind="kind", type="type", start_ns="start", end_ns="end", correlation="correlationId", stream="streamId")),
    "ExternalCorrelationRecord": ("CUpti_ActivityExternalCorrelation", 1, dict(kind="kind", external_kind="externalKind", external="externalId", correlation="correlationId")),
    "ResourceData": ("CUpti_ResourceData", 1, dict(context="context", descriptor="resourceDescriptor")),
    "GraphData": ("CUpti_GraphData", 1, dict(graph="graph", node="node", original_node="originalNode", executable="graphExec")),
}  # fmt: skip

CONSTANTS = dict(
    kMemcpy="CUPTI_ACTIVITY_KIND_MEMCPY", kMemset="CUPTI_ACTIVITY_KIND_MEMSET", kDriver="CUPTI_ACTIVITY_KIND_DRIVER",
    kRuntime="CUPTI_ACTIVITY_KIND_RUNTIME", kConcurrentKernel="CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL",
    kMemcpyPeer="CUPTI_ACTIVITY_KIND_MEMCPY2", kSynchronization="CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
    kExternalCorrelation="CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION", kCustom2="CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2",
    kDomainResource="CUPTI_CB_DOMAIN_RESOURCE", kGraphNodeCreated="CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED",
    kGraphNodeCloned="CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED", kFlushForced="CUPTI_ACTIVITY_FLAG_FLUSH_FORCED",
    kMaxLimitReached="CUPTI_ERROR_MAX_LIMIT_REACHED", kInsufficientPrivileges="CUPTI_ERROR_INSUFFICIENT_PRIVILEGES",
    kMultipleSubscribers="CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
)  # fmt: skip


def versions():
    """Include folders, one list for each version."""
    found = [group.split(":") for group in os.environ.get("OPGUARD_CUDA_INCLUDE", "").split(";") if group]
    toolkit = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    found.append([toolkit + "/include", toolkit + "/extras/CUPTI/include"])
    for entry in map(Path, filter(None, sys.path)):
        wheels = [str(folder) for folder in sorted(entry.glob("nvidia/*/include"))]
        found.append([folder for folder in wheels if "/cu13/" not in folder])
        found.append([folder for folder in wheels if "/cu13/" in folder])
    return [folders for folders in found if any(Path(folder, "cupti_activity.h").exists() for folder in folders)]


def program(headers):
    lines = ["#include <cstddef>", "#include <type_traits>", "#include <cupti.h>"]
    activity = next(Path(folder) for folder in headers if Path(folder, "cupti_activity.h").exists())
    declared = "".join(path.read_text(errors="replace") for path in activity.glob("cupti_*.h"))
    lines += ['#include "inject/cupti_api.h"', "namespace own = opguard::cupti;"]
    for ours, (theirs, first, fields) in RECORDS.items():
        numbers = {int(n or 1) for n in re.findall(r"\} %s(\d*);" % theirs, declared)}
        taken = [n for n in sorted(numbers) if n >= first]
        assert taken, theirs
        for n in taken:
            name = theirs + (str(n) if n > 1 else "")
            lines.append("static_assert(sizeof(own::%s) <= sizeof(%s));" % (ours, name))
            for mine, other in fields.items():
                lines.append("static_assert(offsetof(own::%s, %s) == offsetof(%s, %s));" % (ours, mine, name, other))
                size = "sizeof(own::%s::%s) %s sizeof(%s::%s)" % (ours, mine, ">=" if mine in ("grid", "block") else "==", name, other)
                lines.append("static_assert(%s);" % size)
    lines.append(SAME)
    library = (SOURCE / "inject" / "cupti_library.cc").read_text()
    cupti_names = len(re.findall(r'"cupti\w+"', library))
    bound = re.findall(r'(?:find_function\(handle, |need\()"(cupti\w+)", f\.(\w+)\)', library)
    assert 0 < len(bound) == cupti_names, bound
    lines += ['static_assert(Same<decltype(own::Functions::%s), decltype(&::%s)>::value, "%s");' % (mine, other, other) for other, mine in bound]
    callbacks = dict(Callback="CUpti_CallbackFunc", BufferRequested="CUpti_BuffersCallbackRequestFunc", BufferCompleted="CUpti_BuffersCallbackCompleteFunc")
    lines += ['static_assert(Same<own::%s, %s>::value, "%s");' % (mine, other, mine) for mine, other in callbacks.items()]
    for mine, other in CONSTANTS.items():
        lines.append("static_assert(static_cast<int>(own::%s) == static_cast<int>(%s));" % (mine, other))
    return "\n".join(lines) + "\n"


def test_declarations_are_those_of_the_installed_headers(tmp_path):
    checked = 0
    for headers in versions():
        source = tmp_path / ("layout%d.cc" % checked)
        source.write_text(program(headers))
        include = [flag for folder in headers for flag in ("-isystem", folder)]
        done = subprocess.run(
            ["c++", "-std=c++20", "-fsyntax-only", "-I", str(SOURCE), *include, str(source)],
            stderr=subprocess.PIPE, universal_newlines=True,
        )  # fmt: skip
        if "host_defines.h: No such file" in done.stderr or "cuda.h: No such file" in done.stderr:
            continue  # CUPTI's headers without those of the toolkit that they include
        assert done.returncode == 0, done.stderr
        checked += 1
    if not checked:
        pytest.skip("no CUPTI headers here")
