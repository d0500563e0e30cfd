"""opguard run --capture and --transplant: tensors of a probe written as they are, and values replaced."""

import json
import sys

import pytest

from runtime_log import logs_in, run_program

torch = pytest.importorskip("torch")

import tensor_files  # noqa: E402  (needs torch)
from tensor_files import bits_equal, captured  # noqa: E402

TRAIN = """
import sys, torch
torch.manual_seed(0)
from opguard import og  # opguard: probes
kept = {{}}
def keep(name, tensor):
    kept[name] = tensor.detach().clone()
model = torch.nn.Linear(6, 5)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(3):
    x = torch.randn(4, 6, generator=torch.Generator().manual_seed(step))
    h = og("t.lin", model)(x)
    e = og("t.exp", torch.exp)({operand})
    keep(f"h{{step}}", h); keep(f"e{{step}}", e)
    e.register_hook(lambda g, step=step: keep(f"ge{{step}}", g))
    h.register_hook(lambda g, step=step: keep(f"gh{{step}}", g))
    loss = og("t.mean", e.square().mean)()
    og("t.backward", loss.backward)()
    keep(f"grad{{step}}", model.weight.grad); keep(f"before{{step}}", model.weight)
    og("t.step", optimizer.step)()
    keep(f"after{{step}}", model.weight)
    optimizer.zero_grad()
    print(loss.item().hex(), model.weight.double().sum().item().hex())
if {out!r}: torch.save(kept, {out!r})
"""


def train(operand="h", out=""):
    return TRAIN.format(operand=operand, out=str(out))


@pytest.fixture
def recorded(opguard, tmp_path):
    """recorded(source, *options, log=) -> (the finished process, the log folder)"""

    def run(source, *options, log="log"):
        program = tmp_path / "program.py"
        program.write_text(source)
        folder = tmp_path / log
        return opguard("run", "--log", folder, *options, "--", sys.executable, program, cwd=tmp_path), folder

    return run


