"""Noise of rounding: every result of an operator moves by up to the unit roundoff of its type, and is rounded again.

A run that is jittered differs from the run itself as another order of addition would make it differ, operator by
operator, forward and backward. What a tensor moves by between the two is what rounding can do to it.

    x of float32, 1.0      1 or 1 - 6e-8
    x of float32, 1.9      1.9 or one of its neighbours, 1.2e-7 away
    x of bfloat16, 1.0     1 or 0.996
    an integer, -inf       as it is
    2.0 among whole ones   as it is: counts, indices and masks are exact in any order of addition

Where the run to be compared rounds to a narrower type, its own roundoff is what counts. The slices name the operators:

    type model.linear:3nly bfloat16     a result of float32 there moves by up to 2^-9 of itself
    type * bfloat16                     so does what an operator makes that the other run has not

The draw is a function of seed, boundary and occurrence alone, never of time, and no generator of the program is used.

Counterexample: a perturbation of the input alone says nothing of an operator's own rounding.
The cost: some passes over each result; only the reference is jittered, and only to measure its noise.
"""

import zlib


def types_of(slices):
    """{boundary: type} of the lines "type BOUNDARY TYPE"; raises ValueError for what torch has no such type of."""
    import torch

    types = {}
    for line in slices.splitlines():
        if line.startswith("type "):
            _, boundary, name = line.split()
            kind = getattr(torch, name, None)
            if not isinstance(kind, torch.dtype) or not kind.is_floating_point:
                raise ValueError("OPGUARD_SLICES: %s is no floating point type" % name)
            types[boundary] = kind
    return types


class Jitter:
    def __init__(self, seed, slices=""):
        self.seed, self.slices, self.types = seed, slices, None

    def _roundoff(self, boundary, own):
        """Of the coarser of two types: its own, and what the other run has there."""
        import torch

        if self.types is None:
            self.types = types_of(self.slices)
        other = self.types.get(boundary, self.types.get("*"))
        return max(torch.finfo(own).eps, 0 if other is None else torch.finfo(other).eps)

    def __call__(self, boundary, occurrence, tensors):
        """tensors: a list; what is no floating point tensor, or overlaps itself, is left as it is."""
        import torch

        for number, tensor in enumerate(tensors):
            if not isinstance(tensor, torch.Tensor):
                continue
            tensor = getattr(tensor, "_local_tensor", tensor)
            if not tensor.is_floating_point() or tensor.numel() == 0 or _overlaps(tensor):
                continue
            text = "%s#%d.%d" % (boundary, occurrence, number)
            generator = torch.Generator().manual_seed((zlib.crc32(text.encode()) ^ self.seed * 0x9E3779B1) % (1 << 64))
            with torch.no_grad():
                # Not counted as a write: autograd keeps what it has saved, with the noise in it.
                moved = tensor.data
                wide = torch.float64 if moved.dtype == torch.float64 else torch.float32
                roundoff = self._roundoff(boundary, moved.dtype)
                exact = moved.to(wide)
                if bool(((exact == exact.round()) & (exact.abs() <= 1 / roundoff)).all()):
                    continue
                unit = roundoff * (torch.rand(moved.shape, generator=generator, dtype=wide) - 0.5)
                noisy = (exact + exact * unit).to(moved.dtype)
                # The largest of a type, as in a mask, stays in it; what is not finite stays what it is.
                moved.copy_(torch.where(torch.isfinite(noisy), noisy, moved))


def _overlaps(tensor):
    """Does one number of memory stand for several elements, as in what expand() gives?"""
    return any(size > 1 and stride == 0 for size, stride in zip(tensor.shape, tensor.stride()))
