"""What each mode records (docs/design/runtime.md), and when a value may be carried over instead of read again."""

import pytest

from runtime_log import CARRIED, record, run_program

pytest.importorskip("torch")

# glibc maps and unmaps every tensor of 64 KiB by itself: the next one of that size is at the address that the last one left.
MAPPED = {"MALLOC_MMAP_THRESHOLD_": "16384"}

# 64 KiB: large enough that a mode that carries does not simply read.
BIG = "import torch\ntorch.manual_seed(0)\nx = torch.randn(128, 128)\n"


# Torch's struct is read once 64 tensors were compared.
TRUSTED = "for _ in range(40):\n    og('warm', torch.relu)(torch.ones(4))\n"


def first_in(event):
    return next(s for s in event.slots if s.kind == "in")


def carried(slot):
    return bool(slot.flags & CARRIED)


def uses(tmp_path, source, mode="default", boundary="use", env=None):
    """The first input of every event of the boundary."""
    log = record(BIG + source, tmp_path / mode, env={"OPGUARD_MODE": mode, **(env or {})})
    return [first_in(e) for e in log.of(boundary)]


def test_an_unchanged_tensor_is_read_once(tmp_path):
    source = "for _ in range(3):\n    og('use', torch.relu)(x)\n"
    default, full = uses(tmp_path, source), uses(tmp_path, source, "full")
    assert [carried(s) for s in default] == [False, True, True]
    assert not any(carried(s) for s in full)
    assert [s.value for s in default] == [s.value for s in full]
    assert len({s.storage for s in default + full}) == 1 and default[0].storage > 0


def test_what_one_operator_left_is_carried_to_the_next(tmp_path):
    log = record(BIG + "h = og('relu', torch.relu)(x)\nog('use', torch.exp)(h)\n", tmp_path, env={"OPGUARD_MODE": "default"})
    (made,), (used,) = log.of("relu"), log.of("use")
    out = made.get("out", "out0")
    assert carried(used.get("in", "arg0")) and not carried(out)
    assert (out.value, out.storage, out.version) == (used.get("in", "arg0").value, used.get("in", "arg0").storage, used.get("in", "arg0").version)


@pytest.mark.parametrize(
    "write",
    [
        "x.add_(1)",
        "x[3, 4] = 7",
        "x.view(-1)[5:9].zero_()",
        "torch.add(x, 1, out=x)",
        "x.data = torch.zeros(128, 128)",
        "og('w', x.data.mul_)(2)",  # another tensor, with a counter of its own, of the same memory
        "og('w', x).data = torch.zeros(128, 128)",
        "x.set_(torch.zeros(128, 128))",
        "x.t_()",
        "x.numpy()[0, 0] = 9",  # torch knows that numpy may write it
    ],
)
def test_a_changed_tensor_is_read_again(tmp_path, write):
    source = f"og('use', torch.relu)(x)\n{write}\nog('use', torch.relu)(x)\ny = og('check', torch.clone)(x.clone())\n"
    log = record(BIG + source, tmp_path, env={"OPGUARD_MODE": "default"})
    before, after = (first_in(e) for e in log.of("use"))
    assert not carried(after)
    assert after.value == first_in(log.of("check")[0]).value


def test_a_freed_and_reused_block_is_never_carried(tmp_path):
    """An allocator that gives the same address at once; version 0, shape and type are equal too."""
    source = """
addresses = set()
for i in range(32):
    y = torch.full((128, 128), float(i))
    addresses.add(y.data_ptr())
    og("use", torch.relu)(y)
    del y
print(len(addresses))
"""
    log = record(BIG + source, tmp_path, env={"OPGUARD_MODE": "default", **MAPPED})
    slots = [first_in(e) for e in log.of("use")]
    assert len({s.address for s in slots}) < 32, "the allocator gave no address twice: nothing was tested"
    assert not any(carried(s) for s in slots)
    assert len({s.value for s in slots}) == 32
    assert len({s.storage for s in slots}) == 32


def test_memory_that_moves_behind_data_is_read_again(tmp_path):
    """The tensor, its version, shape and address are the same; the memory was freed and taken again."""
    source = """
p = torch.nn.Parameter(torch.zeros(128, 128))
for i in range(32):
    p.data = torch.zeros(1)
    p.data = torch.full((128, 128), float(i))
    og("use", torch.relu)(p)
"""
    slots = uses(tmp_path, source, env=MAPPED)
    assert len({s.address for s in slots}) < 32, "the allocator gave no address twice: nothing was tested"
    assert len({s.value for s in slots}) == 32 and not any(carried(s) for s in slots)


