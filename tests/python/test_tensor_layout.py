"""What is read of torch's own struct is what torch's Python interface says (src/runtime/host/tensor_layout.h)."""

import json
import sys

import pytest

from conftest import build_dir
from runtime_log import record, run_program
from test_torch_native import events

pytest.importorskip("torch")

# Every sort of tensor that a struct could be read wrongly of; before them enough plain ones that the reading is trusted.
SOURCE = """
import json, torch
import opguard._rt as _rt
torch.manual_seed(0)
HOW
x = torch.randn(8, 8)
for _ in range(100):
    x = og("warm", torch.relu)(x)
print(json.dumps(_rt.tensor_layout(None)))
w = torch.nn.Parameter(torch.randn(8, 8))
c = torch.complex(x, x)
frozen = torch.arange(6.0)
memory = bytearray(b"12345678" * 4)
tensors = {
    "scalar": x[0, 0], "one": x[:1], "empty": x[:0], "empty_strided": torch.empty(0, 3)[:, 1:], "permuted": x.t(), "stepped": x[::2, 1::3],
    "expanded": x[:1].expand(8, 8), "deep": torch.randn(2, 1, 3, 2, 1, 2), "deeper": torch.randn(1, 2, 1, 2, 1, 2, 1, 2).transpose(1, 7),
    "five": torch.randn(2, 1, 2, 1, 3).permute(4, 3, 2, 1, 0), "offset": x[3:, 2:], "parameter": w, "made": w * 2, "of_view": w[1:],
    "detached": w.detach(), "data": w.data, "negated": c.conj().imag, "conjugate": c.conj(), "real": c.real, "meta": torch.empty(3, device="meta"),
    "sparse": x.to_sparse(), "quantized": torch.quantize_per_tensor(x, 0.1, 0, torch.qint8), "bytes": torch.frombuffer(memory, dtype=torch.uint8),
    "nested": torch.nested.nested_tensor([x[:2], x[:3]]),
    "wrapped": torch.tensor(3.0), "subclass": torch.Tensor._make_subclass(type("Own", (torch.Tensor,), {}), x),
}
for name in ("float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64", "float8_e5m2", "uint16", "uint32"):
    if hasattr(torch, name):
        tensors[name] = torch.arange(4).to(getattr(torch, name))
        # Of few numbers, which are read at once unless they may be a mask.
        tensors["few_" + name] = torch.arange(1, 9).to(getattr(torch, name)).view(1, 1, 8)
        tensors["few_below_zero_" + name] = (-torch.arange(1, 5)).to(getattr(torch, name))
for count in range(1, 20):
    tensors[f"numbers_{count}"] = torch.arange(1.0, count + 1)
    tensors[f"masked_{count}"] = torch.full((count,), -1e9 if count % 2 else 0.0)
    tensors[f"apart_{count}"] = torch.arange(1.0, 2 * count + 1)[::2]
tensors["nan"] = torch.tensor([1.0, float("nan"), -0.0, 1e-40])
if hasattr(torch, "_lazy_clone"):
    tensors["copied_on_write"] = torch._lazy_clone(frozen)
with torch.inference_mode():
    tensors["inference"], tensors["inference_view"] = torch.ones(3), x[1:]
resized = torch.ones(64)
resized.untyped_storage().resize_(0)
tensors["resized"] = resized
taken = torch.ones(4)
taken.set_(torch.arange(12.0)[3:].untyped_storage(), 3, (2, 2), (4, 1))
tensors["taken"] = taken
for name, t in tensors.items():
    for read in range(2):
        og(name, torch.is_tensor)(t)
for name in ("int64", "deep", "stepped", "five"):
    with torch.no_grad():
        og("write", tensors[name].add_)(1)
    og(name, torch.is_tensor)(tensors[name])
kept = []
for i in range(300):
    kept = (kept + [torch.rand(3 + i % 5)])[-5 - i % 7 :]
    og("of_short_life", torch.is_tensor)(kept[-1])
    og("of_any_life", torch.is_tensor)(kept[0][1:])
t = tensors["deep"]
og("squeezed", t.squeeze_)()
og("unsqueezed", t.unsqueeze_)(0)
og("swapped", torch.is_tensor)(t)
v = torch.nn.Parameter(torch.ones(4))
v.data = torch.ones(2, 3)
og("replaced", torch.is_tensor)(v)
try:
    from torch._subclasses.fake_tensor import FakeTensorMode
    with FakeTensorMode():
        og("fake", torch.is_tensor)(torch.empty(3))
except ImportError:
    pass
torch.func.vmap(lambda v: og("mapped", torch.sin)(v))(x)
torch.func.grad(lambda v: og("func_grad", torch.sin)(v).sum())(x)
loss = og("loss", (og("mul", tensors["made"].__mul__)(x)).sum)()
og("backward", loss.backward)()
"""

STRUCT = SOURCE.replace("HOW", "")
NATIVE = SOURCE.replace("HOW", "_rt.tensor_layout({})")
PYTHON = SOURCE.replace("HOW", "_rt.torch_native(False)")
FIELDS = {"object", "sizes", "storage_offset", "numel", "type", "storage", "autograd", "version", "keys", "data", "count"}


