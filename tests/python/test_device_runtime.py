"""Tensors that a plugin reads: the log is, field for field, the one of the processor's own reading (docs/design/device-runtime.md)."""

import pytest

import tensor_files
from compile_gpt import gpt
from cuda_doubles import compile_library, example_plugin  # noqa: F401
from device_logs import assert_equal_logs, only_log, served
from distributed import rank_logs, run_ranks
from runtime_log import ON_DEVICE, UNREADABLE, record, run_program
from test_runtime import TRAIN

torch = pytest.importorskip("torch")


SEEDED = "import random, numpy\nrandom.seed(0)\nnumpy.random.seed(0)\n"  # their states are recorded


def both(tmp_path, source, mode="full", env=None, **options):
    """The logs without the plugin and with it."""
    source = SEEDED + source
    env = {"OPGUARD_MODE": mode, **(env or {})}
    here = record(source, tmp_path / "here", env=env, **options)
    there = record(source, tmp_path / "there", env={**env, **served()}, **options)
    return here, there


@pytest.mark.parametrize("mode", ["full", "default", "trusted", "sdc"])
@pytest.mark.parametrize("reentrant", [False, True])
def test_training_is_recorded_as_ever(tmp_path, mode, reentrant):
    here, there = both(tmp_path, TRAIN.format(probed=True, reentrant=reentrant), mode)
    assert_equal_logs(here, there)


def test_a_plugin_of_the_older_interface_gives_no_digests(tmp_path):
    """Not known, which is not zero; all else is as ever."""
    source = SEEDED + TRAIN.format(probed=True, reentrant=False)
    here = record(source, tmp_path / "here")
    there = record(source, tmp_path / "there", env=served(abi=1))
    # Generators' states are bytes of ours, beside torch's tensor.
    read = [s for e in there.events if e.flags & ON_DEVICE and e.kind != "state" for s in e.slots if s.value is not None]
    assert read and all(s.digest is None for s in read)
    assert any(s.digest for e in here.events for s in e.slots)
    for event in here.events + there.events:
        for slot in event.slots:
            slot.digest = None
    assert_equal_logs(here, there)


BIG = """
import torch
torch.manual_seed(0)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.norm, self.b = torch.nn.Linear(96, 128), torch.nn.BatchNorm1d(128), torch.nn.Linear(128, 64)
    def forward(self, x):
        h = og("net.norm", self.norm)(og("net.a", self.a)(x))
        h = og("name.relu", h).iadd(1)
        mask = og("net.mask", torch.full)((64, 64), float("-inf"))
        mask = og("net.triu", torch.triu)(mask, diagonal=1)
        return og("net.b", self.b)(og("net.gelu", torch.nn.functional.gelu)(h)), mask
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=.1, momentum=.9)
for step in range(3):
    x = torch.randn(64, 96)
    for micro in range(2):
        y, mask = og("train.net", net)(x)
        loss = og("train.loss", (y + mask.clamp(min=-1)).square().mean)()
        og("train.backward", loss.backward)()
    og("train.clip", torch.nn.utils.clip_grad_norm_)(net.parameters(), 1.0)
    og("train.step", optimizer.step)()
    og("train.zero", optimizer.zero_grad)(set_to_none=step % 2 == 0)
"""


@pytest.mark.parametrize("mode", ["full", "default"])
def test_values_are_carried_masks_found_and_writes_seen_as_ever(tmp_path, mode):
    here, there = both(tmp_path, BIG, mode)
    assert_equal_logs(here, there)
    flags = {slot.flags for event in there.events for slot in event.slots}
    assert any(f & 16 for f in flags) and any(f & 32 for f in flags) == (mode == "default")


