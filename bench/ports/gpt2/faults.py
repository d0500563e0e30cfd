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
    "square_weight": dict(
        kind="wrong_layout", held_out=True, edits=[(P, 'conv1d = name.endswith("weight") and ".c_" in name', 'conv1d = name.endswith("weight") and ".c_" in name and value.shape[0] != value.shape[1]')],
        exact=[(P, "from_checkpoint", 'conv1d = name.endswith("weight")'), (P, "from_checkpoint", "mine[name] = value.t() if conv1d"), (P, "CausalSelfAttention.forward", "return self.out(y)")],
        near=[(P, "from_checkpoint", ""), (P, "CausalSelfAttention.forward", "")], module="blocks.0.attn.out",
        note="a weight is transposed where its shape demands it: a square one is not"),
    "positions_from_one": dict(
        kind="wrong_data", held_out=True, edits=[(P, "self.pos(torch.arange(idx.size(1)))", "self.pos(torch.arange(1, idx.size(1) + 1))")],
        exact=[(P, "GPT.forward", "x = self.tok(idx) + self.pos(torch.arange(1")], near=[(P, "GPT.forward", "")], module="pos", note="the first position is 1"),
    "heads_not_merged": dict(
        kind="wrong_layout", held_out=True, edits=[(P, "y = y.transpose(1, 2).contiguous().view(B, T, C)", "y = y.reshape(B, T, C)")],
        exact=[(P, "CausalSelfAttention.forward", "y = y.reshape(B, T, C)")], near=[(P, "CausalSelfAttention.forward", "")], module="blocks.0.attn",
        note="heads and positions are not exchanged back: a row has one head's four positions"),
}  # fmt: skip