def test_views_have_their_storage_and_no_others_value(tmp_path):
    source = """
og("use", torch.relu)(x)
og("use", torch.relu)(x.t())
og("use", torch.relu)(x.view(64, 256))
og("use", torch.relu)(torch.randn(128, 128))
"""
    slots = uses(tmp_path, source)
    assert len({s.value for s in slots}) == 4 and not any(carried(s) for s in slots)
    assert [s.storage == slots[0].storage for s in slots] == [True, True, True, False]


def test_a_view_that_is_kept_is_carried_until_its_base_is_written(tmp_path):
    source = """
v = x[10:90]
og("use", torch.relu)(v)
og("use", torch.relu)(v)
x.mul_(2)
og("use", torch.relu)(v)
"""
    slots = uses(tmp_path, source)
    assert [carried(s) for s in slots] == [False, True, False]
    assert slots[2].value != slots[1].value


@pytest.mark.parametrize("alias", ["x.detach()", "x.view_as(x)", "x[:]", "x.t().t()", "x.view(-1).view(128, 128)"])
def test_what_one_counter_counts_is_read_once(tmp_path, alias):
    source = f"""{TRUSTED}
og("use", torch.relu)(x)
og("use", torch.relu)({alias})
v = {alias}
x.mul_(2)
og("use", torch.relu)(v)
og("use", torch.relu)(x)
"""
    slots = uses(tmp_path, source)
    assert [carried(s) for s in slots] == [False, True, False, True]
    assert slots[0].value == slots[1].value != slots[2].value == slots[3].value


@pytest.mark.parametrize("alias", ["x.data", "torch.empty(0).set_(x)", "torch.from_dlpack(x)"])
def test_a_tensor_with_a_counter_of_its_own_is_read(tmp_path, alias):
    """What is written through either is not told by the other's counter."""
    source = f"""{TRUSTED}
a = {alias}
og("use", torch.relu)(x)
og("use", torch.relu)(a)
a.mul_(2)
og("use", torch.relu)(a)
v = x.detach()
og("check", torch.clone)(v.clone())
"""
    log = record(BIG + source, tmp_path, env={"OPGUARD_MODE": "default"})
    first, second, written = (first_in(e) for e in log.of("use"))
    assert not carried(second) and not carried(written) and first.value == second.value != written.value
    assert written.value == first_in(log.of("check")[0]).value


def test_of_two_tensors_that_take_turns_only_a_living_one_is_believed(tmp_path):
    """A counter that is gone leaves its address to the next one, whose count begins at 0 again."""
    source = f"""{TRUSTED}
for i in range(32):
    a = x.data
    og("use", torch.relu)(a)
    del a
    x.mul_(1.5)
"""
    slots = uses(tmp_path, source)
    assert len({s.value for s in slots}) == 32 and not any(carried(s) for s in slots)


@pytest.mark.parametrize("dtype", ["torch.float32", "torch.bfloat16", "torch.float64", "torch.int64"])
def test_the_digest_of_the_same_elements_in_another_order_is_not_read_again(tmp_path, dtype):
    """Both modes say the same of every view, of one piece or not; in `default` h and m are read, and the digest is known."""
    source = f"""{TRUSTED}
y = (torch.randn(64, 96, 4) * 100).to({dtype})
part = y[:, 16:48]
for v in (y, y.view(-1), y.view(32, -1), y.permute(2, 0, 1), y.view(64, -1).t(), part, part.transpose(0, 1), part[:, :16], y[:, 8:40],
          y[:, :, :1].expand(64, 96, 4), y.as_strided((64, 96, 4), (4, 256, 1)), y[::2], y.as_strided((96, 64, 4), (4, 384, 1))):
    og("use", torch.clone)(v)
y.add_(1)
og("use", torch.clone)(part.transpose(0, 1))
"""
    default, full = uses(tmp_path, source), uses(tmp_path, source, "full")
    assert [(s.value, s.flat, s.digest) for s in default] == [(s.value, s.flat, s.digest) for s in full]
    assert len({s.digest for s in default}) == 7


def test_a_module_of_torchs_leaves_its_parameters_as_they_were_read(tmp_path):
    source = """
lin, hooked = torch.nn.Linear(128, 128), torch.nn.Linear(128, 128)
hooked.register_forward_hook(lambda *_: None)
for module in (lin, hooked, torch.nn.Sequential(lin)):
    og("call", module)(x)
    weight = module[0].weight if isinstance(module, torch.nn.Sequential) else module.weight
    og("use", torch.relu)(weight)
    og("arg", torch.relu)(x)
"""
    log = record(BIG + source, tmp_path, env={"OPGUARD_MODE": "default"})
    assert [carried(first_in(e)) for e in log.of("use")] == [True, False, False]
    assert [carried(first_in(e)) for e in log.of("arg")] == [True, False, False]


