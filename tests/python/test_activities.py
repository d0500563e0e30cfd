"""The preflight on a device, with doubles of NVIDIA's libraries and the example plugin: which kernels each boundary
launched, how they were seen, and what is said where they were not."""

import json
import subprocess
import sys

import pytest

from cuda_doubles import INJECT, TESTS, compile_library, doubles, example_plugin  # noqa: F401
from conftest import clean_environment

pytest.importorskip("torch")

# A library of operators, no source of the user's: kernels are launched in forward and backward, through the runtime and
# by a launcher that asks the driver itself.
OPERATORS = """import ctypes, os, torch
lib = ctypes.CDLL(os.environ["DOUBLES"] + "/program.so")
for name in ("launch", "launch_directly"):
    getattr(lib, name).argtypes = [ctypes.c_char_p, ctypes.c_void_p]
lib.copy.argtypes = [ctypes.c_void_p]
driver = ctypes.CDLL(os.environ["DOUBLES"] + "/libcuda.so.1")
KEPT = [name.encode() for name in ("_Z3addIfEvPT_i", "_Z3mulPf", "triton_kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "lost_kernel")]

@torch.library.custom_op("demo::add", mutates_args=())
def add(x: torch.Tensor) -> torch.Tensor:
    assert lib.launch(KEPT[0], 0x11) == 0
    assert lib.copy(0x11) == 0
    return x + 1

@torch.library.custom_op("demo::mul", mutates_args=())
def mul(x: torch.Tensor) -> torch.Tensor:
    assert lib.launch(KEPT[1], 0x12) == 0
    assert lib.launch_directly(KEPT[2], 0x12) == 0
    return x * 2

@torch.library.custom_op("demo::reduce", mutates_args=())
def reduce(x: torch.Tensor) -> torch.Tensor:
    assert lib.launch(KEPT[3], 0x13) == 0
    return x.clone()

add.register_autograd(lambda ctx, g: mul(g))
"""

PROGRAM = """import ctypes, os, threading, torch
from operators import KEPT, add, driver, lib, mul, reduce
driver.cuInit(0)

class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return mul(x)
    @staticmethod
    def backward(ctx, g):
        return g * 2

def train():
    x = torch.ones(3, requires_grad=True)
    y = add(x)
    z = Own.apply(y)
    thread = threading.Thread(target=lambda: reduce(z.detach()))
    thread.start(); thread.join()
    z.sum().backward()
    lib.launch(KEPT[4], None)

for _ in range(2):
    train()
"""


# Makes this torch one that says it was built with CUDA.
WITH_CUDA = """import importlib.machinery, os
if os.environ.get("TORCH_CUDA"):
    loader = importlib.machinery.SourceFileLoader
    execute = loader.exec_module
    def exec_module(self, module):
        execute(self, module)
        if module.__name__ == "torch.version":
            module.cuda = os.environ["TORCH_CUDA"]
    loader.exec_module = exec_module
"""


@pytest.fixture
def preflight(opguard, tmp_path, doubles):
    """preflight(program, mode, ...) -> (plan, trace, stdout); environment added."""
    assert INJECT.exists()
    tree = tmp_path / "tree"
    tree.mkdir()
    library = tmp_path / "library"
    library.mkdir()
    (library / "operators.py").write_text(OPERATORS)
    (library / "sitecustomize.py").write_text(WITH_CUDA)

    def run(program, mode, cupti="", command=(sys.executable, "train.py"), **environment):
        (tree / "train.py").write_text(program)
        env = clean_environment()
        env.update(PYTHONPATH=str(library), DOUBLES=str(doubles), CUDA_HOME=str(doubles), CUPTI_DOUBLE=cupti, LD_LIBRARY_PATH=str(doubles), **environment)
        work = tmp_path / ("work%d" % len(list(tmp_path.iterdir())))
        plan = tmp_path / "plan.json"
        ran = opguard("preflight", "-o", plan, "--activities", mode, "--work", work, "--", *command, cwd=tree, env=env)
        assert ran.returncode == 0, ran.stderr
        traces = [json.loads(path.read_text()) for path in sorted((work / "trace").glob("*.json"))]
        return json.loads(plan.read_text()), traces[0], ran

    return run


