"""`_rt.measures`: og1's h and the Euclidean length of tensors, in one pass."""

import math

import pytest
from runtime_log import run_program

SETUP = """
import math, torch
from opguard import _rt
torch.manual_seed(0)
"""


def test_lengths_and_hashes_of_every_kind_of_tensor():
    run_program(SETUP + """
x = torch.randn(300, 70)
all = [x, x.t(), x[3:7, ::2], torch.zeros(0), torch.tensor(3.5), torch.randn(2_000_000), torch.nn.Parameter(x), x.expand(3, 300, 70),
       x.bfloat16(), x.half(), x.double(), torch.randn(40_000, 30), torch.randn(3, 50_000).t()]
hashes, lengths = _rt.measures(all)
assert hashes == _rt.hashes(all)
for t, length in zip(all, lengths):
    exact = torch.linalg.vector_norm(t.detach().double()).item()
    assert math.isclose(length, exact, rel_tol=1e-6, abs_tol=0), (t.dtype, t.shape, length, exact)
""")


@pytest.mark.parametrize("value", ["nan", "inf", "1e30"])
def test_what_is_not_finite(value):
    found = run_program(SETUP + f"x = torch.ones(5000); x[77] = float('{value}')\nprint(_rt.measures([x])[1][0])").stdout
    assert found.strip() in ("nan", "inf") if value != "1e30" else math.isclose(float(found), 1e30, rel_tol=1e-6)


def test_what_has_no_length_or_cannot_be_read():
    run_program(SETUP + """
x = torch.arange(6)
odd = [torch.empty(3, device='meta'), torch.eye(2).to_sparse(), None, 7]
hashes, lengths = _rt.measures([x, x > 2, *odd])
assert hashes == _rt.hashes([x, x > 2]) + [None] * 4 and lengths == [None] * 6
assert _rt.measures(()) == ([], [])
for wrong in (None, {}, x):
    try: _rt.measures(wrong)
    except TypeError: pass
    else: raise AssertionError(wrong)
""")


def test_a_single_precision_length_is_stored_as_one():
    run_program(SETUP + """
import struct
length = _rt.measures([torch.randn(1000)])[1][0]
assert struct.unpack('f', struct.pack('f', length))[0] == length
""")


def test_rows_of_several_tensors_together():
    run_program(SETUP + """
x, y, other = torch.randn(5, 3, 2), torch.arange(5), torch.ones(4, 2)
def together(*rows):
    total = 0
    for h in rows: total = (total * 0x9E3779B97F4A7C15 + h + 1) % 2 ** 64
    return total
expected = [together(*_rt.hashes([x[i], y[i]])) for i in range(5)]
assert _rt.row_hashes((x, y, other), 4096) == expected
assert _rt.row_hashes((x, y), 3) == expected[:3]
assert _rt.row_hashes((x.transpose(1, 2).contiguous().transpose(1, 2), y), 9) == expected
assert _rt.row_hashes((torch.tensor(1.0), torch.empty(3, device='meta'), y, None), 9) == [together(h) for h in _rt.hashes(list(y))]
assert _rt.row_hashes((), 9) == _rt.row_hashes((torch.zeros(0, 3),), 9) == []
big = torch.randn(300, 20_000)
assert _rt.row_hashes((big,), 300) == [together(h) for h in _rt.hashes(list(big))]
""")