def test_writes_tells_of_a_kernel(tmp_path):
    """og.writes: the call changes an argument behind its counter; the next use sees it, and carries it on."""
    source = """
import ctypes
def kernel(t):
    ctypes.memset(t.data_ptr(), 0, 4096)
og("use", torch.relu)(x)
og.writes("k", kernel)(x)
og("use", torch.relu)(x)
"""
    log = record(BIG + source, tmp_path, env={"OPGUARD_MODE": "default"})
    before, after = (first_in(e) for e in log.of("use"))
    assert before.value != after.value and before.version == after.version
    (kernel,) = log.of("k")
    assert kernel.get("written", "arg0").value == after.value


def test_a_kernel_nobody_told_of_is_seen_in_full_mode_alone(tmp_path):
    source = """
import ctypes
og("use", torch.relu)(x)
ctypes.memset(x.data_ptr(), 0, 4096)
og("use", torch.relu)(x)
"""
    full = uses(tmp_path, source, "full")
    assert full[0].value != full[1].value and full[0].version == full[1].version and full[0].storage == full[1].storage
    default = uses(tmp_path, source)
    assert default[0].value == default[1].value and carried(default[1])


@pytest.mark.parametrize("made", ["torch.from_numpy(numpy.ones((128, 128), 'f4'))", "torch.ones(128, 128).share_memory_()"])
def test_memory_that_others_write_is_always_read(tmp_path, made):
    slots = uses(tmp_path, f"import numpy\ny = {made}\nfor _ in range(2):\n    og('use', torch.relu)(y)\n")
    assert not any(carried(s) for s in slots)


def test_inference_tensors_have_no_counter_and_are_read(tmp_path):
    slots = uses(tmp_path, "with torch.inference_mode():\n    y = x + 1\n    for _ in range(2):\n        og('use', torch.relu)(y)\n")
    assert not any(carried(s) for s in slots)


def test_running_statistics_are_read_each_time(tmp_path):
    """Their kernels count no versions."""
    source = """
bn = torch.nn.BatchNorm1d(2048)
y = torch.randn(8, 2048)
for _ in range(2):
    og("bn", bn)(y)
    og("use", torch.relu)(bn.running_mean)
"""
    log = record(BIG + source, tmp_path, env={"OPGUARD_MODE": "default"})
    means = [first_in(e) for e in log.of("use")]
    assert means[0].value != means[1].value
    first, second = log.of("bn")
    assert second.get("in", "param:running_mean").value == means[0].value


def test_the_same_tensor_twice_in_one_event_is_read_once_and_says_so_nowhere(tmp_path):
    log = record(BIG + "og('add', torch.add)(x, x)\n", tmp_path, env={"OPGUARD_MODE": "full"})
    (event,) = log.of("add")
    a, b = event.get("in", "arg0"), event.get("in", "arg1")
    assert a.value == b.value and not carried(a) and not carried(b)


TRAIN = """
lin = torch.nn.Linear(128, 128)
optimizer = torch.optim.{optimizer}
for step in range(3):
    h = og("view", x.view)(64, 2, 128)
    h = og("item", h)[:, 0]
    h = og("lin", lin)(h)
    h = og("gelu", torch.nn.functional.gelu)(h)
    loss = og("sum", h.sum)()
    og("back", loss.backward)()
    og("step", optimizer.step)()
    optimizer.zero_grad(set_to_none={none})
    print(loss.item().hex())
"""


@pytest.mark.parametrize("none", [True, False])
@pytest.mark.parametrize("optimizer", ["AdamW(lin.parameters(), foreach=True)", "AdamW(lin.parameters(), fused=True)", "SGD(lin.parameters(), momentum=0.9)"])
def test_training_has_the_same_values_in_default_and_full_mode(tmp_path, optimizer, none):
    source = BIG + TRAIN.format(optimizer=optimizer, none=none)
    full, default = (record(source, tmp_path / mode, env={"OPGUARD_MODE": mode}) for mode in ("full", "default"))

    def values(log):
        return [(e.boundary, e.kind, e.phase, [(s.kind, s.name, s.shape, s.version, s.value, s.flat) for s in e.slots]) for e in log.events if e.kind != "state"]

    assert values(full) == values(default)
    assert any(carried(s) for e in default.events for s in e.slots)
    assert not any(carried(s) for e in full.events for s in e.slots)
    assert full.settings["mode"] == "full" and default.settings["mode"] == "default"