def test_what_is_written_is_what_the_program_computes(recorded, tmp_path):
    bare = run_program(train())
    done, log = recorded(
        train(out=tmp_path / "kept.pt"),
        "--capture", "t.exp", "--capture", "t.lin@1", "--capture", "t.step@1,kind=optimizer",
        "--capture", "t.backward@0,kind=loss", "--capture", "t.exp:in/arg0",
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout == bare.stdout, done.stderr
    kept, files = torch.load(tmp_path / "kept.pt"), captured(log)
    for step in range(3):
        forward, metadata = files["t.exp", "op", "forward", step]
        assert set(forward) == {"in/arg0", "out/out0"}
        assert bits_equal(forward["in/arg0"], kept[f"h{step}"]) and bits_equal(forward["out/out0"], kept[f"e{step}"])
        assert (metadata["rank"], metadata["step"], metadata["micro_batch"]) == ("0", str(step), "0")
        backward, metadata = files["t.exp", "node", "backward", step]
        assert metadata["node"] == "ExpBackward0"
        assert bits_equal(backward["in/grad0"], kept[f"ge{step}"]) and bits_equal(backward["out/out0"], kept[f"gh{step}"])
    assert ("t.lin", "op", "forward", 1) in files and ("t.lin", "op", "forward", 0) not in files
    assert bits_equal(files["t.lin", "op", "forward", 1][0]["out/out0"], kept["h1"])
    assert set(files["t.lin", "op", "forward", 1][0]) == {"in/param:weight", "in/param:bias", "in/arg0", "out/out0"}
    stepped = files["t.step", "optimizer", "optimizer", 1][0]
    for slot, name in (("in/param", "before1"), ("in/grad", "grad1"), ("out/param", "after1")):
        (weight,) = [t for n, t in stepped.items() if n.startswith(slot) and t.dim() == 2]
        assert bits_equal(weight, kept[name]), slot
    assert any(n.startswith("out/state") for n in stepped)
    root = files["t.backward", "loss", "forward", 0][0]["in/root0"]
    assert root.item() == float.fromhex(bare.stdout.split()[0])
    (whole,) = logs_in(log)
    assert whole.settings["capture"].endswith(f"tensors in {len(files)} files")
    assert f"captured {whole.settings['capture']}" in done.stderr


def test_gradients_as_they_are_added_to_leaves(recorded, tmp_path):
    selections = ("--capture", "t.backward@0,kind=accumulate", "--capture", "t.backward@1,kind=accumulate")
    done, log = recorded(train(out=tmp_path / "kept.pt"), *selections)
    kept = torch.load(tmp_path / "kept.pt")
    events = [tensors for (_, kind, _, _), (tensors, _) in captured(log).items() if kind == "accumulate"]
    assert len(events) == 2 and done.returncode == 0, done.stderr
    out = [t for tensors in events for name, t in tensors.items() if name.startswith("out/grad") and t.dim() == 2]
    assert len(out) == 1 and bits_equal(out[0], kept["grad0"])


VALUES = """
import torch
def f(*values): return values
base = torch.arange(24.)
def made(dtype):
    raw = torch.randint(0, 64, (6, 4), generator=torch.Generator().manual_seed(1), dtype=torch.uint8)
    if dtype.is_complex:
        return torch.complex(raw.double(), -raw.double()).to(dtype)
    return raw.double().to(dtype)
values = {str(d)[6:]: made(d) for d in (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn,
    torch.float8_e5m2, torch.float8_e4m3fnuz, torch.complex64, torch.complex128, torch.bool, torch.int64, torch.int32, torch.int16,
    torch.int8, torch.uint8)}
values["transposed"] = base.view(4, 6).t()
values["every_second"] = base[::2]
values["expanded"] = base[:3].view(3, 1).expand(3, 4)
values["scalar"] = torch.tensor(3.)
values["empty"] = torch.empty(0, 5)
values["conj"] = torch.complex(base, base).conj()
values["neg"] = torch.complex(base, base).conj().imag
values["permuted"] = torch.randn(2, 3, 4, 5).permute(3, 1, 0, 2)[1:, :, ::2]
values["nan"] = torch.tensor([0x7fc00001, -2147483648, 1], dtype=torch.int32).view(torch.float32)
og("t.f", f)(*values.values())
og("t.numpy", f)(base.numpy()[::-3])
torch.save(list(values.items()), OUT)
"""


def tensors_of(files, boundary):
    return files[boundary, "op", "forward", 0][0]


def test_every_dtype_and_layout(tmp_path):
    run_program(f"OUT = {str(tmp_path / 'kept.pt')!r}\n" + VALUES, tmp_path / "log", env={"OPGUARD_CAPTURE": "t.f:in\nt.numpy:in"})
    files = captured(tmp_path / "log")
    tensors = files["t.f", "op", "forward", 0][0]
    kept = torch.load(tmp_path / "kept.pt")
    assert len(tensors) == len(kept)
    for i, (name, value) in enumerate(kept):
        assert bits_equal(tensors[f"in/arg{i}"], value), name
    assert tensors_of(files, "t.numpy")["in/arg0"].tolist() == torch.arange(24.).numpy()[::-3].tolist()


def test_the_public_library_reads_the_files(tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    run_program(f"OUT = {str(tmp_path / 'kept.pt')!r}\n" + VALUES, tmp_path / "log", env={"OPGUARD_CAPTURE": "t.f:in"})
    (path,) = (tmp_path / "log").glob("*.safetensors")
    ours, theirs = tensor_files.read(path)[0], safetensors.load_file(path)
    assert set(ours) == set(theirs)
    for name, value in theirs.items():
        assert torch.equal(value.contiguous().reshape(-1).view(torch.uint8), ours[name].reshape(-1).view(torch.uint8)), name


def test_what_an_operator_changes_in_place_is_taken_before_and_after(tmp_path):
    run_program(
        "import torch\nx = torch.ones(3)\nog('t.add', x.add_)(2)\nx = og('t.iadd', x).iadd(1)\n",
        tmp_path, env={"OPGUARD_CAPTURE": "t.add@0\nt.iadd@0"},
    )  # fmt: skip
    files = captured(tmp_path)
    for boundary, before, after in (("t.add", 1, 3), ("t.iadd", 3, 4)):
        got = {name: t.tolist() for name, t in tensors_of(files, boundary).items()}
        assert got == {"in/self": [before] * 3, "out/out0": [after] * 3, "written/self": [after] * 3}


# A boundary inside itself: the inner call ends first, and is the earlier occurrence.
def test_occurrences_are_those_of_the_log(tmp_path):
    run_program(
        """
import torch
def f(x, depth):
    return og("t.f", f)(x + 1, depth - 1) if depth else x
og("t.f", f)(torch.zeros(2), 3)
""",
        tmp_path, env={"OPGUARD_CAPTURE": "t.f@1:in\nt.f@3"},
    )  # fmt: skip
    files = captured(tmp_path)
    assert {key[3] for key in files} == {1, 3}
    assert files["t.f", "op", "forward", 1][0]["in/arg0"].tolist() == [2, 2]
    assert files["t.f", "op", "forward", 3][0]["in/arg0"].tolist() == [0, 0]
    assert files["t.f", "op", "forward", 3][0]["out/out0"].tolist() == [3, 3]


def test_what_cannot_be_written_is_told_and_hurts_nothing(tmp_path):
    source = f"""
import os, torch
blocked = f"tensors-rank0-{{os.getpid()}}-t.exp@0-forward-op.safetensors.incomplete"
os.mkdir(os.path.join({str(tmp_path)!r}, blocked))
for i in range(2): print(og("t.exp", torch.exp)(torch.zeros(2)))
og("t.meta", torch.exp)(torch.zeros(2, device="meta"))
"""
    bare = run_program(source)
    result = run_program(source, tmp_path, env={"OPGUARD_CAPTURE": "t.exp\nt.meta"})
    assert result.stdout == bare.stdout
    assert "opguard: warning: not captured: " in result.stderr and "Is a directory" in result.stderr
    (log,) = logs_in(tmp_path)
    assert log.lost == 0 and log.settings["capture"].startswith("2 tensors in 1 files, 3 failed: ")
    (path,) = tmp_path.glob("*@1-forward-op.safetensors")
    assert set(tensor_files.read(path)[0]) == {"in/arg0", "out/out0"}


def test_a_boundary_never_reached_is_told(recorded):
    done, log = recorded(train(), "--capture", "t.nowhere@0", "--capture", "t.exp@99")
    assert done.returncode == 0
    for text in ("t.nowhere@0", "t.exp@99"):
        assert f"opguard: warning: nothing to capture: {text} was never reached\n" in done.stderr
    assert not captured(log)


@pytest.mark.parametrize("option", [
    ("--capture", "t.exp@0:"), ("--capture", "t.exp,step=x"), ("--capture", "t.exp,pase=forward"), ("--transplant", "t.exp:out0=f"),
    ("--transplant", "t.exp@0:out0=missing.safetensors"), ("--capture", "t.exp", "--mode", "off"),
])  # fmt: skip
def test_bad_selections_are_refused_before_the_program_starts(recorded, option):
    done, log = recorded("print('started')", *option)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("opguard: error: "), done.stderr


# --- transplants


def capture_of(recorded, operand, selection, log):
    done, folder = recorded(train(operand), "--capture", selection, log=log)
    assert done.returncode == 0, done.stderr
    (path,) = folder.glob("*.safetensors")
    return done.stdout, path


# The one cause is an operand that was rounded at step 0: with A's result in its place all of B is A.
FAULT = "h if step else h + (h.bfloat16().float() - h).detach()"


def test_the_cause_replaced_makes_b_equal_a(recorded):
    a, path = capture_of(recorded, "h", "t.exp@0,kind=op", "a")
    faulty, log = recorded(train(FAULT), log="b")
    assert faulty.stdout.splitlines()[0] != a.splitlines()[0]
    # exp saves its result for its backward: the gradients are A's too.
    done, log = recorded(train(FAULT), "--transplant", f"t.exp@0:out0={path}", log="t")
    assert done.returncode == 0, done.stderr
    assert done.stdout == a
    assert "opguard: transplants done: 1\n" in done.stderr
    (whole,) = logs_in(log)
    assert whole.settings["transplant"] == "done 1 of 1" and whole.settings["transplant.0"] == "done"
    (before,) = logs_in(log.parent / "a")
    values = [next(s.value for s in w.of("t.exp")[0].slots if s.name == "out0") for w in (before, whole)]
    assert values[0] == values[1]


def test_a_value_elsewhere_is_not_the_cause(recorded):
    a, _ = capture_of(recorded, "h", "t.exp@0,kind=op", "a")
    b, path = capture_of(recorded, FAULT, "t.exp@0,kind=op", "b")
    done, _ = recorded(train(FAULT), "--transplant", f"t.exp@0:out0={path}", log="t")
    assert done.returncode == 0 and done.stdout == b != a


def test_an_input_is_replaced_before_the_operator_reads_it(tmp_path):
    value = tensor_files.write(tmp_path / "v.safetensors", {"x": torch.tensor([5.0, 6.0])})
    source = "import torch\nx = torch.zeros(2)\ny = og('t.add', torch.add)(x, 1)\nprint(y.tolist(), x.tolist(), x._version)\n"
    result = run_program(source, tmp_path / "log", env={"OPGUARD_TRANSPLANT": f"t.add@0:arg0={value}"})
    assert result.stdout == "[6.0, 7.0] [5.0, 6.0] 0\n" and result.stderr == ""


def test_a_gradient_handed_on_is_replaced_alone(tmp_path):
    # Both operands of an addition get the same tensor; only the one asked for may change.
    value = tensor_files.write(tmp_path / "v.safetensors", {"out/out0": torch.tensor([7.0, 8.0])})
    source = """
import torch
x, y = torch.zeros(2, requires_grad=True), torch.zeros(2, requires_grad=True)
for i in range(2):
    z = og("t.add", x) + y
    z.sum().backward()
    print(x.grad.tolist(), y.grad.tolist())
    x.grad = y.grad = None
"""
    result = run_program(source, tmp_path / "log", env={"OPGUARD_TRANSPLANT": f"t.add@1:out0,phase=backward={value}"})
    assert result.stdout == "[1.0, 1.0] [1.0, 1.0]\n[7.0, 8.0] [1.0, 1.0]\n" and result.stderr == ""


def test_a_gradient_is_replaced_before_the_node_reads_it(tmp_path):
    source = """
import torch
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = og("t.mul:0", torch.mul)(x, 3.0)
z = og("t.add:1", torch.add)(y, y)
(z.sum() + y.sum()).backward()
print(x.grad.tolist())
"""
    value = tensor_files.write(tmp_path / "v.safetensors", {"v": torch.tensor([10.0, 20.0])})
    at = f"t.mul:0@0:in/grad0,kind=node,phase=backward,node=MulBackward0={value}"
    result = run_program(source, tmp_path / "log", env={"OPGUARD_TRANSPLANT": at})
    assert result.stdout == "[30.0, 60.0]\n"  # the sum of three ways is what the node would have read
    assert result.stderr == ""


def test_a_parameter_after_the_step_is_replaced(tmp_path):
    value = tensor_files.write(tmp_path / "v.safetensors", {"w": torch.full((2,), 9.0)})
    source = """
import torch
w = torch.nn.Parameter(torch.ones(2))
optimizer = torch.optim.SGD([w], lr=0.5)
for i in range(2):
    (w * w).sum().backward()
    og("t.step", optimizer.step)()
    optimizer.zero_grad()
    print(w.tolist())
"""
    spec = f"t.step@0:out/param0,phase=optimizer={value}"
    result = run_program(source, tmp_path / "log", env={"OPGUARD_TRANSPLANT": spec})
    assert result.stdout == "[9.0, 9.0]\n[0.0, 0.0]\n", result.stderr


REFUSALS = {
    "dtype": ("torch.zeros(2, dtype=torch.float64)", "it is float64, the file's value is float32"),
    "shape": ("torch.zeros(3)", "its shape is [3], the file's value has [2]"),
    "meta": ("torch.zeros(2, device='meta')", "its bytes on device meta cannot be reached"),
    "read-only memory": (
        "torch.from_numpy(__import__('numpy').memmap(FILE, dtype='f4', mode='r', shape=(2,)))", "its memory is read-only"),
    "a file of the user": (
        "torch.from_numpy(__import__('numpy').memmap(FILE, dtype='f4', mode='r+', shape=(2,)))", "its memory is a file's"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals_leave_the_value_as_it_is(recorded, tmp_path, case):
    value = tensor_files.write(tmp_path / "v.safetensors", {"out0": torch.tensor([1.0, 2.0])})
    made, why = REFUSALS[case]
    file = tmp_path / "data"
    file.write_bytes(bytes(8))
    source = f"""
import torch, warnings
from opguard import og  # opguard: probes
warnings.simplefilter("ignore")
FILE = {str(file)!r}
y = og("t.f", lambda: {made})()
print(y.is_meta or y.tolist())
"""
    bare, _ = recorded(source, log="bare")
    done, log = recorded(source, "--transplant", f"t.f@0:out0={value}")
    assert done.returncode == 2 and done.stdout == bare.stdout
    lines = [line for line in done.stderr.splitlines() if line.startswith("opguard: error: ")]
    assert lines == [line for line in lines if why in line] and len(lines) == 1, done.stderr
    assert file.read_bytes() == bytes(8)
    (whole,) = logs_in(log)
    assert whole.settings["transplant"] == "done 0 of 1" and why in whole.settings["transplant.0"]


def test_a_transplant_never_reached_and_a_program_that_fails(recorded, tmp_path):
    value = tensor_files.write(tmp_path / "v.safetensors", {"out0": torch.tensor([1.0, 2.0])})
    done, log = recorded(train(), "--transplant", f"t.exp@7:out0={value}", log="x")
    assert done.returncode == 2 and f"no transplant of t.exp@7:out0={value}: never reached" in done.stderr
    done, log = recorded("import sys; sys.exit(5)", "--transplant", f"t.exp@7:out0={value}", log="y")
    assert done.returncode == 5


def test_compiled_graphs_are_captured_and_keep_their_values(tmp_path):
    value = tensor_files.write(tmp_path / "v.safetensors", {"out0": torch.tensor([1.0, 2.0])})
    source = """
import torch
@torch.compile(backend="aot_eager", fullgraph=True)
def f(x):
    return og("t.exp", torch.exp)(x) + 1
print(f(torch.zeros(2)).tolist())
"""
    env = {"OPGUARD_CAPTURE": "t.exp@0,kind=op", "OPGUARD_TRANSPLANT": f"t.exp@0:out0={value}"}
    result = run_program(source, tmp_path / "log", env=env)
    assert result.stdout == "[2.0, 2.0]\n" and "inside a compiled graph" in result.stderr
    assert captured(tmp_path / "log")["t.exp", "op", "forward", 0][0]["out/out0"].tolist() == [1, 1]


def test_a_forked_child_writes_its_own(tmp_path):
    source = """
import os, torch
og("t.exp", torch.exp)(torch.zeros(2))
if os.fork() == 0:
    og("t.exp", torch.exp)(torch.ones(2))
    from opguard.record import recording
    recording.close()
    os._exit(0)
os.wait()
"""
    run_program(source, tmp_path, env={"OPGUARD_CAPTURE": "t.exp@0"})
    files = [tensor_files.read(p) for p in tmp_path.glob("*.safetensors")]
    assert sorted(t["in/arg0"].tolist() for t, _ in files) == [[0, 0], [1, 1]]
    assert len({m["pid"] for _, m in files}) == 2
    assert [log.settings["capture.0"] for log in logs_in(tmp_path)] == ["1", "1"]


# --- compare


def test_compare_names_what_happened(opguard, tmp_path):
    x = torch.randn(6, 4)
    a = tensor_files.write(tmp_path / "a.safetensors", {"same": x, "rolled": x, "cast": x, "gone": x})
    b = tensor_files.write(tmp_path / "b.safetensors", {"same": x, "rolled": x.roll(1, 0), "cast": x.bfloat16().float(), "new": x})
    done = opguard("compare", a, b, "--json", tmp_path / "c.json")
    assert done.returncode == 1 and done.stdout.startswith("differ: 2 of 3 tensors\n"), done.stderr
    answer = json.loads((tmp_path / "c.json").read_text())
    kinds = {t["name"]: [e["kind"] for e in t["explanations"]] for t in answer["tensors"]}
    assert kinds["same"] == ["equal"] and "roll" in kinds["rolled"] and "cast" in kinds["cast"]
    assert answer["only_a"] == ["gone"] and answer["only_b"] == ["new"] and answer["equal"] is False
    assert opguard("compare", a, a).returncode == 0
    (tmp_path / "bad").write_bytes(b"\xff" * 20)
    bad = opguard("compare", a, tmp_path / "bad")
    assert bad.returncode == 2 and bad.stderr.count("\n") == 1 and bad.stdout == ""


def test_a_view_that_is_replaced_leaves_what_it_views_alone(tmp_path):
    value = tensor_files.write(tmp_path / "v.safetensors", {"out/out0": torch.tensor([8.0, 9.0])})
    source = """
import torch
x = torch.arange(4.).requires_grad_()
y = og('t.get', x)[:2]
(y * y).sum().backward()
print(y.tolist(), x.tolist(), x.grad.tolist())
"""
    result = run_program(source, tmp_path / "log", env={"OPGUARD_TRANSPLANT": f"t.get@0:out0={value}"})
    assert result.stdout == "[8.0, 9.0] [0.0, 1.0, 2.0, 3.0] [16.0, 18.0, 0.0, 0.0]\n" and result.stderr == ""


def test_a_view_that_holds_the_value_stays_a_view(tmp_path):
    value = tensor_files.write(tmp_path / "v.safetensors", {"out/out0": torch.tensor([0.0, 1.0])})
    source = """
import torch
x = torch.arange(4.)
y = og('t.get', x)[:2]
y += 5
print(x.tolist())
"""
    result = run_program(source, tmp_path / "log", env={"OPGUARD_TRANSPLANT": f"t.get@0:out0={value}"})
    assert result.stdout == "[5.0, 6.0, 2.0, 3.0]\n" and result.stderr == ""
    (log,) = logs_in(tmp_path / "log")
    assert log.settings["transplant.0.was"] == "same"


def test_an_input_whose_elements_share_memory_is_left_as_it_is(tmp_path):
    value = tensor_files.write(tmp_path / "v.safetensors", {"x": torch.tensor([1.0, 2.0])})
    source = "import torch\ny = og('t.add', torch.add)(torch.zeros(1).expand(2), 1)\nprint(y.tolist())\n"
    result = run_program(source, tmp_path / "log", env={"OPGUARD_TRANSPLANT": f"t.add@0:arg0={value}"})
    assert result.stdout == "[1.0, 1.0]\n" and "its elements share memory" in result.stderr


def test_selections_may_be_in_a_file(tmp_path):
    lines = tmp_path / "lines.txt"
    lines.write_text("t.exp@0\nt.exp@1\n")
    source = "import torch\nfor i in range(3): og('t.exp', torch.exp)(torch.zeros(2))\n"
    run_program(source, tmp_path / "log", env={"OPGUARD_CAPTURE": f"@{lines}"})
    assert {key[3] for key in captured(tmp_path / "log")} == {0, 1}


def test_nothing_read_before_a_transplant_is_carried_over_it(tmp_path):
    value = tensor_files.write(tmp_path / "v.safetensors", {"x": torch.full((128, 128), 5.0)})
    source = """
import torch
x = torch.zeros(128, 128)
v = x.view(-1)
og('t.use', torch.exp)(v)
og('t.relu', torch.relu)(x)
og('t.use', torch.exp)(v)
"""
    result = run_program(source, tmp_path / "log", env={"OPGUARD_TRANSPLANT": f"t.relu@0:arg0={value}", "OPGUARD_MODE": "default"})
    assert result.stderr == ""
    (log,) = logs_in(tmp_path / "log")
    before, after = (e.get("in", "arg0").flat for e in log.of("t.use"))
    assert before != after == log.of("t.relu")[0].get("in", "arg0").flat