WRITES = """
import numpy, torch
torch.manual_seed(0)
def lib(code):
    space = {"__name__": "othermodule", "torch": torch}
    exec(code, space)
    return space["f"]
x, y = torch.randn(40, 40), torch.randn(40, 40)
write = lib("def f(a, b):\\n    a.data.numpy()[0, 0] = 5\\n    return b")
leave = lib("def f(a, b):\\n    return b + 1")
for _ in range(2):
    og.writes("w.writes", write)(x, y)
    og.writes("w.leaves", leave)(x, y)
    og("w.use", torch.relu)(x)
module = torch.nn.Linear(40, 40)
og("w.to", module.to)(torch.float64)
og("w.out", torch.add)(x, 1, out=y)
og("w.set", x)[3] = 1
og("w.numpy", numpy.add)(x.numpy(), 1, out=x.numpy())
for name, dtype in (("i8", torch.int8), ("b", torch.bool), ("c", torch.complex64), ("h", torch.float16), ("bf", torch.bfloat16), ("d", torch.float64)):
    z = torch.randn(6, 5, 7).to(dtype)
    og("t." + name, torch.clone)(z.permute(2, 0, 1)[1:, ::2])
    og("t.e." + name, torch.clone)(z[:, :, :1].expand(6, 5, 9))
og("t.conj", torch.clone)(torch.randn(4, dtype=torch.complex64).conj())
og("t.empty", torch.clone)(torch.empty(0, 4))
og("t.scalar", torch.clone)(torch.tensor(-3.0))
og("t.half", torch.clone)(torch.tensor([0., -2e4, -65504., float("-inf"), -0.]).half())
og("t.nan", torch.clone)(torch.tensor([0., -2e4, float("nan")]))
class Own:
    def __init__(self, params): self.params = list(params)
    def step(self):
        with torch.no_grad():
            for p in self.params: p.sub_(.1)
own = Own(module.parameters())
og("own.step", own.step)()
with torch.inference_mode():
    og("i.add", torch.add)(x, 1)
"""


@pytest.mark.parametrize("mode", ["full", "default"])
def test_writes_that_nothing_counts(tmp_path, mode):
    """Which inputs were written is decided when both values are there."""
    here, there = both(tmp_path, WRITES, mode)
    assert_equal_logs(here, there)
    assert [e.names("written") for e in there.of("w.writes")] == [["arg0"], []]
    assert not any(e.names("written") for e in there.of("w.leaves"))


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_compiled(tmp_path, backend):
    here, there = both(tmp_path, gpt(True, backend, sizes=(4, 4)))
    assert_equal_logs(here, there)


TRANSPLANTS = """
import torch
torch.manual_seed(0)
x = torch.zeros(2, requires_grad=True)
y = og("t.exp", torch.exp)(x)
print(y.tolist(), y._version)
y.sum().backward()
print(x.grad.tolist())
one = torch.ones(1)
wide = og("t.expand", one.expand)(2)
print(og("t.use", torch.add)(wide, 0).tolist(), one._version)
w = torch.nn.Parameter(torch.ones(2, dtype=torch.bfloat16))
print(og("t.half", torch.mul)(w, 2).tolist(), og("t.half", torch.mul)(w, 2).tolist())
print(og("t.bool", torch.eq)(one, torch.ones(2)).tolist())
"""


@pytest.mark.parametrize("mode", ["full", "default"])
def test_transplants(tmp_path, mode):
    """By torch on the device, as by ourselves in the processor's memory: what autograd saved is the new value, and no version is counted."""
    f32 = tensor_files.write(tmp_path / "f.safetensors", {"v": torch.tensor([7.0, 8.0])})
    bf16 = tensor_files.write(tmp_path / "h.safetensors", {"v": torch.tensor([3.0, 4.0], dtype=torch.bfloat16)})
    boolean = tensor_files.write(tmp_path / "b.safetensors", {"v": torch.tensor([False, True])})
    specs = [f"t.exp@0:out0={f32}", f"t.use@0:in/arg0={f32}", f"t.half@1:out0={bf16}", f"t.bool@0:out0={boolean}"]
    env = {"OPGUARD_MODE": mode, "OPGUARD_TRANSPLANT": "\n".join(specs)}
    told, logs = [], []
    for name, more in (("here", {}), ("there", served())):
        result = run_program(SEEDED + TRANSPLANTS, tmp_path / name, env={**env, **more})
        told.append((result.stdout, [line for line in result.stderr.splitlines() if "no transplant of" in line]))
        logs.append(only_log(tmp_path / name))
    assert told[0][0] == told[1][0] and told[1][0].startswith("[7.0, 8.0] 0\n[7.0, 8.0]\n")
    assert "[2.0, 2.0] [3.0, 4.0]\n[False, True]\n" in told[1][0]
    assert "[1.0, 1.0] 0\n" in told[1][0] and len(told[1][1]) == 1 and "single memory location" in told[1][1][0]
    assert_equal_logs(*logs)
    assert logs[1].settings["transplant"] == "done 3 of 4"


