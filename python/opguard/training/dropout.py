"""Who asks for dropout: a row for each call of torch.nn.functional's.

    F.dropout(x, 0.1)                       random "dropout", p 0.1, asked, in the module that runs
    F.dropout(x, 0.1, training=False)       random "dropout", p 0.1, not asked

Asked is what the call says, not what is drawn. The generators' state is read before, so that a mask that comes again
can be told. Counterexample: an operator that draws in training, such as torch.bernoulli, is nobody's business here.
Where something was compiled before we came, no function is wrapped: its graphs would be compiled again."""

import sys

from opguard.training import generators, hooks, kinds, modules, tensors, where

# name -> (position of p, its default, position of training, its default)
_FUNCTIONS = {
    "dropout": (1, 0.5, 2, True), "dropout1d": (1, 0.5, 2, True), "dropout2d": (1, 0.5, 2, True), "dropout3d": (1, 0.5, 2, True),
    "alpha_dropout": (1, 0.5, 2, False), "feature_alpha_dropout": (1, 0.5, 2, False), "scaled_dot_product_attention": (4, 0.0, None, True),
}  # fmt: skip


def _is_again(torch):
    """Does a backward pass compute it anew, as activation checkpointing does?"""
    current = getattr(torch._C, "_current_graph_task_id", None)
    return None if current is None else current() != -1


def _tell(name, args, kwargs):
    position, default, mode, trains = _FUNCTIONS[name]
    p = args[position] if len(args) > position else kwargs.get("dropout_p" if mode is None else "p", default)
    training = trains if mode is None else args[mode] if len(args) > mode else kwargs.get("training", trains)
    first = args[0] if args else kwargs.get("input", kwargs.get("query"))
    if first is not None and tensors.is_traced(first):
        return
    entry, module = modules.innermost()
    p = float(p) if isinstance(p, (int, float)) else None
    torch = sys.modules["torch"]
    grad, asked = torch.is_grad_enabled(), bool(p) and bool(training)
    kinds.say("random", (
        name, 0.0 if p is None else p, asked, entry.number if entry else None, grad, where.here(3),
        None if module is None else bool(module.training), generators.digest(torch) if asked else None, _is_again(torch),
    ))  # fmt: skip


def install(torch):
    if not hooks.has_compiled():
        for name in _FUNCTIONS:
            hooks.around_function(torch, name, _tell, "dropout")
