"""Loss functions of torch.nn.functional: what they were given, and whether that is what they take.

    F.cross_entropy(probabilities, target)    criterion "cross_entropy", given "probabilities", fits no
    F.nll_loss(logits, target)                criterion "nll_loss", given "logits", fits no

A loss function takes logits, logarithms of probabilities, or any numbers. Which of these it was given is told by a few
rows. Rows of probabilities sum to 1, and logarithms of them are nowhere above 0. Counterexample: of five logits that
all lie between 0 and 1 nothing is told, as that may be chance.

The cost: at most 256 Ki elements are read a call, on the CPU only."""

import sys

from opguard.training import hooks, kinds, modules, tensors, where

_LOGITS, _LOGARITHMS = "logits", "logarithms of probabilities"
# name -> what its input has to be, None: any numbers
_FUNCTIONS = {
    "cross_entropy": _LOGITS, "nll_loss": _LOGARITHMS, "binary_cross_entropy_with_logits": _LOGITS, "kl_div": _LOGARITHMS,
    "binary_cross_entropy": None, "mse_loss": None, "l1_loss": None, "smooth_l1_loss": None, "huber_loss": None, "poisson_nll_loss": None,
    "gaussian_nll_loss": None,
}  # fmt: skip
_MOST_ROWS, _MOST_ELEMENTS, _FEWEST, _NEAR = 64, 1 << 18, 16, 1e-3  # looked at; _FEWEST elements of a binary loss


def _rows(tensor, along):
    """Some rows of what is normalised: classes lie in the dimension `along`."""
    rows = tensor.detach().movedim(along, -1)
    rows = rows.reshape(-1, rows.shape[-1]) if rows.is_contiguous() else rows[(0,) * (rows.dim() - 2)] if rows.dim() > 2 else rows
    rows = rows.reshape(-1, rows.shape[-1])
    return rows[: max(1, min(_MOST_ROWS, _MOST_ELEMENTS // max(1, rows.shape[-1])))].float()


def _given(name, given):
    """"probabilities", "logits", "logarithms of probabilities", or None where it cannot be told."""
    if not tensors.is_plain(given) or not given.is_floating_point() or given.numel() < 2 or given.dim() < 1:
        return None
    if name == "binary_cross_entropy_with_logits":
        few = given.detach().flatten()[:_MOST_ELEMENTS] if given.is_contiguous() else given.detach()[:1].flatten()
        low, high = float(few.min()), float(few.max())
        if few.numel() < _FEWEST or low == high:
            return None
        return "probabilities" if 0 <= low and high <= 1 else _LOGITS
    rows = _rows(given, 1 if given.dim() > 1 and name != "kl_div" else -1)
    if rows.shape[-1] < 2:
        return None
    if float(rows.min()) >= 0:
        sums = rows.sum(-1)
        return "probabilities" if bool(((sums - 1).abs() < _NEAR).all()) else _LOGITS
    # Rounding alone may lift the logarithm of 1 above 0.
    return _LOGARITHMS if float(rows.max()) <= _NEAR else _LOGITS


def _fits(name, given):
    """Logarithms of probabilities are logits too: their softmax is what they say."""
    wanted = _FUNCTIONS[name]
    if wanted is None or given is None:
        return None
    return given == wanted or (wanted == _LOGITS and given == _LOGARITHMS)


def _tell(name, args, kwargs):
    """One row a call, where input and target are both tensors. Of traced ones nothing is said: they have no
    elements."""
    torch = sys.modules["torch"]
    named = [args[i] if len(args) > i else kwargs.get(key) for i, key in enumerate(("input", "target"))]
    held = [t for t in named if isinstance(t, torch.Tensor)]
    if len(held) < 2 or any(tensors.is_traced(t) for t in held):
        return
    with tensors.quietly():
        given = _given(name, held[0]) if _FUNCTIONS[name] is not None else None
    forms = [(key, tensors.dtype_text(t.dtype), tensors.shape_of(t), t.requires_grad) for key, t in zip(("input", "target"), held)]
    kinds.say("criterion", (name, forms, given, _fits(name, given), modules.autocast_of(torch), torch.is_grad_enabled(), where.here(3)))


def install(torch):
    if not hooks.has_compiled():
        for name in _FUNCTIONS:
            hooks.around_function(torch, name, _tell, "criterion")