def test_trusted_leaves_out_what_moves_elements(tmp_path):
    source = BIG + TRAIN.format(optimizer="SGD(lin.parameters(), lr=0.1)", none=True)
    log = record(source, tmp_path, env={"OPGUARD_MODE": "trusted"})
    recorded = set(log.boundaries())
    assert {"lin", "gelu", "sum", "step"} <= recorded and not {"view", "item"} & recorded
    assert log.settings["mode"] == "trusted"
    nodes = {e.node for e in log.events if e.kind == "node"}
    assert any("Addmm" in n for n in nodes) and not any("View" in n for n in nodes)


def test_trusted_takes_the_users_own_list(tmp_path):
    source = BIG + TRAIN.format(optimizer="SGD(lin.parameters(), lr=0.1)", none=True)
    log = record(source, tmp_path, env={"OPGUARD_MODE": "trusted", "OPGUARD_TRUSTED": "gelu,-view"})
    recorded = set(log.boundaries())
    assert {"view", "lin"} <= recorded and not {"gelu", "item"} & recorded
    assert log.settings["mode.trusted"] == "gelu,-view"


def test_sdc_records_losses_parameters_and_states(tmp_path):
    source = BIG + TRAIN.format(optimizer="AdamW(lin.parameters())", none=True)
    sdc, full = (record(source, tmp_path / mode, env={"OPGUARD_MODE": mode}) for mode in ("sdc", "full"))
    assert {e.kind for e in sdc.events} == {"loss", "optimizer", "state"}
    steps = [e for e in sdc.events if e.kind == "optimizer"]
    assert [e.names("in") for e in steps] == [[]] * 3
    assert steps[0].names("out") == ["param:weight", "param:bias"]
    full_steps = [e for e in full.events if e.kind == "optimizer"]
    assert [e.get("out", "param:weight").value for e in steps] == [e.get("out", "param:weight").value for e in full_steps]
    assert [e.step for e in steps] == [0, 1, 2]


def test_sdc_keeps_to_the_programs_marks(tmp_path):
    source = "f = lambda: None\nfor _ in range(3):\n    og.micro_batch('m', f)()\n    og.step('s', f)()\n"
    log = record(BIG + source, tmp_path, env={"OPGUARD_MODE": "sdc"})
    assert [e.step for e in log.states()][-1] == 3 and not log.boundaries()


def test_an_unknown_mode_is_told_and_nothing_is_recorded(tmp_path):
    result = run_program("print(og('a', 3) + 4)", tmp_path / "log", env={"OPGUARD_MODE": "fast"}, status=1)
    assert "OPGUARD_MODE is default, full, sketch, trusted, sdc, model or off, not fast" in result.stderr


def test_subclasses_and_modes_of_the_program_see_nothing_of_us(tmp_path):
    source = """
calls = []
class Mine(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        calls.append(getattr(function, "__name__", str(function)))
        return super().__torch_function__(function, types, args, kwargs or {})
class Watch(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        calls.append("mode " + getattr(function, "__name__", str(function)))
        return function(*args, **(kwargs or {}))
m = x.as_subclass(Mine)
P = og if {probed} else (lambda i, f: f)
del calls[:]
P("use", torch.relu)(m)
with Watch():
    P("use", torch.relu)(x)
P("use", torch.relu)(x)
print(calls)
"""
    bare = run_program(BIG + source.replace("{probed}", "False"))
    probed = run_program(BIG + source.replace("{probed}", "True"), tmp_path / "log", env={"OPGUARD_MODE": "default"})
    assert bare.stdout == probed.stdout


@pytest.mark.parametrize("mode", ["default", "full"])
def test_torch_without_dlpacks_table_gives_the_same_records(tmp_path, mode):
    """Up to 2.9 tensors are read through their attributes."""
    source = BIG + "{without}\n" + TRAIN.format(optimizer="AdamW(lin.parameters())", none=True).replace("{", "{{").replace("}", "}}")
    source += "for t in (x[::2, 3:7], x.to(torch.bfloat16), x > 0, torch.tensor(3), x[:0], x.long()):\n    og('use', torch.clone)(t)\n"
    new, old = (
        record(source.format(without=text), tmp_path / name, env={"OPGUARD_MODE": mode})
        for name, text in (("new", ""), ("old", "del torch.Tensor.__dlpack_c_exchange_api__"))
    )

    def records(log):
        return [(e.boundary, e.kind, [(s.kind, s.name, s.flags, s.dtype, s.device, s.shape, s.version, s.storage, s.size_bytes, s.value) for s in e.slots])
                for e in log.events if e.kind != "state"]  # fmt: skip

    assert records(new) == records(old)
