"""What the tests of fingerprints share: the extension, and what it must say of a tensor."""

import sys

import numpy
import pytest
import torch

import og1
from conftest import build_dir


@pytest.fixture(scope="module")
def opguard():
    sys.path.insert(0, str(build_dir() / "python"))
    try:
        import opguard
    finally:
        sys.path.pop(0)
    return opguard


@pytest.fixture(scope="module")
def rt(opguard):
    from opguard import _rt

    return _rt


def content(tensor):
    """Bytes in logical order, uint8, shape + (element size,)."""
    t = tensor.detach().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
    data = t.reshape(-1).view(torch.uint8).numpy() if t.numel() else numpy.empty(0, numpy.uint8)
    return data.reshape(tuple(t.shape) + (t.element_size(),))


def expected(array):
    """What at_every_level() is of these bytes, whatever they mean."""
    h, m = og1.og1(array)
    return {"og1": (h, m), "all": (h, m, og1.flat(array), None), "xor32": og1.xor(array, 4), "xor64": og1.xor(array, 8)}


def at_every_level(rt, value, kinds=("og1", "all", "xor32", "xor64")):
    """{kind: fingerprint}, the same from every version of the inner loops; of "all" without the digest."""
    levels = rt.lane_sums()
    assert levels[-1] == "plain"
    results = []
    for level in levels:
        rt.lane_sums(level)
        results.append({kind: rt.fingerprint(value, kind) for kind in kinds})
    rt.lane_sums("")
    assert all(r == results[0] for r in results), (levels, results)
    if "all" in kinds:
        results[0]["all"] = results[0]["all"][:4]  # the digest is of values, not of bytes
    return results[0]


def tensor_of_bytes(data, dtype, offset, shape, strides):
    """A view of these bytes; offset and strides in elements."""
    storage = torch.from_numpy(data).untyped_storage()
    return torch.empty(0, dtype=dtype).set_(storage, offset, shape, strides)
