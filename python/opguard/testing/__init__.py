"""Bit-identical or not, inside a test: docs/guide/testing.md.

    from opguard.testing import assert_bit_identical

    def test_rotary():
        assert_bit_identical(rope_reference, rope_fused, q, cos, sin)

torch is imported by what uses it, not by this package: a test session loads the plugin whether it needs it or not."""

__all__ = ["CannotCompare", "NotBitIdentical", "assert_bit_identical"]


class CannotCompare(TypeError):
    """A value of which no bits are known here: sparse, quantized, a tensor subclass, an object of the program's own."""


class NotBitIdentical(AssertionError):
    """differences: names of what differs. pivot: as in `opguard align --json`, None where no operator was found."""

    def __init__(self, text, differences=(), pivot=None):
        super().__init__(text)
        self.differences, self.pivot = list(differences), pivot


def assert_bit_identical(fn_a, fn_b, *args, backward=True, **kwargs):
    """Runs fn_a(*args, **kwargs) and fn_b of the same, each from the same inputs, random numbers and state, and compares every bit.

    Compared are results, gradients of inputs and parameters, and what the calls left in parameters and buffers of the same names.
    Both are left as they were. NotBitIdentical names the first operator where they part. CannotCompare: no bits are known of a value.
    backward=False: no backward pass is made."""
    __tracebackhide__ = True
    from opguard.testing import identical

    identical.check(fn_a, fn_b, args, kwargs, backward)