def of(plan):
    """{text: (kernels, transfers)} of the boundaries that launched."""
    return {b["text"]: (b.get("kernels", {}), b.get("transfers", {})) for b in plan["boundaries"] if "kernels" in b}


EXPECTED = {
    "add(x)": {"add<float>": 2, "mul": 2, "triton_kernel": 2},  # its backward launches too
    "mul(x)": {"mul": 2, "triton_kernel": 2},
    "reduce(z.detach())": {"ncclDevKernel_AllReduce_Sum_f32_RING_LL": 2},
}


def check_program(plan, copies):
    kernels = {text: names for text, (names, _) in of(plan).items()}
    assert kernels == EXPECTED
    assert {text: transfers for text, (_, transfers) in of(plan).items() if transfers} == {"add(x)": {copies: 2}}
    devices = plan["devices"]
    assert (devices["kernels"], devices["attributed"], devices["dropped"]) == (14, 12, 0)
    assert devices["rest"] == {"lost_kernel": 2}


@pytest.mark.parametrize("version", [18, 28, 130000, 130500])
def test_cupti_of_any_version(preflight, version):
    plan, trace, ran = preflight(PROGRAM, "cupti", "api=%d" % version)
    check_program(plan, "memcpy HtoD")
    name = "13.%d" % (version // 100 % 100) if version > 1000 else "API %d" % version
    assert plan["devices"]["sources"] == ["cuda: CUPTI " + name]
    assert "libcupti.so.12" in ran.stdout and "kernels: 85.7 % of 14 belong to a boundary" in ran.stdout
    assert "2 of no boundary: lost_kernel" in ran.stdout
    (device,) = trace["devices"]
    assert device["clock"] == "device" and device["kernels"] == 14
    (use,) = [use for use in trace["uses"] if use["kernels" if "kernels" in use else "phases"].get("_Z3addIfEvPT_i")]
    assert use["streams"] == ["cuda:1/17", "cuda:1/18"]  # forward's and backward's
    assert use["kernel_phases"] == {"forward": 2, "backward": 4}
    assert use["device_ns"] == 500 * 8


def test_cupti_starts_inside_the_operator_that_first_uses_the_device(preflight):
    """Its number was pushed before there was a CUPTI to tell."""
    plan, _, _ = preflight(PROGRAM.replace("driver.cuInit(0)\n", ""), "cupti")
    check_program(plan, "memcpy HtoD")


def test_an_injection_of_another_tool_stays(preflight, tmp_path):
    """Then the driver does not call us: CUPTI starts when torch has initialised CUDA."""
    begin = "torch.cuda._lazy_init = None\nfor call, *_ in list(torch.cuda._queued_calls): call()\n"
    plan, _, _ = preflight(PROGRAM.replace("\nclass Own", begin + "\nclass Own", 1), "cupti", CUDA_INJECTION64_PATH="/another/tool.so")
    check_program(plan, "memcpy HtoD")


def test_records_in_many_buffers(preflight):
    """Two records a buffer, the device's before those that say whose they are."""
    plan, _, _ = preflight(PROGRAM, "cupti", "small")
    check_program(plan, "memcpy HtoD")


def test_dropped_records_are_counted(preflight):
    plan, trace, ran = preflight(PROGRAM, "cupti", "drop=5")
    assert plan["devices"]["dropped"] == 5 and trace["devices"][0]["dropped"] == 5
    assert "note: 5 device activities were dropped" in ran.stdout


def test_a_buffer_that_cannot_be_read_to_its_end_is_a_loss(preflight):
    plan, _, _ = preflight(PROGRAM, "cupti", "broken")
    assert plan["devices"]["dropped"] > 0 and plan["devices"]["kernels"] < 14


@pytest.mark.parametrize("cupti, why", [
    ("busy", "another tool holds CUPTI (a profiler, Nsight): CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"),
    ("forbidden", "profiling is for administrators here"),
    ("api=17", "API 17, of a CUDA before 12"),
])  # fmt: skip
def test_without_cupti_launches_are_intercepted(preflight, cupti, why):
    # Nothing is preloaded, nothing is seen, and why is said.
    plan, trace, ran = preflight(PROGRAM, "cupti", cupti)
    assert why in ran.stdout and plan["devices"]["kernels"] == 0
    # A torch with CUDA, and the library preloaded, as `auto` does it where there is a GPU.
    plan, trace, ran = preflight(PROGRAM, "auto", cupti, TORCH_CUDA="12.8", LD_PRELOAD=str(INJECT))
    check_program(plan, "memcpy HtoD")
    assert "interception of launches (no CUPTI: " in ran.stdout and why in ran.stdout


def test_interception(preflight):
    plan, trace, ran = preflight(PROGRAM, "launches")
    check_program(plan, "memcpy HtoD")
    assert plan["devices"]["sources"] == ["cuda: interception of launches"]
    assert "times are the host's" in ran.stdout
    assert trace["devices"][0]["clock"] == "host"
    (use,) = [use for use in trace["uses"] if "_Z3addIfEvPT_i" in use.get("kernels", {})]
    assert use["streams"] == ["cuda:1/1", "cuda:1/2"] and use["device_ns"] > 0


def test_interception_of_a_runtime_whose_driver_calls_are_hidden(preflight):
    """An outer call counts where no inner one was seen."""
    plan, _, _ = preflight(PROGRAM, "launches", CUDART_DOUBLE="hidden")
    check_program(plan, "memcpy HtoD")


VERSIONS = """import ctypes, torch
from operators import KEPT, driver, lib
lib.launch_linked.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
driver.cuInit(0)

@torch.library.custom_op("demo::versions", mutates_args=())
def versions(x: torch.Tensor) -> torch.Tensor:
    assert lib.versions() == 0
    assert lib.launch_linked(KEPT[1], None) == 0
    return x + 1

versions(torch.ones(1))
"""


def test_interception_hands_on_every_version_of_a_function(preflight):
    """Per-thread default streams, a newer version with other parameters, one unknown to us, and libraries that are linked
    with the driver."""
    plan, _, _ = preflight(VERSIONS, "launches")
    launched = {text: found for text, found in of(plan).items()}
    assert launched == {
        "versions(torch.ones(1))": ({"mul": 1, "per_thread_kernel": 1}, {"memset": 1, "synchronize context": 1})
    }


RUNTIME = """import torch
from operators import KEPT, driver, lib
driver.cuInit(0)

@torch.library.custom_op("demo::calls", mutates_args=())
def calls(x: torch.Tensor) -> torch.Tensor:
    assert lib.runtime_calls(KEPT[1]) == 0
    return x + 1

calls(torch.ones(1))
"""


@pytest.mark.parametrize("mode, kernels, transfers", [
    ("launches", {"mul": 1, "cuda graph": 1, "cublasLtMatmul": 1}, {"memset": 1, "synchronize stream": 1, "synchronize device": 1}),
    ("cupti", {"mul": 1, "graph": 1, "gemm": 1}, {"memset": 1}),
])  # fmt: skip
def test_calls_of_the_runtime(preflight, mode, kernels, transfers):
    """Each with all its arguments, whoever stands between; here the driver's own calls are not seen."""
    plan, _, _ = preflight(RUNTIME, mode)
    assert of(plan) == {"calls(torch.ones(1))": (kernels, transfers)}


def test_example_plugin(preflight, example_plugin):
    plan, trace, ran = preflight(
        "import torch\nx = torch.ones(2, requires_grad=True)\ny = (x * 3).sum()\ny.backward()\n", "auto",
        OPGUARD_DEVICE_PLUGIN=str(example_plugin),
    )  # fmt: skip
    kernels = {text: names for text, (names, _) in of(plan).items()}
    assert kernels["torch.ones(2, requires_grad=True)"] == {"example::kernel": 1}
    assert sum(kernels["x * 3"].values()) >= 2  # forward and backward
    assert plan["devices"]["sources"] == ["example: the example's own counting"]
    assert plan["devices"]["kernels"] == plan["devices"]["attributed"] == trace["devices"][0]["kernels"]
    assert "device example: by the example's own counting" in ran.stdout


def test_a_plugin_that_is_none_is_said(preflight, doubles):
    _, trace, ran = preflight("import torch\ntorch.ones(2)\n", "auto", OPGUARD_DEVICE_PLUGIN=str(doubles / "program.so"))
    assert "opguard: no activities of a device: AttributeError" in ran.stderr and "devices" not in trace


def of_interface(folder, number):
    """The example plugin with a table that says another number; `oldest` and `newest` are those of src/device/plugin.h."""
    source = folder / "of_interface.c"
    source.write_text(
        '#include "device/plugin.h"\n'
        "enum { oldest = OPGUARD_DEVICE_OLDEST_ABI, newest = OPGUARD_DEVICE_ABI };\n"
        f"#undef OPGUARD_DEVICE_ABI\n#define OPGUARD_DEVICE_ABI ({number})\n"
        f'#include "{TESTS}/device/example_plugin/example_activities.c"\n'
    )
    return compile_library(source, folder / "of_interface.so")


def test_a_plugin_of_the_oldest_interface_is_served(preflight, tmp_path):
    plan, _, _ = preflight("import torch\ntorch.ones(2)\n", "auto", OPGUARD_DEVICE_PLUGIN=str(of_interface(tmp_path, "oldest")))
    assert plan["devices"]["kernels"] == 1


@pytest.mark.parametrize("number", ["oldest - 1", "newest + 1"])
def test_a_plugin_of_an_interface_we_do_not_know_is_said(preflight, tmp_path, number):
    _, trace, ran = preflight("import torch\ntorch.ones(2)\n", "auto", OPGUARD_DEVICE_PLUGIN=str(of_interface(tmp_path, number)))
    assert "of another version of the device interface" in ran.stderr and "devices" not in trace


GRAPH = """import ctypes, os, torch
double = ctypes.CDLL(os.environ["DOUBLES"] + "/libcuda.so.1")
cupti = ctypes.CDLL(os.environ["DOUBLES"] + "/extras/CUPTI/lib64/libcupti.so.12")
double.cuInit(0)
for f in (cupti.cupti_double_capture, cupti.cupti_double_clone):
    f.argtypes = [ctypes.c_uint64] * 2
double.cuda_double_run.argtypes = [ctypes.c_uint32, ctypes.c_uint32, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint64]
KEPT = b"captured_kernel"

@torch.library.custom_op("demo::captured", mutates_args=())
def captured(x: torch.Tensor) -> torch.Tensor:
    cupti.cupti_double_capture(100, 0)
    return x + 1

@torch.library.custom_op("demo::replay", mutates_args=())
def replay(x: torch.Tensor) -> torch.Tensor:
    double.cuda_double_run(0, 1, KEPT, 7, 200)
    double.cuda_double_run(0, 1, KEPT, 7, 300)
    return x + 1

x = captured(torch.ones(2))
cupti.cupti_double_clone(200, 100)
for _ in range(3):
    replay(x)
"""


def test_a_graphs_kernels_belong_to_where_they_were_captured(preflight):
    """Those of a node that was made before we listened belong to the replay."""
    plan, _, _ = preflight(GRAPH, "cupti")
    kernels = {text: names for text, (names, _) in of(plan).items()}
    assert kernels == {"captured(torch.ones(2))": {"captured_kernel": 3}, "replay(x)": {"captured_kernel": 3}}


PROFILED = PROGRAM.replace("for _ in range(2):\n    train()", """train()
from torch.autograd import profiler
from torch._C._profiler import ProfilerActivity
try:
    profiler._prepare_profiler(None, {ProfilerActivity.CUDA})
except TypeError:
    pass
cupti = ctypes.CDLL(os.environ["DOUBLES"] + "/extras/CUPTI/lib64/libcupti.so.12")
assert not cupti.cupti_double_subscribed()
train()
""")  # fmt: skip


def test_cupti_is_left_to_torchs_profiler(preflight):
    plan, trace, ran = preflight(PROFILED, "cupti")
    assert plan["devices"]["kernels"] == 7  # of the first step
    assert "CUPTI was left to torch.profiler" in ran.stdout


NATIVE = """import torch
from opguard.trace import kernels
seen = []

class Devices:
    push = staticmethod(seen.append)
    pop = staticmethod(lambda: seen.append("pop"))

class Tracer:
    devices, errors = Devices, 0
    def launches(self, use, phase):
        return (use, phase)

class Node(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        seen.append("ran")
        return g * 2

made = Node.apply(torch.ones(2, requires_grad=True))
kernels._Calls(Tracer()).follow_backward((made, 3, made), "use")
(made * 1).sum().backward()
print(seen)
"""


def test_what_an_extensions_own_backward_launches_is_its_calls():
    """No operator is dispatched there: the engine says when the node runs."""
    env = clean_environment()
    env["PYTHONPATH"] = str(INJECT.parents[1])
    ran = subprocess.run([sys.executable, "-c", NATIVE], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    assert ran.stdout == "[('use', 'backward'), 'ran', 'pop']\n", ran.stderr


def test_a_program_that_never_uses_the_device_has_none(preflight):
    plan, trace, _ = preflight("import torch\ntorch.ones(2) + 1\n", "cupti")
    assert "devices" not in plan and "devices" not in trace


def test_a_fork_before_the_first_use(preflight):
    """Nothing of ours initialises the driver before the program does; the child's launches are the child's."""
    plan, trace, _ = preflight(PROGRAM.replace("driver.cuInit(0)\n", "import os\npid = os.fork()\nif pid: os.waitpid(pid, 0); raise SystemExit\ndriver.cuInit(0)\n"), "cupti")
    assert plan["devices"]["kernels"] == 14


def test_operators_only(preflight, example_plugin):
    plan, trace, _ = preflight(PROGRAM, "operators", OPGUARD_DEVICE_PLUGIN=str(example_plugin))
    assert "devices" not in plan and of(plan) == {}


def test_what_the_environment_holds_stays(preflight, doubles):
    """Another preloaded library comes before ours; without need nothing is injected, and that library not preloaded."""
    program = "import os, torch\ntorch.ones(1)\nprint(os.environ.get('LD_PRELOAD'), os.environ.get('CUDA_INJECTION64_PATH'))\n"
    other = str(doubles / "libcuda.so.1")
    _, _, ran = preflight(program, "launches", LD_PRELOAD=other)
    keep = INJECT.parent / "opguard_keep.so"
    assert "%s:%s:%s %s\n" % (other, keep, INJECT, INJECT) in ran.stderr
    _, _, ran = preflight(program, "cupti", CUDA_INJECTION64_PATH=other)
    assert "%s %s\n" % (keep, other) in ran.stderr
    _, _, ran = preflight(program, "operators")
    assert "%s None\n" % keep in ran.stderr


def test_preloaded_dlsym_keeps_its_callers_place(doubles):
    """RTLD_NEXT and RTLD_DEFAULT mean the asking object, whatever stands before the C library's dlsym."""
    ask = """import ctypes, os
lib = ctypes.CDLL(os.environ["DOUBLES"] + "/program.so", mode=ctypes.RTLD_GLOBAL)
lib.next_of_launch.restype = ctypes.c_void_p
own = ctypes.cast(ctypes.CDLL(os.environ["DOUBLES"] + "/libcudart.so.12").cudaLaunchKernel, ctypes.c_void_p).value
print(lib.next_of_launch() == own)
"""
    env = clean_environment()
    env.update(DOUBLES=str(doubles))
    seen = []
    for preload in ("", str(INJECT)):
        env["LD_PRELOAD"] = preload
        ran = subprocess.run([sys.executable, "-c", ask], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
        seen.append(ran.stdout)
    assert seen == ["True\n", "True\n"]
