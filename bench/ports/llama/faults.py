"""Faults of port.py."""
PACKAGES = ["transformers"]
FILES = ["weights.py", "reference.py", "port.py"]
P = "port.py"
CASES = {
    "control": dict(kind="none"),
    "control_interleaved": dict(kind="none", args="--interleaved", note="the rows of wq and wk are permuted in each head, so q and k are too"),
    "rope_convention": dict(
        kind="formula", args="--interleaved",
        edits=[(P, "            value = value.view(heads, 2, HEAD // 2, DIM).transpose(1, 2).reshape(value.shape)\n", "            value = value.view(heads, HEAD, DIM).reshape(value.shape)\n")],
        exact=[(P, "apply_rotary_emb", "pairs = torch.view_as_complex("), (P, "apply_rotary_emb", "return torch.view_as_real(pairs * cis"), (P, "convert", "value = value.view(heads, HEAD, DIM)")],
        near=[(P, "apply_rotary_emb", ""), (P, "convert", "")], module="layers.0.attention", note="neighbours are rotated, but the weights are of the other convention"),
    "eps": dict(
        kind="formula", edits=[(P, "def __init__(self, eps=1e-5)", "def __init__(self, eps=1e-6)")],
        exact=[(P, "RMSNorm.forward", "scale = torch.rsqrt("), (P, "RMSNorm.__init__", "def __init__(self, eps=1e-6)")], near=[(P, "RMSNorm.forward", ""), (P, "RMSNorm.__init__", "")],
        module="layers.0.attention_norm", note="Llama 1's epsilon"),
    "kv_repeat": dict(
        kind="wrong_layout", held_out=True, edits=[(P, "x.repeat_interleave(HEADS // KV_HEADS, dim=2)", "x.repeat(1, 1, HEADS // KV_HEADS, 1)")],
        exact=[(P, "repeat_kv", "return x.repeat(")], near=[(P, "repeat_kv", ""), (P, "Attention.forward", "")], module="layers.0.attention",
        note="heads 0 1 0 1 for 0 0 1 1"),
    "gate_up": dict(
        kind="exchanged", held_out=True, edits=[(P, '"mlp.gate_proj": "feed_forward.w1"', '"mlp.gate_proj": "feed_forward.w3"'), (P, '"mlp.up_proj": "feed_forward.w3"', '"mlp.up_proj": "feed_forward.w1"')],
        exact=[(P, "convert", "name = name.replace(theirs, ours)"), (P, "convert", "mine[name] = value"), (P, "FeedForward.forward", "return self.w2(F.silu(self.w1(x)) * self.w3(x))")],
        near=[(P, "convert", ""), (P, "FeedForward.forward", "")], module="layers.0.feed_forward", note="the gate's weight is the projection's"),
    "norm_detached": dict(
        kind="formula", held_out=True, phase="backward", edits=[(P, "torch.rsqrt(x.pow(2).mean(", "torch.rsqrt(x.detach().pow(2).mean(")],
        exact=[(P, "RMSNorm.forward", "scale = torch.rsqrt(x.detach()")], near=[(P, "RMSNorm.forward", "")], module="norm",
        note="no gradient goes through the root mean square"),
    "freqs_over_dim": dict(
        kind="formula", held_out=True, edits=[(P, "(torch.arange(0, HEAD, 2).float() / HEAD))", "(torch.arange(0, HEAD, 2).float() / DIM))")],
        exact=[(P, "freqs_cis", "freqs = 1.0 /")], near=[(P, "freqs_cis", ""), (P, "apply_rotary_emb", ""), (P, "Transformer.forward", "")], module="layers.0.attention",
        note="frequencies over the model's dimension, not over a head's"),
}  # fmt: skip
