"""Dropout that is called as a function, and attention's own.

    F.scaled_dot_product_attention(q, k, v, dropout_p=self.p)    random: p 0.1, asked, in module 5, which is in evaluation

Counterexample: what TorchScript or torch.compile takes as it is. Before either of them compiles something the functions
are put back, and nothing is told of them from then on."""

import functools
import sys

from opguard.training import calls, sink, where

_originals = {}  # name -> function
_NAMES = ("dropout", "alpha_dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout")


def install(torch):
    library = torch.nn.functional
    for name in _NAMES:
        if hasattr(library, name):
            _replace(library, name, _of_dropout)
    if hasattr(library, "scaled_dot_product_attention"):
        _replace(library, "scaled_dot_product_attention", _of_attention)
    for owner, name in ((torch, "compile"), (torch.jit, "script"), (torch.jit, "trace"), (getattr(torch, "export", None), "export")):
        if owner is not None and hasattr(owner, name):
            _restoring(owner, name)


def _replace(library, name, read):
    original = getattr(library, name)

    @functools.wraps(original)
    def observed(*args, **kwargs):
        _tell(name, read, args, kwargs)
        return original(*args, **kwargs)

    _originals[name] = original
    setattr(library, name, observed)


@sink.guarded
def _tell(name, read, args, kwargs):
    p, training = read(*args, **kwargs)
    held = calls.stack()
    number, mode = held[-1] if held else (None, None)
    sink.see("random", (name, float(p), bool(p > 0 and training), number, sys.modules["torch"].is_grad_enabled(), where.place(3), mode))


def _of_dropout(input, p=0.5, training=True, inplace=False):
    return p, training


def _of_attention(query, key, value, attn_mask=None, dropout_p=0.0, *args, **kwargs):
    return dropout_p, True


def _restoring(owner, name):
    original = getattr(owner, name)

    @functools.wraps(original)
    def compiling(*args, **kwargs):
        restore()
        return original(*args, **kwargs)

    setattr(owner, name, compiling)


def restore():
    library = sys.modules["torch"].nn.functional
    for name, original in _originals.items():
        if getattr(getattr(library, name), "__wrapped__", None) is original:
            setattr(library, name, original)
    _originals.clear()
