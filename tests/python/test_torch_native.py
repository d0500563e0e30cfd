"""What torch's C++ functions say of tensors is what its Python interface says (src/runtime/host/torch_native.h)."""

from pathlib import Path

import pytest

from runtime_log import record, run_program

pytest.importorskip("torch")

# Tensors of every sort that the two ways could tell apart, first enough plain ones that the native way is trusted.
SOURCE = """
import torch
import opguard._rt as _rt
torch.manual_seed(0)
NATIVE = True
_rt.torch_native(NATIVE)
x = torch.randn(8, 8)
for _ in range(100):
    x = og("warm", torch.relu)(x)
print(_rt.torch_native(True))
w = torch.nn.Parameter(torch.randn(8, 8))
tensors = {
    "plain": x, "parameter": w, "made": w * 2, "view": x[1:], "scalar": x[0, 0], "empty": x[:0],
    "negated": torch.complex(x, x).conj().imag, "conjugate": torch.complex(x, x).conj(), "meta": torch.empty(3, device="meta"),
    "sparse": x.to_sparse(), "integers": torch.arange(5), "bools": x > 0, "half": x.bfloat16(), "detached": w.detach(),
}
with torch.inference_mode():
    tensors["inference"] = torch.ones(3)
for name, t in tensors.items():
    for read in range(2):
        og(name, torch.is_tensor)(t)
    if name in ("plain", "integers", "view"):
        with torch.no_grad():
            og("write", t.add_)(1)
        og(name, torch.is_tensor)(t)
loss = og("loss", (og("mul", w.__mul__)(x)).sum)()
og("backward", loss.backward)()
with torch.no_grad():
    og("update", w.sub_)(w.grad)
og("after", w.sum)()
# A mode and a checkpoint: what the thread's state is asked for.
class Seen(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, f, types, args=(), kwargs=None):
        return f(*args, **(kwargs or {}))
with Seen():
    og("in_mode", torch.exp)(x)
from torch.utils.checkpoint import checkpoint
checkpoint(lambda v: og("again", torch.sin)(v).sum(), w, use_reentrant=False).backward()
"""

PYTHON = SOURCE.replace("NATIVE = True", "NATIVE = False")


def events(log):
    return [(e.boundary, e.kind, e.phase, e.flags, e.scalars, e.results,
             [(s.kind, s.name, s.flags, s.dtype, s.device, s.shape, s.version, s.storage, s.size_bytes, s.value) for s in e.slots])
            for e in log.events if e.kind != "state"]  # fmt: skip


@pytest.mark.parametrize("mode", ["full", "default"])
def test_both_ways_record_the_same(tmp_path, mode):
    native = record(SOURCE, tmp_path / "native", env={"OPGUARD_MODE": mode})
    python = record(PYTHON, tmp_path / "python", env={"OPGUARD_MODE": mode})
    assert len(events(native)) > 130
    assert events(native) == events(python)
    phases = {e.phase for e in native.of("again")}
    assert len(phases) == 2, "the checkpoint's second forward is a recomputation"


# As src/runtime/host/torch_native.cc looks for them.
NAMES = ["_ZN2at6native6is_negERKNS_6TensorE", "_ZN2at6native12is_inferenceERKNS_6TensorE", "_ZNK2at10TensorBase8_versionEv",
         "_ZN5torch8autograd4impl17get_autograd_metaERKN2at10TensorBaseE"]  # fmt: skip


def exported():
    import ctypes
    import torch

    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
    return all(hasattr(library, name) for name in NAMES)


def test_the_pinned_torch_exports_the_functions():
    import torch

    if torch.__version__.split("+")[0] == "2.13.0":
        assert exported()


def test_it_is_trusted_after_a_while_and_can_be_given_up(tmp_path):
    assert run_program(SOURCE, tmp_path / "a").stdout.split() == [str(exported())]
    assert run_program(PYTHON, tmp_path / "b").stdout.split() == ["False"]


THREADS = """
import sys, threading, torch
import opguard._rt as _rt
_rt.torch_native(True)
sys.setswitchinterval(1e-6)
def work():
    for _ in range(200):
        og("relu", torch.relu)(torch.ones(2))
threads = [threading.Thread(target=work) for _ in range(8)]
for t in threads: t.start()
for t in threads: t.join()
print(_rt.torch_native(True))
"""


def test_threads_that_meet_tensors_at_once_agree(tmp_path):
    """The comparison asks Python, which lets other threads compare theirs."""
    for i in range(3):
        assert run_program(THREADS, tmp_path / str(i)).stdout.split() == [str(exported())]
