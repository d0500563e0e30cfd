"""og1 of the extension against a numpy rendering of docs/record-format.md, on torch's and numpy's tensors."""

import sys

import pytest

from conftest import build_dir

numpy = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

M64 = (1 << 64) - 1


def base(dim):
    z = (dim + 1) * 0x9E3779B97F4A7C15 & M64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & M64
    z = (z ^ z >> 27) * 0x94D049BB133111EB & M64
    return (z ^ z >> 31) & ~7 | (3 if dim % 2 else 5)


def mix(x):
    x = x ^ x >> numpy.uint64(29)
    x = x * numpy.uint64(0xD6E8FEB86659FD93)
    return x ^ x >> numpy.uint64(32)


def powers(dim, n):
    return numpy.array([pow(base(dim), i, 1 << 64) for i in range(n)], dtype=numpy.uint64)


def og1(array, size):
    """array: bytes in logical order, shape + (size,), uint8."""
    shape = array.shape[:-1]
    if 0 in shape:
        return 0, 0
    row_bytes = (shape[-1] if shape else 1) * size
    lane = next(w for w in (8, 4, 2, 1) if row_bytes % w == 0)
    rows = numpy.ascontiguousarray(array).reshape(-1, row_bytes)
    lanes = rows.view("<u%d" % lane).astype(numpy.uint64)
    hashes = (mix(lanes) * powers(0, lanes.shape[1])).sum(axis=1, dtype=numpy.uint64)
    m = int(mix(hashes).sum(dtype=numpy.uint64))
    h = hashes.reshape(shape[:-1])
    for dim in range(1, len(shape)):  # the last remaining dimension is number `dim` from the end
        h = (h * powers(dim, h.shape[-1])).sum(axis=-1, dtype=numpy.uint64)
    return int(h), m


@pytest.fixture(scope="module")
def rt():
    sys.path.insert(0, str(build_dir() / "python"))
    try:
        from opguard import _rt
    finally:
        sys.path.pop(0)
    return _rt


def reference(tensor):
    t = tensor.detach().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
    size = t.element_size()
    data = t.reshape(-1).view(torch.uint8).numpy() if t.numel() else numpy.empty(0, numpy.uint8)
    return og1(data.reshape(tuple(t.shape) + (size,)), size)


DTYPES = [
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int16, torch.int32,
    torch.int64, torch.bool, torch.complex64, torch.complex128,
]  # fmt: skip


def random_tensor(shape, dtype, generator):
    t = torch.randn(shape, generator=generator, dtype=torch.float64) * 50
    return t > 0 if dtype is torch.bool else t.to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_length(rt, dtype):
    g = torch.Generator().manual_seed(1)
    for n in range(301):
        t = random_tensor((n,), dtype, g)
        assert rt.fingerprint(t) == reference(t), n


def test_random_shapes_and_strides(rt):
    g = torch.Generator().manual_seed(2)
    pick = lambda n: int(torch.randint(n, (1,), generator=g))
    for _ in range(1500):
        shape = [pick(7) for _ in range(pick(5))]
        t = random_tensor(shape, DTYPES[pick(len(DTYPES))], g)
        if shape:
            t = t.permute(*torch.randperm(len(shape), generator=g).tolist())
            d = pick(len(shape))
            t = [t, t[..., ::2], t.narrow(d, 0, t.shape[d] // 2), t.unsqueeze(d).expand(*t.shape[:d], 3, *t.shape[d:])][pick(4)]
        assert rt.fingerprint(t) == reference(t), (t.shape, t.stride(), t.dtype)


def test_views_that_change_values(rt):
    z = torch.randn(4, 5, dtype=torch.complex64)
    assert rt.fingerprint(z.conj()) == reference(z.conj()) != rt.fingerprint(z)
    assert rt.fingerprint(z.conj().imag) == reference(z.conj().imag)
    assert rt.fingerprint(torch.nn.Parameter(z)) == rt.fingerprint(z)


def test_numpy_arrays_are_as_their_tensors(rt):
    for dtype in ("f4", "f8", "i8", "u1", "?", "c8"):
        a = (numpy.random.default_rng(3).standard_normal((5, 6)) * 9).astype(dtype)
        for v in (a, a.T, a[::-1], a[:, ::-2], a[:0]):
            assert rt.fingerprint(v) == rt.fingerprint(torch.from_numpy(v.copy())), dtype


def test_unreadable_is_none(rt):
    assert rt.fingerprint(torch.empty(3, device="meta")) is None
    assert rt.fingerprint(torch.eye(3).to_sparse()) is None
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = torch.empty(3)
    assert rt.fingerprint(fake) is None
    assert rt.fingerprint(object()) is None


def test_zero_bits_are_zero(rt):
    for shape in ((), (0,), (7,), (3, 5, 2)):
        assert rt.fingerprint(torch.zeros(shape)) == (0, 0)
    assert rt.fingerprint(torch.tensor(-0.0)) != (0, 0)
