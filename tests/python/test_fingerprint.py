"""The fingerprints of the extension against og1.py, on torch's and numpy's tensors, and what they see."""

import itertools
import json
import subprocess
import sys

import pytest

from conftest import ROOT, build_dir, clean_environment

numpy = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

import og1  # noqa: E402  needs numpy
from fingerprints import at_every_level, content, expected, opguard, rt, tensor_of_bytes  # noqa: E402, F401  fixtures

sys.path.insert(0, str(ROOT / "bench"))
import blindspots  # noqa: E402  needs torch


def all_dtypes():
    """Every dtype whose elements torch lays out one after the other."""
    dtypes = {d for d in vars(torch).values() if isinstance(d, torch.dtype)}
    return sorted((d for d in dtypes if not str(d).startswith("torch.q")), key=str)


@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_every_dtype_and_stride(rt):
    """Thousands of views of random bytes, in every dtype, with gaps, broadcasts, overlaps, no elements."""
    random = numpy.random.default_rng(2)
    dtypes = all_dtypes()
    assert len(dtypes) > 12
    for number in range(3000):
        dtype = dtypes[number % len(dtypes)]
        size = dtype.itemsize
        shape = [int(n) for n in random.integers(0 if number % 7 == 0 else 1, 40 if number % 11 == 0 else 8, random.integers(0, 5))]
        while numpy.prod(shape) > 20000:
            shape.pop()
        strides, step = [0] * len(shape), 1
        for d in random.permutation(len(shape)):
            strides[d] = step * int(random.integers(1, 3)) if random.integers(6) else int(random.integers(0, 2))
            step = max(step, strides[d] * shape[d])
        offset = int(random.integers(3))
        last = offset + sum(s * max(n - 1, 0) for s, n in zip(strides, shape))
        data = random.integers(0, 256, (last + 1) * size, dtype=numpy.uint8)
        tensor = tensor_of_bytes(data, dtype, offset, shape, strides)
        array = numpy.lib.stride_tricks.as_strided(data[offset * size :], shape + [size], [s * size for s in strides] + [1])
        got, want = at_every_level(rt, tensor), expected(array)
        if got["all"][3] is not None:  # by chance a mask
            want["all"] = want["all"][:3] + (got["all"][3],)
        assert got == want, (dtype, shape, strides)


DTYPES = [torch.float32, torch.bfloat16, torch.uint8, torch.float64, torch.complex128]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_length(rt, dtype):
    random = numpy.random.default_rng(1)
    data = random.integers(0, 256, 4097 * dtype.itemsize, dtype=numpy.uint8)
    for n in [*range(301), *range(301, 4097, 97), 4096, 4097]:
        tensor = tensor_of_bytes(data, dtype, 0, (n,), (1,))
        assert rt.fingerprint(tensor) == og1.og1(data[: n * dtype.itemsize].reshape(n, dtype.itemsize)), n


# Larger than a task, so that the threads divide them; rows shorter and longer than a chunk, odd, transposed.
LARGE = [((700, 1500), torch.float32), ((3, 700001), torch.bfloat16), ((1031, 1001), torch.bfloat16), ((3_000_001,), torch.uint8)]


@pytest.mark.parametrize("shape, dtype", LARGE, ids=str)
def test_threads_do_not_show(rt, shape, dtype):
    t = torch.randn(shape).mul(50).to(dtype)
    before = torch.get_num_threads()
    try:
        for view in (t, t.t()):
            want = expected(content(view))
            for threads in (1, 3):
                torch.set_num_threads(threads)
                assert at_every_level(rt, view) == want
    finally:
        torch.set_num_threads(before)


def test_views_that_change_values(rt):
    z = torch.randn(4, 5, dtype=torch.complex64)
    assert rt.fingerprint(z.conj()) == og1.og1(content(z.conj())) != rt.fingerprint(z)
    assert rt.fingerprint(z.conj().imag) == og1.og1(content(z.conj().imag))
    assert rt.fingerprint(torch._neg_view(z.real)) == og1.og1(content(-z.real))
    assert rt.fingerprint(torch.nn.Parameter(z)) == rt.fingerprint(z)


def test_numpy_arrays_are_as_their_tensors(rt):
    for dtype in ("f2", "f4", "f8", "i8", "u1", "?", "c8"):
        a = (numpy.random.default_rng(3).standard_normal((5, 6)) * 9).astype(dtype)
        for v in (a, a.T, a[::-1], a[:, ::-2], a[:0]):
            for kind in ("all", "xor32", "xor64"):
                assert rt.fingerprint(v, kind) == rt.fingerprint(torch.from_numpy(v.copy()), kind), dtype


