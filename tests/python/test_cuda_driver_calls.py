"""The recorder and the comparison of tests/gpu/check_driver_calls.py, with the double of the driver: a program whose probes only launch passes, one
that waits or orders streams because of them does not."""

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import build_dir, clean_environment

GPU = Path(__file__).resolve().parents[1] / "gpu"
sys.path.insert(0, str(GPU))
from driver_calls import Call, compare, read  # noqa: E402

pytest.importorskip("torch")
RECORDER = build_dir() / "tests" / "gpu" / "driver_recorder.so"
PLUGIN = build_dir() / "tests" / "gpu" / "cuda_plugin.so"
DOUBLE = build_dir() / "tests" / "device" / "double"
pytestmark = pytest.mark.skipif(platform.machine() != "x86_64" or not PLUGIN.exists(), reason="the recorder is for x86-64")

PROGRAM = """
import ctypes, os, sys, threading
sys.path.insert(0, os.environ["GPU"])
path, how = sys.argv[1:]
recorder = ctypes.CDLL(os.environ["LD_PRELOAD"])
cuda = ctypes.CDLL("libcuda.so.1")
memory = ctypes.create_string_buffer(1 << 16)
address = ctypes.c_uint64(ctypes.addressof(memory))
if how != "bare":
    from plugin import Plugin, Tensor
    plugin, shape, stride = Plugin(os.environ["PLUGIN"]), (ctypes.c_int64 * 1)(1 << 14), (ctypes.c_int64 * 1)(4)
    tensors = (Tensor * 1)(Tensor(address.value, 4, 0, 12, 1, shape, stride, 7))
def probe(stream):
    if how == "bare": return
    plugin.launch(tensors, stream.value)
    if how == "waits": cuda.cuStreamSynchronize(stream)
    if how == "orders": cuda.cuStreamWaitEvent(two, event, 0)
recorder.driver_recorder_start()
cuda.cuInit(0)
context, one, two, event, graph, runs = (ctypes.c_void_p() for _ in range(6))
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
for stream in (one, two): cuda.cuStreamCreate(ctypes.byref(stream), 1)
cuda.cuEventCreate(ctypes.byref(event), 0)
for step in range(3):
    probe(one)
    cuda.cuMemsetD8Async(address, 1, ctypes.c_size_t(64), one)
    cuda.cuEventRecord(event, one)
    cuda.cuStreamWaitEvent(two, event, 0)
    probe(two)
    cuda.cuMemsetD8Async(address, 2, ctypes.c_size_t(64), two)
def other():
    cuda.cuCtxSetCurrent(context)
    cuda.cuMemsetD8Async(address, 3, ctypes.c_size_t(64), two)
    probe(two)
thread = threading.Thread(target=other)
thread.start(); thread.join()
cuda.cuStreamBeginCapture_v2(one, 0)
cuda.cuMemsetD8Async(address, 4, ctypes.c_size_t(64), one)
probe(one) if how != "waits" else None
assert cuda.cuStreamEndCapture(one, ctypes.byref(graph)) == 0
cuda.cuGraphInstantiateWithFlags(ctypes.byref(runs), graph, ctypes.c_uint64(0))
for replay in range(2): cuda.cuGraphLaunch(runs, one)
for stream in (one, two): cuda.cuStreamSynchronize(stream)
recorder.driver_recorder_stop()
if how != "bare": assert len(plugin.drain(1)) == 1
assert recorder.driver_recorder_write(path.encode()) == 0
os._exit(0)
"""


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    folder, found = tmp_path_factory.mktemp("calls"), {}
    env = {**clean_environment(), "LD_PRELOAD": str(RECORDER), "LD_LIBRARY_PATH": str(DOUBLE), "GPU": str(GPU), "PLUGIN": str(PLUGIN),
           "DRIVER_RECORDER_OURS": "cuda_plugin.so"}  # fmt: skip
    for how in ("bare", "probed", "waits", "orders"):
        ran = subprocess.run([sys.executable, "-c", PROGRAM, str(folder / how), how], env=env, capture_output=True, text=True, timeout=120)
        assert ran.returncode == 0, ran.stderr
        found[how] = read(folder / how)
    return found


def test_every_call_is_recorded(calls):
    names = [c.name for c in calls["bare"]]
    assert names[:3] == ["cuInit", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent"] and names[-2:] == ["cuStreamSynchronize"] * 2
    assert names.count("cuMemsetD8Async") == 8 and len({c.thread for c in calls["bare"]}) == 2
    copies = [c.stream for c in calls["probed"] if c.name == "cuMemsetD8Async"]
    assert len(set(copies)) == 2 and 0 not in copies
    launches = [c for c in calls["probed"] if c.name == "cuLaunchKernel"]
    assert len(launches) == 8 and all(c.ours and c.kernel in ("opguard_og1_small", "opguard_og1_plain_small") and c.stream in copies for c in launches)


def test_a_program_whose_probes_only_launch_passes(calls):
    assert compare(calls["bare"], calls["probed"]) == []


def test_a_wait_is_found(calls):
    (why, *_) = compare(calls["bare"], calls["waits"])
    assert "thread 0" in why and "added in all {'cuStreamSynchronize stream " in why


def test_an_order_between_streams_is_found(calls):
    assert any("cuStreamWaitEvent" in why for why in compare(calls["bare"], calls["orders"]))


def test_a_program_that_calls_less_or_on_another_stream_is_found(calls):
    probed = calls["probed"]
    at = max(i for i, c in enumerate(probed) if c.name == "cuMemsetD8Async")
    assert compare(calls["bare"], probed[:at] + probed[at + 1 :])
    (other,) = {c.stream for c in probed if c.name == "cuMemsetD8Async"} - {probed[at].stream}
    assert compare(calls["bare"], probed[:at] + [probed[at]._replace(stream=other)] + probed[at + 1 :])


@pytest.mark.parametrize("name, kernel, said", [
    ("cuStreamSynchronize", "", "we call cuStreamSynchronize"),
    ("cuEventRecord", "", "we call cuEventRecord"),
    ("cuMemAlloc_v2", "", "we call cuMemAlloc"),
    ("cuSomethingNew", "", "we call cuSomethingNew 1 times"),
    ("cuLaunchKernel", "another", "a launch of ours is of another"),
])  # fmt: skip
def test_what_we_may_not_call(calls, name, kernel, said):
    wrong = Call(1, name, 0, True, kernel)
    assert any(said in why for why in compare(calls["bare"], calls["probed"] + [wrong]))
    assert any("from opguard" in why for why in compare(calls["bare"] + [wrong], calls["probed"]))


def test_kernels_of_a_compiler_may_differ(calls):
    fused = Call(calls["bare"][0].thread, "cuLaunchKernelEx", 0, False, "triton_fused")
    assert compare(calls["bare"], calls["probed"] + [fused]) and not compare(calls["bare"], calls["probed"] + [fused], kernels=False)


def test_how_often_a_program_polls_does_not_count(calls):
    poll = Call(calls["bare"][0].thread, "cuEventQuery", 0, False, "")
    assert not compare(calls["bare"], calls["probed"] + [poll])
    assert compare(calls["bare"], calls["probed"] + [poll._replace(ours=True)])


def test_without_probes_there_is_nothing_to_compare(calls):
    assert compare(calls["bare"], calls["bare"]) == ["the program with probes has no launch of ours"]
