"""Fingerprints of shards combine to that of the whole tensor."""

import pytest

numpy = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

from fingerprints import opguard, rt  # noqa: E402, F401  fixtures


def test_shards_combine(opguard, rt):
    g = torch.Generator().manual_seed(4)
    pick = lambda low, high: int(torch.randint(low, high, (1,), generator=g))
    for _ in range(400):
        shape = [pick(1, 9) for _ in range(pick(1, 5))]
        dtype = [torch.float32, torch.bfloat16, torch.uint8, torch.complex128][pick(0, 4)]
        t = torch.randn(shape, generator=g).mul(99).to(dtype)
        dim, whole = -1 - pick(0, len(shape)), rt.fingerprint(t)
        cuts = sorted(pick(0, shape[dim] + 1) for _ in range(pick(0, 4)))
        sizes = [b - a for a, b in zip([0, *cuts], [*cuts, shape[dim]])]
        parts = [rt.fingerprint(p) for p in t.split(sizes, dim)]
        if dim == -1:
            try:
                h, m = opguard.combine(parts, dim, sizes, element_size=t.element_size())
            except ValueError:
                lanes = {next(w for w in (8, 4, 2, 1) if n * t.element_size() % w == 0) for n in [*sizes, shape[-1]] if n}
                assert len(lanes) > 1
                continue
            assert (h, m) == (whole[0], None)
        else:
            assert opguard.combine(parts, dim, sizes) == whole, (shape, dim, sizes)
            assert opguard.combine(parts, dim + len(shape), sizes, ndim=len(shape)) == whole
            order = torch.randperm(len(parts), generator=g).tolist()
            starts = [sum(sizes[:i]) for i in order]
            assert opguard.combine([parts[i] for i in order], dim, offsets=starts) == whole


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.bool, torch.complex64, torch.float64], ids=str)
def test_every_cut_of_every_dim_combines(opguard, rt, dtype):
    shape = (3, 4, 2, 8)
    t = torch.randn(shape).mul(9).to(dtype)
    whole = rt.fingerprint(t)
    for dim, cut in ((d, c) for d in range(4) for c in range(1, shape[d])):
        parts = [t.narrow(dim, 0, cut), t.narrow(dim, cut, shape[dim] - cut)]
        prints, sizes = [rt.fingerprint(p) for p in parts], [cut, shape[dim] - cut]
        if dim < 3:
            assert opguard.combine(prints, dim, sizes, ndim=4) == whole, (dim, cut)
        elif (cut * dtype.itemsize) % 8 == 0:  # lanes of 8 bytes in the whole and in both parts
            assert opguard.combine(prints, dim, sizes, ndim=4, element_size=dtype.itemsize) == (whole[0], None)
        # Without elements a shard adds nothing.
        empty = rt.fingerprint(t.narrow(dim, 0, 0))
        assert dim == 3 or opguard.combine([*prints, empty], dim, [*sizes, 0], ndim=4) == whole


def test_shards_of_a_mesh_combine(opguard, rt):
    t = torch.randn(8, 6, 16)
    columns = [opguard.combine([rt.fingerprint(p) for p in c.chunk(4, 0)], -3, 2) for c in t.chunk(2, -1)]
    assert opguard.combine(columns, -1, 8, element_size=4)[0] == rt.fingerprint(t)[0]
    assert opguard.combine([rt.fingerprint(t)], -2, [6]) == rt.fingerprint(t)


def test_what_cannot_be_combined_is_refused(opguard):
    parts = [(1, 2), (3, 4)]
    for arguments in (
        dict(dim=-2), dict(dim=0, sizes=3), dict(dim=-2, sizes=[1]), dict(dim=-2, offsets=[0, -1]), dict(dim=-1, sizes=4),
        dict(dim=-1, sizes=[1, 3], element_size=4), dict(dim=-1, sizes=[1, 1], element_size=4),
        dict(dim=-1, offsets=[0, 4], element_size=4), dict(dim=3, sizes=2, ndim=3),
    ):  # fmt: skip
        with pytest.raises(ValueError):
            opguard.combine(parts, **arguments)
