"""Faults of port.py."""
PACKAGES = ["transformers"]
FILES = ["weights.py", "reference.py", "port.py"]
P = "port.py"
CASES = {
    "control": dict(kind="none", note="no modules: parameters are matched by what they hold"),
    "mask_sign": dict(
        kind="formula", edits=[(P, "(1 - real.float())[:, None, None, :]", "real.float()[:, None, None, :]")],
        exact=[(P, "attend", "scores = scores + real.float()")], near=[(P, "attend", "")], module="l0.attention", note="padding is seen, and nothing else"),
    "std_unbiased": dict(
        kind="scale", edits=[(P, "x.var(-1, unbiased=False, keepdim=True)", "x.var(-1, keepdim=True)")],
        exact=[(P, "norm", "var = x.var(-1, keepdim=True)")], near=[(P, "norm", "")], module="emb.LayerNorm", note="the variance is n / (n - 1) times the right one"),
    "segments_late": dict(
        kind="formula", held_out=True,
        edits=[(P, '    x = x + p["emb.token_type_embeddings.weight"][segments]\n    return norm(p, "emb.LayerNorm", x)', '    return norm(p, "emb.LayerNorm", x) + p["emb.token_type_embeddings.weight"][segments]')],
        exact=[(P, "embed", 'return norm(p, "emb.LayerNorm", x) + p[')], near=[(P, "embed", ""), (P, "norm", "")], module="emb", note="the segments are added behind the norm"),
    "softmax_axis": dict(
        kind="formula", held_out=True, edits=[(P, "F.softmax(scores, -1)", "F.softmax(scores, -2)")],
        exact=[(P, "attend", "return (F.softmax(scores, -2) @ v)")], near=[(P, "attend", "")], module="l0.attention", note="the softmax is over the queries"),
    "mean_over_all": dict(
        kind="scale", held_out=True, edits=[(P, "labels.view(-1), ignore_index=-100)", 'labels.view(-1), ignore_index=-100, reduction="sum") / labels.numel()')],
        exact=[(P, "step", "loss = F.cross_entropy(")], near=[(P, "step", "")], module="", note="the mean is over all tokens, not over those that were masked"),
    "norm_name": dict(
        kind="wrong_data", held_out=True, edits=[(P, 'norm(p, f"l{i}.output.LayerNorm", x + feed_forward(', 'norm(p, f"l{i}.attention.output.LayerNorm", x + feed_forward(')],
        exact=[(P, "encode", 'x = norm(p, f"l{i}.attention.output.LayerNorm", x + feed_forward(')], near=[(P, "encode", ""), (P, "norm", "")], module="",
        note="a copied line: the norm behind the feed-forward part reads the weights of the one behind attention; norm is right"),
}  # fmt: skip