@pytest.mark.filterwarnings("ignore")
def test_quantized_tensors_are_their_integers(rt):
    x = torch.linspace(-1, 1, 60).reshape(6, 10)
    q = torch.quantize_per_tensor(x, 0.1, 3, torch.qint8)
    assert rt.fingerprint(q) == rt.fingerprint(q.int_repr())
    assert rt.fingerprint(q.T) == rt.fingerprint(q.int_repr().T)
    packed = torch.quantize_per_channel(x, torch.ones(6) / 8, torch.zeros(6), 0, torch.quint4x2)
    other = torch.quantize_per_channel(x + 1, torch.ones(6) / 8, torch.zeros(6), 0, torch.quint4x2)
    assert rt.fingerprint(packed) not in (None, rt.fingerprint(other))
    odd = torch.quantize_per_channel(x[:, :9], torch.ones(6) / 8, torch.zeros(6), 0, torch.quint4x2)
    assert rt.fingerprint(odd) is None


def test_unreadable_is_none(rt):
    assert rt.fingerprint(torch.empty(3, device="meta")) is None
    assert rt.fingerprint(torch.eye(3).to_sparse()) is None
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = torch.empty(3)
    assert rt.fingerprint(fake) is None
    assert rt.fingerprint(object()) is None
    with pytest.raises(ValueError):
        rt.fingerprint(torch.zeros(3), "crc")
    with pytest.raises(ValueError):
        rt.lane_sums("avx9")


