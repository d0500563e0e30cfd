"""Faults of port.py."""
PACKAGES = ["transformers"]
FILES = ["weights.py", "reference.py", "port.py"]
P = "port.py"
CASES = {
    "control": dict(kind="none", held_out=True, note="experts by sorted rows, queries, keys and values in one weight, softmax behind the choice"),
    "not_renormalised": dict(
        kind="formula", held_out=True, edits=[(P, "best, experts = scores.topk(CHOSEN, dim=-1)", "best, experts = scores.softmax(-1).topk(CHOSEN, dim=-1)"), (P, "return best.softmax(-1), experts, scores", "return best, experts, scores")],
        exact=[(P, "Router.forward", "best, experts = scores.softmax(-1)"), (P, "Router.forward", "return best, experts, scores")], near=[(P, "Router.forward", "")], module="blocks.0.experts.router",
        note="the weights of the chosen experts are chances among all, whose sum is below 1"),
    "weight_order": dict(
        kind="wrong_data", held_out=True, edits=[(P, "add_back(made, weights.flatten()[order], source", "add_back(made, weights.flatten(), source")],
        exact=[(P, "GroupedExperts.forward", "back = add_back(made, weights.flatten(), source")], near=[(P, "GroupedExperts.forward", ""), (P, "add_back", "")], module="blocks.0.experts",
        note="copies are sorted by expert, their weights are not; add_back is right"),
    "window_edge": dict(
        kind="formula", held_out=True, edits=[(P, "(back < WINDOW)", "(back <= WINDOW)")],
        exact=[(P, "seen", "return (back >= 0) & (back <= WINDOW)")], near=[(P, "seen", ""), (P, "GroupedAttention.forward", "")], module="blocks.0.mix",
        note="a query sees one token more than the window has"),
    "balance_detached": dict(
        kind="formula", held_out=True, phase="backward", edits=[(P, "scores.append(routed[0])", "scores.append(routed[0].detach())")],
        exact=[(P, "MoE.forward", "scores.append(routed[0].detach())")], near=[(P, "MoE.forward", ""), (P, "balance", "")], module="blocks.1.experts.router",
        note="scores are kept for a report, and the loss for the balance is made of them: no gradient goes to the routers"),
}  # fmt: skip