COLLECTIVES = """
torch.manual_seed(0)
from torch.nn.parallel import DistributedDataParallel
t = torch.arange(4.) + rank
og("reduce", dist.all_reduce)(t)
parts = [torch.empty(2) for _ in range(world)]
og("gather", dist.all_gather)(parts, torch.full((2,), rank + 1.))
work = og("async", dist.all_reduce)(t, async_op=True)
u = og("beside", torch.relu)(torch.ones(3))
work.wait()
dist.broadcast(u, src=0)
model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(40, 40), torch.nn.ReLU(), torch.nn.Linear(40, 3)))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(2):
    loss = og("loss", og("model", model)(torch.randn(8, 40)).square().mean)()
    og("backward", loss.backward)()
    og("step", optimizer.step)()
    optimizer.zero_grad()
say(loss.item())
"""


@pytest.mark.parametrize("mode", ["full", "default", "sdc"])
def test_ranks_with_ddp(tmp_path, mode, monkeypatch):
    logs = {}
    for name, env in (("here", {}), ("there", served())):
        logs[name] = tmp_path / name
        run_ranks(SEEDED + COLLECTIVES, 2, logs[name], env={"OPGUARD_MODE": mode, **env})
    for here, there in zip(rank_logs(logs["here"], 2), rank_logs(logs["there"], 2)):
        assert_equal_logs(here, there)


def test_a_full_ring_loses_values_and_says_so(tmp_path):
    source = SEEDED + TRAIN.format(probed=True, reentrant=False)
    result = run_program(source, tmp_path, env={"OPGUARD_MODE": "full", **served(ring=40)})
    log = only_log(tmp_path)
    unreadable = [s for e in log.events for s in e.slots if s.flags & UNREADABLE]
    assert log.closed and 0 < log.lost == len(unreadable) < sum(len(e.slots) for e in log.events)
    assert sum(records for _, records in log.gaps) == log.lost
    assert f"opguard: {log.lost} of " in result.stderr
    # What came is what it should be.
    here = record(source, tmp_path / "here", env={"OPGUARD_MODE": "full"})
    for mine, theirs in zip(here.events, log.events, strict=True):
        assert [(s.kind, s.name, s.index) for s in mine.slots] == [(s.kind, s.name, s.index) for s in theirs.slots]
        assert all(b.flags & UNREADABLE or (a.value, a.flat) == (b.value, b.flat) for a, b in zip(mine.slots, theirs.slots))


def test_a_device_that_never_answers_ends_the_log_after_the_wait(tmp_path):
    source = "import torch\nx = torch.ones(3)\nog('a', torch.relu)(x)\n"
    run_program(source, tmp_path, env={"OPGUARD_DEVICE_WAIT": "0.2", **served(silent=1)})
    log = only_log(tmp_path)
    assert log.closed and log.lost > 0
    assert all(s.flags & UNREADABLE for s in log.of("a")[0].slots)


def test_a_slow_device_holds_nothing_up(tmp_path):
    source = """
import time, torch
x = torch.ones(3)
begin = time.monotonic()
for _ in range(20): og('a', torch.relu)(x)
print(time.monotonic() - begin < 0.4)
"""
    result = run_program(source, tmp_path, env=served(hold=500))
    log = only_log(tmp_path)
    assert result.stdout == "True\n" and log.closed and log.lost == 0
    assert len({s.value for e in log.of("a") for s in e.slots}) == 1


def test_a_device_that_goes_away(tmp_path):
    """As after cudaDeviceReset: what was on its way is lost, what comes later unreadable; the program and the log go on, nobody waits."""
    source = """
import time, torch
x = torch.ones(3)
for _ in range(30): og('a', torch.relu)(x + 1)
begin = time.monotonic()
recording.close()
print(time.monotonic() - begin < 5)
"""
    result = run_program(source, tmp_path, env=served(gone=20))
    log = only_log(tmp_path)
    slots = [s for e in log.of("a") for s in e.slots]
    assert result.stdout == "True\n" and log.closed and log.lost > 0 and sum(records for _, records in log.gaps) == log.lost
    assert len(slots) == 60 and sum(bool(s.flags & UNREADABLE) for s in slots) >= 40 and not slots[0].flags & UNREADABLE
    assert log.settings["device.cpu.problem"] == "the device is gone"
    assert result.stderr.count("warning: tensors on 'cpu' lack values: the device is gone") == 1


def test_tensors_that_are_not_launched_are_unreadable(tmp_path):
    source = "import torch\nx = torch.ones(3)\nfor _ in range(30): og('a', torch.relu)(x + 1)\n"
    run_program(source, tmp_path, env=served(refuse=7))
    log = only_log(tmp_path)
    refused = [s for e in log.of("a") for s in e.slots if s.flags & UNREADABLE]
    assert log.closed and log.lost == 0 and refused and all(s.value is None for s in refused)


