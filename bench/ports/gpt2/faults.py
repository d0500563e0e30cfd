"""Faults of port.py."""
PACKAGES = ["transformers"]
FILES = ["weights.py", "reference.py", "port.py"]
P = "port.py"
CASES = {
    "control": dict(kind="none"),
    "gelu_erf": dict(
        kind="formula", edits=[(P, 'F.gelu(x, approximate="tanh")', "F.gelu(x)")],
        exact=[(P, "FeedForward.forward", "x = F.gelu(x)")], near=[(P, "FeedForward.forward", "")], module="blocks.0.ffn",
        note="the exact gelu for gelu_new"),
    "no_scale": dict(
        kind="scale", edits=[(P, "        att = att * (1.0 / math.sqrt(k.size(-1)))\n", "")],
        exact=[(P, "CausalSelfAttention.forward", "att = q @ k.transpose(-2, -1)"), (P, "CausalSelfAttention.forward", "att = att.masked_fill(")],
        near=[(P, "CausalSelfAttention.forward", "")], module="blocks.0.attn", note="no 1 / sqrt(head)"),
    "untied": dict(
        kind="untied", held_out=True, phase="backward", edits=[(P, "self.head.weight = self.tok.weight", "self.head.weight = nn.Parameter(self.tok.weight.detach().clone())")],
        exact=[(P, "GPT.__init__", "self.head.weight = nn.Parameter("), (P, "GPT.forward", "logits = self.head(self.norm(x))"), (P, "GPT.forward", "x = self.tok(idx) + self.pos(")],
        near=[(P, "GPT.__init__", ""), (P, "GPT.forward", "")], module="head", note="the same values at the start, two parameters: each has a part of the gradient"),
}  # fmt: skip