def test_zero_bits_are_zero(rt):
    for shape in ((), (0,), (7,), (3, 5, 2)):
        assert rt.fingerprint(torch.zeros(shape)) == (0, 0)
    assert rt.fingerprint(torch.tensor(-0.0)) != (0, 0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_mask_patterns(rt, dtype):
    """The flat hash of a byte an element, whatever the constant; none where any other value is."""
    for shape in ((9,), (1, 1, 33, 33), (64, 700)):
        upper = torch.ones(shape, dtype=torch.bool).triu() if len(shape) > 1 else torch.arange(shape[0]) > 4
        want = og1.flat(content(upper))
        for constant in (float("-inf"), torch.finfo(dtype).min, -1e4 if dtype is not torch.bfloat16 else -1e9):
            mask = torch.zeros(shape, dtype=dtype).masked_fill(upper, constant)
            assert at_every_level(rt, mask, ("all",))["all"] == (*og1.og1(content(mask)), og1.flat(content(mask)), want)
            mask.view(-1)[-2] = 0.5
            assert rt.fingerprint(mask, "all")[3] is None
    assert rt.fingerprint(torch.zeros(100, dtype=dtype), "all") == (0, 0, 0, None, 0)


@pytest.mark.parametrize("name", blindspots.changes())
def test_sees_what_others_miss(rt, name):
    a, b = blindspots.changes()[name]
    # A record holds the shape beside the digest: zeros add nothing to any of these sums.
    assert (rt.fingerprint(a), a.shape) != (rt.fingerprint(b), b.shape)
    if name.startswith("rows"):
        assert rt.fingerprint(a)[1] == rt.fingerprint(b)[1], "m is that of the rows in any order"


@pytest.mark.parametrize("name", blindspots.equals())
def test_one_value_has_one_fingerprint(rt, name):
    a, b = blindspots.equals()[name]
    assert rt.fingerprint(a, "all") == rt.fingerprint(b, "all")


def test_the_blind_spots_of_others_are_what_the_table_says(rt):
    """Else the table would praise og1 for what is easy."""
    missed = lambda column: {n for n, row in blindspots.table(blindspots.changes(), {column: blindspots.digests(rt)[column]}).items() if not row[column]}
    assert {"rows permuted", "twin halves changed alike", "two elements swapped", "all signs flipped"} <= missed("xor32") & missed("xor64")
    assert {"rows permuted", "all elements permuted", "one sign flipped", "NaN payload"} <= missed("l1")
    assert missed("og1") == {"zeros of other length", "zeros behind", "no elements, and zeros"}
    assert missed("crc32") == {"reshaped"}


def test_blindspots_prints_its_table(tmp_path):
    command = [sys.executable, ROOT / "bench" / "blindspots.py", "--package", build_dir() / "python", "--json", tmp_path / "b.json"]
    result = subprocess.run(command, env=clean_environment(), capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    figures = json.loads((tmp_path / "b.json").read_text())
    assert figures["changes"].keys() == blindspots.changes().keys() and figures["equal"].keys() == blindspots.equals().keys()
    assert figures["missed"]["og1"] == 3 and "NaN payload" in result.stdout


def test_all_kinds_of_dtypes_are_tried():
    names = {str(d)[6:] for d in all_dtypes()}
    assert names >= {"bool", "uint8", "bfloat16", "float16", "float64", "complex64", "complex128", "int64"}
    if torch.__version__ >= "2.13":
        assert names >= {"float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn_x2", "bits4x2", "int4", "complex32", "uint64"}


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("dtype", all_dtypes(), ids=str)
def test_every_bit_and_every_swap(rt, dtype):
    """Of a small tensor: each bit flipped, each pair of elements swapped, each order of its rows is another fingerprint, and no two are the same."""
    random = numpy.random.default_rng(5)
    shape, size = (3, 5), dtype.itemsize
    data = random.permutation(256)[: 15 * size].astype(numpy.uint8)  # no two elements are equal
    take = lambda array: rt.fingerprint(tensor_of_bytes(numpy.ascontiguousarray(array).reshape(-1), dtype, 0, shape, (5, 1)))
    seen = {take(data): "unchanged"}

    def differs(array, what):
        found = take(array)
        assert found not in seen, (what, seen[found])
        seen[found] = what

    for bit in range(8 * len(data)):
        flipped = data.copy()
        flipped[bit // 8] ^= 1 << bit % 8
        differs(flipped, f"bit {bit}")
    elements = data.reshape(15, size)
    for i, j in itertools.combinations(range(15), 2):
        order = list(range(15))
        order[i], order[j] = j, i
        differs(elements[order], f"elements {i} and {j} swapped")
    rows = data.reshape(3, 5 * size)
    for order in list(itertools.permutations(range(3)))[1:]:
        differs(rows[list(order)], f"rows {order}")
        assert take(rows[list(order)])[1] == take(data)[1]
    columns = data.reshape(3, 5, size)
    for order in itertools.permutations(range(5)):
        if sum(i != o for i, o in enumerate(order)) > 2:
            differs(columns[:, list(order)], f"columns {order}")


def test_twin_changes(rt):
    """The same bits flipped in two places, any bits, any places: what XOR cannot see."""
    random = numpy.random.default_rng(6)
    for dtype in (torch.float32, torch.bfloat16, torch.uint8, torch.float64):
        x = torch.randn(64, 48).mul(9).to(dtype)
        integer = blindspots.INTEGER[dtype.itemsize]
        want = rt.fingerprint(x)
        for _ in range(300):
            y = x.clone()
            bits = 1 << int(random.integers(8 * dtype.itemsize))
            bits -= (bits >= 1 << (8 * dtype.itemsize - 1) and dtype != torch.uint8) << (8 * dtype.itemsize)
            for place in random.choice(64 * 48, 2, replace=False):
                y.view(integer).view(-1)[int(place)] ^= bits
            assert rt.fingerprint(y) != want
            if dtype.itemsize >= 4:
                kind = f"xor{8 * dtype.itemsize}"
                assert rt.fingerprint(y, kind) == rt.fingerprint(x, kind)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.float8_e5m2], ids=str)
def test_every_nan_is_its_own(rt, dtype):
    """All payloads of a narrow type, single bits of a wide one; infinity is none of them."""
    size = dtype.itemsize
    infinity = torch.tensor([float("inf")], dtype=torch.float32).to(dtype).view(blindspots.INTEGER[size])[0].item()
    mantissa = {1: 2, 2: 10 if dtype is torch.float16 else 7, 4: 23, 8: 52}[size]
    payloads = range(1 << mantissa) if mantissa <= 10 else [0, *(1 << b for b in range(mantissa))]
    sign = -(1 << (8 * size - 1)) if size > 1 else 0x80
    bits = [infinity | p | s for p in payloads for s in (0, sign)]
    values = [torch.tensor([1, b, 2], dtype=blindspots.INTEGER[size]).view(dtype) for b in bits]
    assert sum(bool(v[1].float().isnan()) for v in values) == len(bits) - 2
    assert len({rt.fingerprint(v) for v in values}) == len(bits)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
def test_conjugate_and_negative_views_of_views(rt, dtype):
    z = torch.randn(6, 5, 8, dtype=dtype)
    real = torch.randn(6, 5, 8)
    for cut in (lambda t: t, lambda t: t[1:4, :, ::3], lambda t: t.permute(2, 0, 1), lambda t: t[:1].expand(7, 5, 8), lambda t: t[:0], lambda t: t[0, 0, 0]):
        for view in (cut(z).conj(), cut(z.conj()), cut(z.conj()).imag, cut(z.conj()).real, torch._neg_view(cut(z)), torch._neg_view(cut(z).conj()), torch._neg_view(cut(real))):
            assert at_every_level(rt, view) == expected(content(view)), (view.shape, view.stride())


def test_strided_tensors_are_not_copied():
    """Peak memory, of a process of its own."""
    run("""
def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) << 10
x = torch.ones(1 << 12, 1 << 12)  # 64 MiB
_rt.fingerprint(x[:8])
before = peak()
for view in (x.t(), x[:, ::2], x[:, 1:], x.view(64, 64, -1).permute(2, 0, 1), x[:1].expand(1 << 12, -1)):
    _rt.fingerprint(view)
    assert peak() - before < 16 << 20, (view.shape, view.stride(), peak() - before)
""")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", [torch.qint8, torch.quint8, torch.qint32, torch.quint4x2, torch.quint2x4], ids=str)
def test_every_quantized_dtype(rt, dtype):
    if dtype in (torch.quint4x2, torch.quint2x4):
        make = lambda: torch._empty_per_channel_affine_quantized([4, 8], scales=torch.ones(4), zero_points=torch.zeros(4), axis=0, dtype=dtype)
    else:
        make = lambda: torch._empty_affine_quantized([4, 8], scale=0.5, zero_point=1, dtype=dtype)
    x, y = make(), make()
    for t in (x, y):
        t.untyped_storage().copy_(torch.arange(len(t.untyped_storage()), dtype=torch.uint8).untyped_storage())
    assert rt.fingerprint(x) == rt.fingerprint(y) not in (None, (0, 0))
    last = torch.empty(0, dtype=torch.uint8).set_(y.untyped_storage())
    last[-1] ^= 64
    assert rt.fingerprint(x) != rt.fingerprint(y)


PROGRAM = """
import os, signal, sys, threading, time
sys.path.insert(0, {package!r})
import torch
from opguard import _rt
tasks = lambda: len(os.listdir("/proc/self/task"))
x = torch.arange(1 << 22, dtype=torch.float32).view(1 << 11, -1)
"""


def run(source):
    program = PROGRAM.format(package=str(build_dir() / "python")) + source
    result = subprocess.run([sys.executable, "-c", program], env=clean_environment(), capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr


def test_as_many_threads_as_torch(rt):
    run("""
torch.set_num_threads(1)
before = tasks()
want = _rt.fingerprint(x)
assert tasks() == before
torch.set_num_threads(3)
before = tasks()
assert _rt.fingerprint(x) == want
assert before < tasks() <= before + 2, (before, tasks())
_rt.fingerprint(x[:4])
""")


def test_works_in_forked_children(rt):
    run("""
torch.set_num_threads(3)
want = _rt.fingerprint(x)
for _ in range(5):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit(0 if _rt.fingerprint(x) == want else 1)
    assert os.waitpid(child, 0)[1] == 0
assert _rt.fingerprint(x) == want
""")


def test_other_threads_run_meanwhile(rt):
    run("""
count, stop = 0, False
def work():
    global count
    while not stop:
        count += 1
        time.sleep(0)
thread = threading.Thread(target=work)
thread.start()
long = x[:1, :1024].expand(1 << 17, 1024)  # 512 MiB to read, 4 KiB in memory
sys.setswitchinterval(1000)
time.sleep(0.01)
before = count
_rt.fingerprint(long)
assert count > before
stop = True
thread.join()
""")


def test_bench_prints_its_ratios(tmp_path):
    command = [sys.executable, ROOT / "bench" / "fingerprint.py", "--package", build_dir() / "python", "--mib", "1", "--rounds", "1", "--level", "plain"]
    result = subprocess.run([*command, "--json", tmp_path / "f.json"], env=clean_environment(), capture_output=True, text=True, timeout=300)
    assert result.returncode in (0, 1), result.stderr
    figures = json.loads((tmp_path / "f.json").read_text())
    assert figures["level"] == "plain" and len(figures["rows"]) > 20
    for row in figures["rows"]:
        assert row["ratio"]["memory"] > 0 and row["gb_per_s"]["all"] > 0 < row["gb_per_s"]["og1"]
    assert set(figures["least"]) == set(figures["goals"]) == {"all of sum", "og1 of sum", "og1 of hash_tensor"}