FORK = """
import os, torch
x = torch.ones(2000)
for _ in range(50): og('before', torch.relu)(x)
pid = os.fork()
og('after', torch.relu)(x)
if pid == 0: os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
for _ in range(50): og('end', torch.relu)(x)
"""


@pytest.mark.parametrize("hold", [0, 300])
def test_a_fork(tmp_path, hold):
    """The parent goes on; the child, to whom the device does not belong, has no values."""
    run_program(FORK, tmp_path, env=served(hold=hold))
    from runtime_log import logs_in

    parent, child = sorted(logs_in(tmp_path), key=lambda log: -len(log.events))
    assert parent.closed and parent.lost == 0 and len(parent.of("end")) == 50
    assert not any(s.flags & UNREADABLE for e in parent.events for s in e.slots)
    (after,) = child.of("after")
    assert child.closed and after.slots and child.lost == 0


@pytest.mark.parametrize(
    "path, why",
    [("/nowhere/at-all.so", "cannot open shared object"), ("{libc}", "it exports no opguard_device_plugin_v1"),
     ("{plugin}:{plugin}", "another library serves 'cpu' already")],
)  # fmt: skip
def test_what_is_no_plugin_is_told(tmp_path, path, why):
    path = path.format(libc="libc.so.6", plugin=served()["OPGUARD_DEVICE_PLUGIN"])
    result = run_program("import torch\nog('a', torch.relu)(torch.ones(2))\n", tmp_path, env={"OPGUARD_DEVICE_PLUGIN": path})
    log = only_log(tmp_path)
    assert result.stderr.count("opguard: ") == 1 and why in result.stderr
    assert why in log.settings["device.plugin.0"] and log.of("a")[0].get("out", "out0").value


def test_a_plugin_of_activities_alone_is_left_to_the_preflight(tmp_path, example_plugin):
    """It is no fault, and its device type is another's to read."""
    path = f"{example_plugin}:{served()['OPGUARD_DEVICE_PLUGIN']}"
    env = {"OPGUARD_DEVICE_PLUGIN": path, "OPGUARD_EXAMPLE_DEVICE": "example"}
    result = run_program("import torch\nog('a', torch.relu)(torch.ones(2))\n", tmp_path, env=env)
    log = only_log(tmp_path)
    assert result.stderr == "" and not [name for name in log.settings if name.startswith("device.plugin")]
    assert log.of("a")[0].get("out", "out0").value


@pytest.mark.parametrize("table, why", [
    ('.device_type = "npu"', "its table has no functions"),
    ('.device_type = "npu", .fingerprint = f, .activities_start = start', "a function is missing in its table"),
])  # fmt: skip
def test_a_table_that_is_not_whole_is_told(tmp_path, table, why):
    source = tmp_path / "plugin.c"
    source.write_text(
        '#include "device/plugin.h"\nstatic int start(char* e, uint64_t n) { return 0; }\n'
        "static uint32_t f(int d, void* s, const opguard_tensor* t, uint32_t n) { return 0; }\n"
        "const opguard_device_plugin* opguard_device_plugin_v1(void) {\n"
        f"  static const opguard_device_plugin t = {{.abi = OPGUARD_DEVICE_ABI, .size = sizeof t, {table}}};\n  return &t;\n}}\n"
    )
    path = compile_library(source, tmp_path / "plugin.so")
    result = run_program("import torch\nog('a', torch.relu)(torch.ones(2))\n", tmp_path, env={"OPGUARD_DEVICE_PLUGIN": str(path)})
    assert why in result.stderr and only_log(tmp_path).settings["device.plugin.0"] == f"{path}: {why}"


def test_a_device_that_does_not_open(tmp_path):
    result = run_program("import torch\nog('a', torch.relu)(torch.ones(2))\n", tmp_path, env=served(fail="no such card"))
    assert "tensors on 'cpu' are recorded without values: no such card" in result.stderr
    assert only_log(tmp_path).settings["device.cpu"] == "no values: no such card"


def test_another_device_type_is_left_alone(tmp_path):
    log = record("import torch\nog('a', torch.relu)(torch.ones(2))\n", tmp_path, env=served(device="npu"))
    assert log.of("a")[0].get("out", "out0").value and "device.npu" not in log.settings
