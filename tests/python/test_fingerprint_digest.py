"""The digest of a tensor's values: the same wherever they lie, and in whatever type."""

import pytest

numpy = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

import og1  # noqa: E402  needs numpy
from fingerprints import opguard, rt, tensor_of_bytes  # noqa: E402, F401  fixtures


def digest_at_every_level(rt, value):
    results = []
    for level in rt.lane_sums():
        rt.lane_sums(level)
        results += [rt.fingerprint(value, "digest"), rt.fingerprint(value, "all")[4]]
    rt.lane_sums("")
    assert results == results[:1] * len(results)
    return results[0]


NUMBERS = [torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
           torch.complex64, torch.complex128]  # fmt: skip


def as_numpy(x):
    x = x.detach().resolve_conj().resolve_neg()
    return (x.float() if x.dtype in (torch.bfloat16, torch.float16) else x).numpy()


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_digest_of_every_length(rt, dtype):
    """Of random bits: NaNs, subnormals, infinities and integers that no float holds."""
    random = numpy.random.default_rng(6)
    data = random.integers(0, 256, 4097 * dtype.itemsize, dtype=numpy.uint8)
    if dtype is torch.bool:
        data %= 2
    for n in [*range(70), *range(70, 4090, 401), *range(4090, 4098)]:
        tensor = tensor_of_bytes(data, dtype, 0, (n,), (1,))
        assert digest_at_every_level(rt, tensor) == og1.digest(as_numpy(tensor)), n


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_digest_survives_what_only_moves(rt, dtype):
    x = torch.randn(6, 10, 8).mul(50)
    x = x > 0 if dtype is torch.bool else x.to(dtype)
    d = rt.fingerprint(x, "digest")
    assert d == og1.digest(as_numpy(x)) != 0
    order = torch.randperm(480)
    for moved in (x.permute(2, 0, 1), x.reshape(60, 8), x.flip(1), x.view(-1)[order], x.transpose(0, 2).contiguous()):
        assert digest_at_every_level(rt, moved) == d
    assert rt.fingerprint(torch.cat([x.view(-1), torch.zeros(13, dtype=dtype)]), "digest") == d
    sums = lambda parts: sum(rt.fingerprint(p, "digest") for p in parts) % (1 << 64)
    for dim in range(3):
        assert sums(x.split(3, dim)) == d
        assert sums(x.unbind(dim)) == d
    for k, repeated in ((3, x.repeat(1, 3, 1)), (5, x.expand(5, 6, 10, 8)), (4, x.repeat_interleave(4, 0)), (2, torch.stack([x, x], -1))):
        assert rt.fingerprint(repeated, "digest") == d * k % (1 << 64)
    changed = x.clone()
    changed[3, 4, 5] = 0 if x[3, 4, 5] else 1
    assert rt.fingerprint(changed, "digest") != d
    assert rt.fingerprint(x, "og1") != rt.fingerprint(x.flip(1), "og1"), "it never makes a pair equal"


def test_digest_survives_casts_that_lose_nothing(rt):
    digest = lambda x: digest_at_every_level(rt, x)
    whole = torch.arange(-100, 101)
    for dtype in (torch.int8, torch.int16, torch.int32, torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64):
        assert digest(whole.to(dtype)) == digest(whole), dtype
    mask = torch.rand(999) < 0.3
    for dtype in (torch.uint8, torch.int64, torch.bfloat16, torch.float32):
        assert digest(mask.to(dtype)) == digest(mask) != 0
    fractions = torch.randn(501).bfloat16()
    fractions[:4] = torch.tensor([float("inf"), float("-inf"), float("nan"), -0.0])
    for dtype in (torch.float32, torch.float64):
        assert digest(fractions.to(dtype)) == digest(fractions)
    for small in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"):
        if hasattr(torch, small):
            every = torch.arange(256, dtype=torch.uint8).view(getattr(torch, small))
            assert digest(every) == digest(every.float()), small
    tiny = torch.arange(1, 900).to(torch.float32) * 2.0**-149
    assert digest(tiny.double()) == digest(tiny)
    half = torch.arange(65536).to(torch.uint16).view(torch.float16) if hasattr(torch, "uint16") else torch.rand(9).half()
    assert digest(half.float()) == digest(half) == digest(half.double())
    large = torch.tensor([2**53 + 1, 2**62, -(2**40) - 1])
    assert digest(large) == og1.digest(large.numpy())
    # One that rounds does not.
    assert digest(torch.tensor([0.1], dtype=torch.float64)) != digest(torch.tensor([0.1]))
    assert digest(torch.randn(50)) != digest(torch.randn(50).bfloat16())


def test_digest_is_not_known_of_what_holds_no_numbers(rt):
    strange = numpy.zeros(5, numpy.longdouble)
    assert rt.fingerprint(strange, "digest") is None or numpy.longdouble().itemsize == 8
    assert rt.fingerprint(torch.empty(3, device="meta"), "digest") is None
