"""Which lines made what was there before the step: masks, positions, tables of rotations.

    positions = rank * n + torch.arange(n)      in plan(): a constant of the step, made on this line

A storage is known by its address. One that was freed gives its address to the next, which is then the one that counts.
"""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import encode, sources


class Makers(TorchDispatchMode):
    """While it is entered, notes who last wrote each storage."""

    def __init__(self):
        super().__init__()
        self._lines = {}  # address -> lines

    @classmethod
    def _should_skip_dynamo(cls):
        return False  # as Recorder's

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if any(kind.__name__ not in ("Tensor", "Parameter") for kind in types):
            return result  # a DTensor and the like: it has computed by itself, and what it holds is looked at nowhere
        if not func.is_view:
            lines = sources.users(sources.running())
            for tensor in encode.tensors_in(result if isinstance(result, (list, tuple)) else [result], []):
                if encode.has_storage(tensor):
                    self._lines[tensor.untyped_storage().data_ptr()] = lines
        return result

    def lines(self, tensor):
        """Lines of the user's, innermost first, of who last wrote the tensor's storage; () where that is not known."""
        return self._lines.get(tensor.untyped_storage().data_ptr(), ())