def found(output):
    return json.loads(output.stdout.splitlines()[0])


@pytest.mark.parametrize("mode", ["full", "default"])
def test_the_struct_and_python_say_the_same(tmp_path, mode):
    env = {"OPGUARD_MODE": mode, "PYTHONWARNINGS": "ignore"}
    struct, native, python = (record(s, tmp_path / n, env=env) for n, s in (("s", STRUCT), ("n", NATIVE), ("p", PYTHON)))
    assert len(events(struct)) > 180
    for a, b, c in zip(events(struct), events(native), events(python), strict=True):
        assert a == b == c


def test_every_field_is_found_and_trusted(tmp_path):
    layout = found(run_program(STRUCT, tmp_path / "a", env={"PYTHONWARNINGS": "ignore"}))
    assert FIELDS <= set(layout) and layout["trusted"]
    for given_up in (NATIVE, PYTHON):
        assert found(run_program(given_up, tmp_path / "b", env={"PYTHONWARNINGS": "ignore"})) == {"trusted": False}


# Each of the tensors in turn is another one than it is said to be.
TAMPERED = """
import json, torch
from opguard import _rt
from opguard.record import tensor_layout
def find(**wrong):
    found = _rt.tensor_layout({**tensor_layout.probes(torch), **wrong})
    found.pop("trusted")
    return found
right = find()
other = torch.zeros(2, 3)
print(json.dumps({"right": right, **{name: find(**{name: other}) for name in ("strided", "foreign", "leaf", "inference", "negated", "other")},
    "types": find(types=[torch.zeros(6)] * 13), "shared": find(shared=other), "keys": find(keys={"other": 12345}),
    "all": find(all=[]), "ordinary": find(ordinary=[]), "checked": find(checked=other), "nothing": _rt.tensor_layout({})}))
"""


def test_a_field_that_is_not_where_it_must_be_is_not_found(tmp_path):
    (line,) = run_program(TAMPERED, tmp_path / "log").stdout.splitlines()
    answers = json.loads(line)
    right = answers.pop("right")
    assert FIELDS <= set(right)
    # Of a tensor that is not what it is said to be, what tells the field lies nowhere, or in several places.
    for name in ("strided", "leaf", "inference", "negated", "types", "keys", "all", "ordinary", "checked", "nothing", "foreign", "shared"):
        assert answers[name] in ({}, {"trusted": False}), name


# Python answers otherwise than torch's struct, of the program's tensors alone.
MISLED = """
import json, torch
import opguard._rt as _rt
before = "sizes" in _rt.tensor_layout(None)
MISLEAD
for _ in range(100):
    og("warm", torch.relu)(torch.randn(8, 8))
print(json.dumps({"before": before, "trusted": _rt.tensor_layout(None)["trusted"]}))
"""


def test_a_tensor_of_the_program_that_differs_ends_it(tmp_path):
    """As long as tensors are compared, one that Python describes otherwise turns the reading off."""
    lying = "torch.Tensor.stride = lambda self: (7, 1)"
    for source, trusted in ((MISLED.replace("MISLEAD", ""), True), (MISLED.replace("MISLEAD", lying), False)):
        assert found(run_program(source, tmp_path / str(trusted))) == {"before": True, "trusted": trusted}


UNKNOWN = """
import json, torch
from opguard import _rt
from opguard.record import tensor_layout
torch.__version__ = VERSION
_rt.tensor_layout({})
tensor_layout.install(torch, _rt.tensor_layout)
print(json.dumps(_rt.tensor_layout(None)))
"""


@pytest.mark.parametrize("version, known", [("2.14.0a0+git123", False), ("3.0.0", False), ("2.0.1", False), ("nightly", False), ("2.13.1+cpu", True)])
def test_only_releases_that_were_tried_are_read(tmp_path, version, known):
    layout = found(run_program(UNKNOWN.replace("VERSION", repr(version)), tmp_path / "log"))
    assert ("sizes" in layout) == known


THREADS = """
import json, sys, threading, torch
import opguard._rt as _rt
sys.setswitchinterval(1e-6)
def work():
    for _ in range(200):
        og("relu", torch.relu)(torch.ones(2))
threads = [threading.Thread(target=work) for _ in range(8)]
for t in threads: t.start()
for t in threads: t.join()
print(json.dumps(_rt.tensor_layout(None)))
"""


def test_threads_that_meet_tensors_at_once_agree(tmp_path):
    for i in range(3):
        assert found(run_program(THREADS, tmp_path / str(i)))["trusted"]


def test_the_fields_are_found_every_time(tmp_path):
    """What lies unused in torch's structs is different every time."""
    source = "import json, torch\nfrom opguard import _rt\nfrom opguard.record import tensor_layout\n"
    source += "print(json.dumps([_rt.tensor_layout(tensor_layout.probes(torch)).get('keys', -1) for _ in range(100)]))"
    offsets = found(run_program(source, tmp_path / "log"))
    assert len(set(offsets)) == 1 and offsets[0] > 0, (offsets, sys.path, build_dir())
